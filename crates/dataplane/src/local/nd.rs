//! Neighbour discovery, the part of it between neighbours (RFC 4861 7).

use std::net::{IpAddr, Ipv6Addr};

use packet::{
    checksum,
    headers::{
        ethertype,
        icmp::{self, v6, Icmp},
        ipv6::{self, Ipv6},
        protocol,
    },
    Alloc, Buffer, MacAddr,
};

use super::{
    l2::{self, Layer2, TAGGED},
    own,
    state::{Cx, Local, LocalOutcome},
};
use crate::{tables::Interface, DropReason};

/// Solicitation and advertisement: header, target, and one link-layer address option.
const MESSAGE_LEN: usize = icmp::LEN + 16 + 8;
/// Room for a solicitation made here, with a tag.
pub(super) const SOLICITATION_LEN: usize = TAGGED + ipv6::LEN + MESSAGE_LEN;
/// Neighbour discovery must not have been forwarded by anyone (RFC 4861 7.1.1).
const HOP_LIMIT: u8 = 255;
const SOURCE_OPTION: u8 = 1;
const TARGET_OPTION: u8 = 2;
/// We are a router; this answers you; what was announced before no longer holds (RFC 4861 4.4).
const ROUTER: u32 = 1 << 31;
const SOLICITED: u32 = 1 << 30;
const OVERRIDE: u32 = 1 << 29;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// What a message says.
struct Message {
    icmp: Icmp,
    target: Ipv6Addr,
    source_mac: Option<MacAddr>,
    target_mac: Option<MacAddr>,
}

impl<A: Alloc> Local<A> {
    /// A packet whose ICMPv6 type is one of neighbour discovery; `ip` is its header, whose length is known to hold.
    pub(super) fn nd(&mut self, frame: &mut A::Buf, l2: &Layer2, ip: &Ipv6, cx: &Cx<'_>) -> LocalOutcome {
        let start = l2.len + ipv6::LEN;
        let body = frame.data().get(start..start + usize::from(ip.payload_len)).unwrap_or_default();
        let to_group = ip.dst.is_multicast();
        if ip.hop_limit != HOP_LIMIT || !(to_group || own::owns(cx.interface, IpAddr::V6(ip.dst))) {
            return LocalOutcome::Drop(DropReason::Nd);
        }
        let Some(message) = parse(body, ip) else { return LocalOutcome::Drop(DropReason::Nd) };
        match message.icmp.kind {
            v6::ROUTER_SOLICITATION | v6::ROUTER_ADVERTISEMENT => LocalOutcome::Punt,
            v6::NEIGHBOUR_ADVERTISEMENT => {
                // Without an option there is nothing in it: links here have addresses (RFC 4861 7.2.5).
                if let Some(mac) = message.target_mac {
                    self.counts.nd_learned += self.learn(IpAddr::V6(message.target), mac, cx);
                }
                LocalOutcome::Punt
            }
            v6::NEIGHBOUR_SOLICITATION => self.solicited(frame, l2, ip, &message, cx),
            _ => LocalOutcome::Drop(DropReason::Nd),
        }
    }

    fn solicited(&mut self, frame: &mut A::Buf, l2: &Layer2, ip: &Ipv6, asked: &Message, cx: &Cx<'_>) -> LocalOutcome {
        let own = cx.interface.mac;
        if !own::owns(cx.interface, IpAddr::V6(asked.target)) {
            return LocalOutcome::Drop(DropReason::Nd);
        }
        // One that asks whether the address is free (RFC 4862 5.4.3) has none to be answered at.
        let nobody = ip.src.is_unspecified();
        if let (Some(mac), false) = (asked.source_mac, nobody) {
            self.counts.nd_learned += self.learn(IpAddr::V6(ip.src), mac, cx);
        }
        let mac = asked.source_mac.filter(|mac| !mac.is_group() && *mac != MacAddr::default()).unwrap_or(l2.src);
        let (dst, mac, flags) = if nobody {
            (ALL_NODES, group_mac(ALL_NODES), ROUTER | OVERRIDE)
        } else {
            (ip.src, mac, ROUTER | SOLICITED | OVERRIDE)
        };
        let len = l2.len + ipv6::LEN + MESSAGE_LEN;
        if frame.len() < len && !frame.set_len(len) {
            return LocalOutcome::Drop(DropReason::NoBuffer);
        }
        let data = frame.data_mut();
        l2::readdress(data, mac, own);
        let icmp = Icmp { kind: v6::NEIGHBOUR_ADVERTISEMENT, code: 0, checksum: 0, rest: flags };
        if !write(data.get_mut(l2.len..), icmp, asked.target, dst, asked.target, (TARGET_OPTION, own)) {
            return LocalOutcome::Drop(DropReason::Nd);
        }
        self.counts.nd_answered += 1;
        LocalOutcome::Answer(len)
    }
}

/// Checks a message (RFC 4861 6.1.1, 7.1.1 and 7.1.2) and takes it apart.
fn parse(body: &[u8], ip: &Ipv6) -> Option<Message> {
    let sum = checksum::sum(body) + checksum::pseudo_v6(ip.src, ip.dst, protocol::ICMPV6, ip.payload_len.into());
    let (icmp, rest) = Icmp::parse(body)?;
    if checksum::fold(sum) != 0xffff || icmp.code != 0 {
        return None;
    }
    let mut message = Message { icmp, target: Ipv6Addr::UNSPECIFIED, source_mac: None, target_mac: None };
    let solicitation = icmp.kind == v6::NEIGHBOUR_SOLICITATION;
    let mut options = rest;
    if solicitation || icmp.kind == v6::NEIGHBOUR_ADVERTISEMENT {
        let (target, rest) = rest.split_first_chunk::<16>()?;
        (message.target, options) = ((*target).into(), rest);
        if !own::is_host6(message.target) {
            return None;
        }
    } else if icmp.kind == v6::ROUTER_ADVERTISEMENT {
        options = rest.get(8..)?;
    } else if icmp.kind == v6::REDIRECT {
        // To hosts only, and we are none.
        return None;
    }
    while let [kind, units, ..] = *options {
        let (option, rest) = options.split_at_checked(usize::from(units) * 8).filter(|_| units > 0)?;
        options = rest;
        let mac = match *option {
            [_, _, a, b, c, d, e, f] => Some(MacAddr([a, b, c, d, e, f])),
            _ => None,
        };
        match kind {
            SOURCE_OPTION => message.source_mac = Some(mac?),
            TARGET_OPTION => message.target_mac = Some(mac?),
            _ => {}
        }
    }
    let nobody = ip.src.is_unspecified();
    let good = options.is_empty()
        && !(nobody && message.source_mac.is_some())
        && !(nobody && solicitation && ip.dst != solicited_node(message.target))
        && !(nobody && matches!(icmp.kind, v6::NEIGHBOUR_ADVERTISEMENT | v6::ROUTER_ADVERTISEMENT))
        && !(icmp.kind == v6::NEIGHBOUR_ADVERTISEMENT && ip.dst.is_multicast() && icmp.rest & SOLICITED != 0);
    good.then_some(message)
}

/// Writes a message with one option, and the IPv6 header in front of it; `false` when there is no room.
fn write(
    to: Option<&mut [u8]>,
    icmp: Icmp,
    src: Ipv6Addr,
    dst: Ipv6Addr,
    target: Ipv6Addr,
    (kind, mac): (u8, MacAddr),
) -> bool {
    let Some(packet) = to.and_then(|to| to.first_chunk_mut::<{ ipv6::LEN + MESSAGE_LEN }>()) else { return false };
    let ip = Ipv6 {
        traffic_class: 0,
        flow_label: 0,
        payload_len: MESSAGE_LEN as u16,
        next_header: protocol::ICMPV6,
        hop_limit: HOP_LIMIT,
        src,
        dst,
    };
    let Some((head, body)) = packet.split_first_chunk_mut::<{ ipv6::LEN }>() else { return false };
    let Some((first, rest)) = body.split_first_chunk_mut::<{ icmp::LEN }>() else { return false };
    let Some((to, option)) = rest.split_first_chunk_mut::<16>() else { return false };
    let [a, b, c, d, e, f] = mac.0;
    *to = target.octets();
    option.copy_from_slice(&[kind, 1, a, b, c, d, e, f]);
    let written = ip.write(head) && icmp.write(first);
    let sum = checksum::sum(body) + checksum::pseudo_v6(src, dst, protocol::ICMPV6, MESSAGE_LEN as u32);
    body[icmp::CHECKSUM..icmp::CHECKSUM + 2].copy_from_slice(&checksum::finish(sum).to_be_bytes());
    written
}

/// The group that a node with this address listens to (RFC 4291 2.7.1).
fn solicited_node(addr: Ipv6Addr) -> Ipv6Addr {
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0);
    Ipv6Addr::from_bits(group.to_bits() | addr.to_bits() & 0xff_ffff)
}

/// The MAC address of a group (RFC 2464 7).
fn group_mac(group: Ipv6Addr) -> MacAddr {
    let [.., a, b, c, d] = group.octets();
    MacAddr([0x33, 0x33, a, b, c, d])
}

/// Writes a solicitation for `target` into a frame of [`SOLICITATION_LEN`] bytes; returns its real length, or `None` when
/// the interface has no address to ask with.
pub(super) fn solicitation(frame: &mut [u8], interface: &Interface, target: Ipv6Addr) -> Option<usize> {
    let (src, dst) = (own::source6(interface, target)?, solicited_node(target));
    let len = l2::start(frame, group_mac(dst), interface.mac, ethertype::IPV6, interface.vlan)?;
    let icmp = Icmp { kind: v6::NEIGHBOUR_SOLICITATION, code: 0, checksum: 0, rest: 0 };
    write(frame.get_mut(len..), icmp, src, dst, target, (SOURCE_OPTION, interface.mac))
        .then_some(len + ipv6::LEN + MESSAGE_LEN)
}
