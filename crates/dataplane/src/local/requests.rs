//! Asking for neighbours, and the frames that wait meanwhile.

use std::net::IpAddr;

use packet::{
    headers::{ethertype, ipv4::Ipv4, ipv6::Ipv6},
    Alloc, Buffer, MacAddr,
};

use super::{
    arp,
    error::Cause,
    ingress::Fault,
    l2::Layer2,
    limit::Mention,
    nd, own,
    state::{Cx, Local},
    waiting::Held,
};
use crate::{
    tables::{Next, Tables},
    DropReason, Outputs,
};

/// How long a frame waits.
const PATIENCE_SECONDS: u64 = 3;
/// Most neighbours asked for in a second because of frames.
const ASKS_PER_SECOND: u32 = 1000;
/// Most probes sent in one poll: they go out with what else the poll sends to that port.
const PROBES_A_POLL: usize = 32;

impl<A: Alloc> Local<A> {
    /// Holds a frame until its next hop is known, and asks for it.
    pub(super) fn wait(&mut self, frame: A::Buf, dst: IpAddr, adjacency: u32, cx: &Cx<'_>, out: &mut Outputs<A::Buf>) {
        let glean = match cx.tables.adjacencies.get(adjacency as usize) {
            Some(to) => (to.next == Next::Glean).then_some(to.interface),
            None => return out.drops.drop(frame, DropReason::NoNeighbour),
        };
        if let Some(interface) = glean {
            // A network's broadcast address is nobody's, and not forwarded to (RFC 2644).
            let link = cx.tables.interfaces.get(usize::from(interface));
            if matches!((dst, link), (IpAddr::V4(dst), Some(link)) if own::is_broadcast(link, dst)) {
                return out.drops.drop(frame, DropReason::MartianDestination);
            }
        }
        let until = cx.now.saturating_add(PATIENCE_SECONDS.saturating_mul(self.hz));
        let mut held = Held { frame, at: cx.at, dst, adjacency, glean, ask: cx.now.saturating_add(self.hz), until };
        match (self.waiting.next_request(&held), glean) {
            (Some(ask), _) => held.ask = ask,
            (None, Some(interface)) => self.request(interface, dst, cx.tables, out, cx.now),
            (None, None) => {}
        }
        if let Some(displaced) = self.waiting.hold(held) {
            out.drops.drop(displaced, DropReason::NoNeighbour);
        }
    }

    /// Asks for a neighbour, unless it was asked for within the last second or too many were.
    fn request(&mut self, interface: u16, addr: IpAddr, tables: &Tables, out: &mut Outputs<A::Buf>, now: u64) {
        let mention = Mention { interface, addr, mac: MacAddr::default() };
        if self.requested.has(&mention, now) {
            return;
        }
        if self.request_tokens.take(now, ASKS_PER_SECOND) {
            self.solicit(mention, tables, out, now);
        } else {
            self.counts.requests_withheld += 1;
        }
    }

    /// Sends a request for a neighbour.
    fn solicit(&mut self, mention: Mention, tables: &Tables, out: &mut Outputs<A::Buf>, now: u64) {
        self.requested.note(mention, now);
        let Some(interface) = tables.interfaces.get(usize::from(mention.interface)) else { return };
        let len = match mention.addr {
            IpAddr::V4(_) => arp::REQUEST_LEN,
            IpAddr::V6(_) => nd::SOLICITATION_LEN,
        };
        self.alloc.alloc(&mut self.made, 1, len);
        let Some(mut frame) = self.made.pop() else {
            self.counts.requests_withheld += 1;
            return;
        };
        let (made, sent) = match mention.addr {
            IpAddr::V4(addr) => {
                (arp::request(frame.data_mut(), interface, addr).then_some(len), &mut self.counts.arp_sent)
            }
            IpAddr::V6(addr) => (nd::solicitation(frame.data_mut(), interface, addr), &mut self.counts.nd_sent),
        };
        if made.is_some_and(|len| frame.set_len(len)) {
            *sent += 1;
            out.originate(interface.port.into(), frame);
        }
    }

    /// Asks again for what frames wait for.
    pub(super) fn repeat_requests(&mut self, tables: &Tables, out: &mut Outputs<A::Buf>, now: u64) {
        for i in 0..self.waiting.len() {
            if let Some((interface, addr)) = self.waiting.take_request(i, now, now.saturating_add(self.hz)) {
                self.request(interface, addr, tables, out, now);
            }
        }
    }

    /// Drops the frames that have waited long enough, and tells their sources; `true` when there were any.
    pub(super) fn give_up(&mut self, tables: &Tables, out: &mut Outputs<A::Buf>, now: u64) -> bool {
        let mut any = false;
        while let Some(Held { frame, at, dst, until, .. }) = self.waiting.expired(now) {
            any = true;
            let interface = tables.interfaces.get(usize::from(at.interface));
            // The source of a frame in a tunnel has no business with the tunnel's other end.
            match interface.filter(|_| until > 0 && destination(frame.data()) == Some(dst)) {
                Some(interface) => {
                    let cx = Cx { at, interface, tables, now };
                    let cause = Cause::Fault(Fault::HostUnreachable);
                    self.complain(frame, DropReason::NoNeighbour, cause, &cx, out);
                }
                None => out.drops.drop(frame, DropReason::NoNeighbour),
            }
        }
        any
    }

    /// Sends some of the probes of this round.
    pub(super) fn probe(&mut self, tables: &Tables, out: &mut Outputs<A::Buf>, now: u64) {
        let round = tables.probe_round;
        if self.probing != Some(round) {
            (self.probing, self.probed) = (Some(round), 0);
        }
        let rest = tables.probes.get(self.probed..).filter(|_| self.prober).unwrap_or_default();
        for probe in rest.iter().take(PROBES_A_POLL) {
            let mention = Mention { interface: probe.interface, addr: probe.addr, mac: MacAddr::default() };
            self.solicit(mention, tables, out, now);
            self.probed += 1;
        }
        if rest.len() <= PROBES_A_POLL {
            self.round = round;
        }
    }
}

/// The IP destination of a frame.
fn destination(frame: &[u8]) -> Option<IpAddr> {
    let l2 = Layer2::parse(frame)?;
    let packet = frame.get(l2.len..)?;
    match l2.ethertype {
        ethertype::IPV4 => Ipv4::parse(packet).map(|(ip, _)| IpAddr::V4(ip.dst)),
        ethertype::IPV6 => Ipv6::parse(packet).map(|(ip, _)| IpAddr::V6(ip.dst)),
        _ => None,
    }
}
