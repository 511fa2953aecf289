//! ARP (RFC 826, RFC 5227).

use std::net::{IpAddr, Ipv4Addr};

use packet::{
    headers::{arp, ethertype},
    Alloc, MacAddr,
};

use super::{
    l2::{self, Layer2},
    own,
    state::{Cx, Local, LocalOutcome},
};
use crate::{
    tables::{Interface, Next},
    DropReason,
};

/// A frame of the least length, tag included, without FCS (IEEE 802.3 3.2.8).
pub(super) const REQUEST_LEN: usize = 60;

impl<A: Alloc> Local<A> {
    pub(super) fn arp(&mut self, data: &mut [u8], l2: &Layer2, cx: &Cx<'_>) -> LocalOutcome {
        let Some((arp, _)) = data.get(l2.len..).and_then(arp::Arp::parse) else {
            return LocalOutcome::Drop(DropReason::Arp);
        };
        // A probe (RFC 5227 2.1.1) comes from nobody: it is answered, and nothing learned from it.
        let nobody = arp.sender.is_unspecified();
        let station = !arp.sender_mac.is_group() && arp.sender_mac != MacAddr::default();
        if !station || !matches!(arp.op, arp::REQUEST | arp::REPLY) || !(nobody || own::is_host4(arp.sender)) {
            return LocalOutcome::Drop(DropReason::Arp);
        }
        let sender = IpAddr::V4(arp.sender);
        if own::owns(cx.interface, sender) {
            self.counts.arp_conflicts += u64::from(arp.sender_mac != cx.interface.mac);
            return LocalOutcome::Drop(DropReason::Arp);
        }
        if !own::owns(cx.interface, IpAddr::V4(arp.target)) {
            // Nobody is learned from what is sent to others; but a neighbour that is known already may announce that
            // it has moved (RFC 826, "merge"; RFC 5227 3).
            if arp.sender != arp.target || !known(arp.sender, cx) {
                return LocalOutcome::Drop(DropReason::Arp);
            }
            self.counts.arp_learned += self.learn(sender, arp.sender_mac, cx);
            return LocalOutcome::Punt;
        }
        if !nobody {
            self.counts.arp_learned += self.learn(sender, arp.sender_mac, cx);
        }
        if arp.op == arp::REPLY {
            return LocalOutcome::Punt;
        }
        let reply = arp::Arp {
            op: arp::REPLY,
            sender_mac: cx.interface.mac,
            sender: arp.target,
            target_mac: arp.sender_mac,
            target: arp.sender,
        };
        l2::readdress(data, arp.sender_mac, cx.interface.mac);
        if !data.get_mut(l2.len..).is_some_and(|to| reply.write(to)) {
            return LocalOutcome::Drop(DropReason::Arp);
        }
        self.counts.arp_answered += 1;
        LocalOutcome::Answer(data.len())
    }
}

/// Whether the address is that of a neighbour on this interface that frames are sent to.
fn known(addr: Ipv4Addr, cx: &Cx<'_>) -> bool {
    let to = cx.tables.adjacencies.get(cx.tables.route4(addr, 0) as usize);
    to.is_some_and(|to| to.next == Next::Forward && to.interface == cx.at.interface)
        && own::on_link(cx.at, cx.interface, cx.tables, IpAddr::V4(addr))
}

/// Writes a request for `target` into a frame of [`REQUEST_LEN`] bytes; `false` when the interface has no address to ask
/// with.
pub(super) fn request(frame: &mut [u8], interface: &Interface, target: Ipv4Addr) -> bool {
    let Some(sender) = own::source4(interface, target) else { return false };
    frame.fill(0);
    let len = l2::start(frame, MacAddr::BROADCAST, interface.mac, ethertype::ARP, interface.vlan);
    let arp = arp::Arp { op: arp::REQUEST, sender_mac: interface.mac, sender, target_mac: MacAddr::default(), target };
    len.and_then(|len| frame.get_mut(len..)).is_some_and(|to| arp.write(to))
}
