//! What a router does itself rather than forward: ARP (RFC 826), neighbour discovery (RFC 4861), echo, and ICMP errors
//! (RFC 792, RFC 4443, RFC 1812 4.3), all from the packet path and all bounded.

mod event;

use std::net::IpAddr;

use packet::{Alloc, Burst};

pub use event::{Event, Events};

use crate::{node::NodeStats, tables::Tables, DropReason, Outputs};

/// Where a frame came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ingress {
    /// The port.
    pub port: u16,
    /// The interface: the port's own or that of the frame's VLAN.
    pub interface: u16,
}

/// Why an ICMP error goes back to the source of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// TTL or hop limit used up in transit (ICMP 11/0, ICMPv6 3/0).
    TimeExceeded,
    /// No route (ICMP 3/0, ICMPv6 1/0).
    NoRoute,
    /// The neighbour did not answer (ICMP 3/1, ICMPv6 1/3).
    HostUnreachable,
    /// Longer than the egress link takes, with this MTU (ICMP 3/4 when DF is set, ICMPv6 2/0).
    TooBig(u16),
}

/// The exceptional path of one lcore.
#[derive(Debug)]
pub struct Local<A: Alloc> {
    _alloc: A,
    node: NodeStats,
}

impl<A: Alloc> Local<A> {
    /// `alloc` makes the frames that are sent on our own account; `events` takes what was learned; `hz` is the clock's
    /// rate; the one lcore with `prober` sends the probes that the control side asks for.
    pub fn new(alloc: A, _events: Events, _hz: u64, _prober: bool) -> Self {
        Self { _alloc: alloc, node: NodeStats::new("ip-local") }
    }

    /// A frame that is ARP, neighbour discovery, or to one of our own addresses: answered, learned from, or dropped.
    pub fn deliver(&mut self, frame: A::Buf, _at: Ingress, _tables: &Tables, out: &mut Outputs<A::Buf>, _now: u64) {
        out.trash.drop(frame, DropReason::NotIp);
    }

    /// Drops a frame for `reason` and sends its source an ICMP error, as far as the standards and the rate allow.
    #[allow(clippy::too_many_arguments)]
    pub fn refuse(
        &mut self,
        frame: A::Buf,
        reason: DropReason,
        _fault: Fault,
        _at: Ingress,
        _tables: &Tables,
        out: &mut Outputs<A::Buf>,
        _now: u64,
    ) {
        out.trash.drop(frame, reason);
    }

    /// A frame whose next hop has no MAC address yet (an adjacency with `Glean` or `Unresolved`; `dst` is the frame's IP
    /// destination): it is held, the neighbour is asked for, and the frame leaves when the answer has reached the tables.
    #[allow(clippy::too_many_arguments)]
    pub fn resolve(
        &mut self,
        frame: A::Buf,
        _dst: IpAddr,
        _adjacency: u32,
        _at: Ingress,
        _tables: &Tables,
        out: &mut Outputs<A::Buf>,
        _now: u64,
    ) {
        out.trash.drop(frame, DropReason::NoRoute);
    }

    /// Whether [`Self::poll`] has something to do: probes to send, or frames held whose time may have come.
    #[inline]
    pub fn due(&self, _tables: &Tables) -> bool {
        false
    }

    /// Sends probes that are asked for. Frames held whose neighbour has become known go into `burst`, to be routed once
    /// more as if they had just come in by the port that is returned; those held too long are dropped.
    pub fn poll(
        &mut self,
        _tables: &Tables,
        _burst: &mut Burst<A::Buf>,
        _out: &mut Outputs<A::Buf>,
        _now: u64,
    ) -> Option<u16> {
        None
    }

    /// Makes every held frame due now.
    pub fn release(&mut self) {}

    /// Frames held.
    #[inline]
    pub fn held(&self) -> usize {
        0
    }

    /// The node's counters.
    pub fn node(&self) -> &NodeStats {
        &self.node
    }

    /// The node's counters, to add a lap to.
    pub fn node_mut(&mut self) -> &mut NodeStats {
        &mut self.node
    }

    /// Counters by name: ARP and ND frames, echoes answered, ICMP errors sent and withheld.
    pub fn counters(&self, _visit: &mut dyn FnMut(&'static str, u64)) {}
}
