//! What a router does itself rather than forward: ARP (RFC 826), neighbour discovery (RFC 4861), echo, and ICMP errors
//! (RFC 792, RFC 4443, RFC 1812 4.3), all from the packet path and all bounded.

mod arp;
mod counts;
mod error;
mod icmp;
mod ingress;
pub(crate) mod l2;
mod limit;
mod nd;
mod own;
mod requests;
mod state;
#[cfg(test)]
mod tests;
mod waiting;

use std::net::IpAddr;

use packet::{headers::ethertype, Alloc, Buffer, Burst};

use self::{
    error::Cause,
    l2::Layer2,
    state::{Cx, LocalOutcome},
};
pub use self::{
    ingress::{Fault, Ingress},
    own::link_local,
    state::Local,
};
use crate::{tables::Tables, DropReason, Outputs};

impl<A: Alloc> Local<A> {
    /// A frame that is ARP, neighbour discovery, or to one of our own addresses: answered, learned from, or dropped.
    #[inline(never)]
    pub fn deliver(&mut self, mut frame: A::Buf, at: Ingress, tables: &Tables, out: &mut Outputs<A::Buf>, now: u64) {
        let Some(l2) = Layer2::parse(frame.data()) else { return out.drops.drop(frame, DropReason::Runt) };
        let Some(interface) = tables.interfaces.get(usize::from(at.interface)) else {
            return out.drops.drop(frame, DropReason::VlanUnknown);
        };
        if l2.src.is_group() {
            return out.drops.drop(frame, DropReason::BridgeSource);
        }
        let cx = Cx { at, interface, tables, now };
        let fate = match l2.ethertype {
            ethertype::ARP => self.arp(frame.data_mut(), &l2, &cx),
            ethertype::IPV4 => self.ip4(&mut frame, &l2, &cx),
            ethertype::IPV6 => self.ip6(&mut frame, &l2, &cx),
            _ => LocalOutcome::Drop(DropReason::NotIp),
        };
        match fate {
            LocalOutcome::Answer(len) if frame.set_len(len) => out.answer(at.port.into(), frame),
            LocalOutcome::Answer(_) => out.drops.drop(frame, DropReason::NoBuffer),
            LocalOutcome::Punt => out.punt(frame),
            LocalOutcome::Drop(reason) => out.drops.drop(frame, reason),
            LocalOutcome::NoPort => self.complain(frame, DropReason::NotListening, Cause::NoPort, &cx, out),
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
            None => out.drops.drop(frame, reason),
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
            None => out.drops.drop(frame, DropReason::NoNeighbour),
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
            self.repeat_requests(tables, out, now);
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
}
