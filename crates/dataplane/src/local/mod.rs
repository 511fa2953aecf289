//! What a router does itself rather than forward: ARP (RFC 826), neighbour discovery (RFC 4861), echo, and ICMP errors
//! (RFC 792, RFC 4443, RFC 1812 4.3), all from the packet path and all bounded.

mod arp;
mod ask;
mod counts;
mod error;
mod event;
mod icmp;
pub(crate) mod l2;
mod limit;
mod nd;
mod own;
#[cfg(test)]
mod tests;
mod waiting;

use std::net::IpAddr;

use packet::{headers::ethertype, Alloc, Buffer, Burst, MacAddr};

pub use event::{Event, Events};
pub use own::link_local;

use self::{
    counts::Counts,
    error::Cause,
    l2::Layer2,
    limit::{Bucket, Recent, Said},
    waiting::Waiting,
};
use crate::{
    node::NodeStats,
    tables::{Interface, Tables},
    DropReason, Outputs,
};

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

/// What becomes of a frame that was delivered.
enum Fate {
    /// It was made the answer, of this length, and goes back.
    Answer(usize),
    /// It was read, and ends here.
    Punt,
    Drop(DropReason),
    /// Nothing listens to its port, and the source is told.
    NoPort,
}

/// What a frame is looked at with.
struct Cx<'a> {
    at: Ingress,
    interface: &'a Interface,
    tables: &'a Tables,
    now: u64,
}

/// The exceptional path of one lcore.
#[derive(Debug)]
pub struct Local<A: Alloc> {
    alloc: A,
    made: Burst<A::Buf>,
    events: Events,
    prober: bool,
    hz: u64,
    /// Tokens for ICMP errors, and for requests to neighbours.
    errors: Bucket,
    asks: Bucket,
    told: Recent,
    asked: Recent,
    waiting: Waiting<A::Buf>,
    /// When the frames that wait are looked at again.
    look: u64,
    /// The round of probes that is done, the one that is being sent, and how far.
    round: u64,
    probing: Option<u64>,
    probed: usize,
    /// Identification of the last IPv4 packet made.
    ident: u16,
    counts: Counts,
    node: NodeStats,
}

impl<A: Alloc> Local<A> {
    /// `alloc` makes the frames that are sent on our own account; `events` takes what was learned; `hz` is the clock's
    /// rate; the one lcore with `prober` sends the probes that the control side asks for.
    pub fn new(alloc: A, events: Events, hz: u64, prober: bool) -> Self {
        let hz = hz.max(1);
        Self {
            alloc,
            made: Burst::new(),
            events,
            prober,
            hz,
            errors: Bucket::new(hz),
            asks: Bucket::new(hz),
            told: Recent::new(hz),
            asked: Recent::new(hz),
            waiting: Waiting::new(),
            look: 0,
            round: 0,
            probing: None,
            probed: 0,
            ident: 0,
            counts: Counts::default(),
            node: NodeStats::new("ip-local"),
        }
    }

    /// A frame that is ARP, neighbour discovery, or to one of our own addresses: answered, learned from, or dropped.
    #[inline(never)]
    pub fn deliver(&mut self, mut frame: A::Buf, at: Ingress, tables: &Tables, out: &mut Outputs<A::Buf>, now: u64) {
        let Some(l2) = Layer2::parse(frame.data()) else { return out.trash.drop(frame, DropReason::Runt) };
        let Some(interface) = tables.interfaces.get(usize::from(at.interface)) else {
            return out.trash.drop(frame, DropReason::VlanUnknown);
        };
        if l2.src.is_group() {
            return out.trash.drop(frame, DropReason::BridgeSource);
        }
        let cx = Cx { at, interface, tables, now };
        let fate = match l2.ethertype {
            ethertype::ARP => self.arp(frame.data_mut(), &l2, &cx),
            ethertype::IPV4 => self.ip4(&mut frame, &l2, &cx),
            ethertype::IPV6 => self.ip6(&mut frame, &l2, &cx),
            _ => Fate::Drop(DropReason::NotIp),
        };
        match fate {
            Fate::Answer(len) if frame.set_len(len) => out.answer(at.port.into(), frame),
            Fate::Answer(_) => out.trash.drop(frame, DropReason::NoBuffer),
            Fate::Punt => out.punt(frame),
            Fate::Drop(reason) => out.trash.drop(frame, reason),
            Fate::NoPort => self.complain(frame, DropReason::NotListening, Cause::NoPort, &cx, out),
        }
    }

    /// Drops a frame for `reason` and sends its source an ICMP error, as far as the standards and the rate allow. The
    /// frame is as it came in, its TTL not yet taken from.
    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    pub fn refuse(
        &mut self,
        frame: A::Buf,
        reason: DropReason,
        fault: Fault,
        at: Ingress,
        tables: &Tables,
        out: &mut Outputs<A::Buf>,
        now: u64,
    ) {
        match tables.interfaces.get(usize::from(at.interface)) {
            Some(interface) => {
                self.complain(frame, reason, Cause::Fault(fault), &Cx { at, interface, tables, now }, out);
            }
            None => out.trash.drop(frame, reason),
        }
    }

    /// A frame whose next hop has no MAC address yet (an adjacency with `Glean` or `Unresolved`; `dst` is the frame's IP
    /// destination): it is held, the neighbour is asked for, and the frame leaves when the answer has reached the tables.
    ///
    /// The frame is as it came in, and will be handed back so. For one in a tunnel, `dst` is the tunnel's other end; for
    /// one whose way does not depend on an IP destination (labelled), it is an unspecified address.
    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    pub fn resolve(
        &mut self,
        frame: A::Buf,
        dst: IpAddr,
        adjacency: u32,
        at: Ingress,
        tables: &Tables,
        out: &mut Outputs<A::Buf>,
        now: u64,
    ) {
        match tables.interfaces.get(usize::from(at.interface)) {
            Some(interface) => self.wait(frame, dst, adjacency, &Cx { at, interface, tables, now }, out),
            None => out.trash.drop(frame, DropReason::NoNeighbour),
        }
    }

    /// Whether [`Self::poll`] has something to do: probes to send, or frames held whose time may have come.
    #[inline]
    pub fn due(&self, tables: &Tables) -> bool {
        self.waiting.len() != 0 || self.round != tables.probe_round
    }

    /// Sends probes that are asked for. Frames held whose neighbour has become known go into `burst`, to be routed once
    /// more as if they had just come in by the port that is returned; those held too long are dropped.
    #[inline(never)]
    pub fn poll(
        &mut self,
        tables: &Tables,
        burst: &mut Burst<A::Buf>,
        out: &mut Outputs<A::Buf>,
        now: u64,
    ) -> Option<u16> {
        // One kind of frame at a time, so that no port is given more than a burst.
        if self.waiting.len() != 0 && now >= self.look {
            if self.give_up(tables, out, now) {
                return None;
            }
            let port = self.waiting.settled(tables, burst);
            if port.is_some() {
                return port;
            }
            self.look = now.saturating_add((self.hz / 1000).max(1));
            self.ask_again(tables, out, now);
            return None;
        }
        if self.round != tables.probe_round {
            self.probe(tables, out, now);
        }
        None
    }

    /// Makes every held frame due now.
    pub fn release(&mut self) {
        self.waiting.release();
        self.look = 0;
    }

    /// Frames held.
    #[inline]
    pub fn held(&self) -> usize {
        self.waiting.len()
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
    pub fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.counts.visit(visit);
        visit("frames-waiting", self.waiting.len() as u64);
    }

    /// Tells the control side of a neighbour, if it can be one and was not just told; returns how many were told.
    fn learn(&mut self, addr: IpAddr, mac: MacAddr, cx: &Cx<'_>) -> u64 {
        let said = Said { interface: cx.at.interface, addr, mac };
        let station = !mac.is_group() && mac != MacAddr::default() && mac != cx.interface.mac;
        if !station || self.told.has(&said, cx.now) {
            return 0;
        }
        if own::owns(cx.interface, addr) || !own::on_link(cx.at, cx.interface, cx.tables, addr) {
            return 0;
        }
        if self.events.try_send(Event::Neighbour { interface: cx.at.interface, addr, mac }).is_err() {
            self.counts.untold += 1;
            return 0;
        }
        self.told.note(said, cx.now);
        1
    }
}
