//! ICMP errors (RFC 1812 4.3, RFC 4443 2.4), made in place out of the frame they are about, as the kernel makes them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use packet::{
    checksum,
    headers::{
        ethertype,
        icmp::{self, v4, v6, Icmp},
        ipv4::{self, Ipv4},
        ipv6::{self, Ipv6},
        mpls, protocol,
    },
    Alloc, Buffer,
};

use super::{
    icmp::{write_icmp, write_ip4, TTL},
    ingress::Fault,
    l2::{encapsulate, Layer2},
    own,
    state::{Cx, Local},
};
use crate::{
    tables::{Adjacency, Next, Stack, Tables},
    DropReason, Outputs,
};

/// Longest IPv4 error (RFC 1812 4.3.2.3).
const MOST4: usize = 576;
/// Longest IPv6 error: what every link takes (RFC 4443 2.4 c).
const MOST6: usize = 1280;
/// Bytes in front of what is quoted.
const HEAD4: usize = ipv4::LEN + icmp::LEN;
const HEAD6: usize = ipv6::LEN + icmp::LEN;
/// Precedence of an error (RFC 1812 4.3.2.5), and the bits of the type of service that are taken over.
const INTERNET_CONTROL: u8 = 0xc0;
const SERVICE: u8 = 0x1e;

/// What is the matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Fault(Fault),
    /// Nothing listens to the port: the error comes from the address the frame was sent to.
    NoPort,
}

impl Cause {
    /// Type, code and the word after the checksum.
    fn message4(self) -> Icmp {
        let (kind, code, rest) = match self {
            Self::Fault(Fault::TimeExceeded) => (v4::TIME_EXCEEDED, 0, 0),
            Self::Fault(Fault::NoRoute) => (v4::UNREACHABLE, 0, 0),
            Self::Fault(Fault::HostUnreachable) => (v4::UNREACHABLE, 1, 0),
            Self::NoPort => (v4::UNREACHABLE, 3, 0),
            Self::Fault(Fault::TooBig(mtu)) => (v4::UNREACHABLE, 4, mtu.into()),
        };
        Icmp { kind, code, checksum: 0, rest }
    }

    fn message6(self) -> Icmp {
        let (kind, code, rest) = match self {
            Self::Fault(Fault::TimeExceeded) => (v6::TIME_EXCEEDED, 0, 0),
            Self::Fault(Fault::NoRoute) => (v6::UNREACHABLE, 0, 0),
            Self::Fault(Fault::HostUnreachable) => (v6::UNREACHABLE, 3, 0),
            Self::NoPort => (v6::UNREACHABLE, 4, 0),
            // No IPv6 link takes less (RFC 8200 5).
            Self::Fault(Fault::TooBig(mtu)) => (v6::TOO_BIG, 0, u32::from(mtu).max(MOST6 as u32)),
        };
        Icmp { kind, code, checksum: 0, rest }
    }
}

/// An error that may be sent.
struct Plan {
    /// From us, to the source of the frame.
    ends: Ends,
    /// Bytes of the packet that are quoted.
    quote: usize,
    /// The way back, and its number; 0 when the way back is the link the frame came by, without a route.
    to: Adjacency,
    number: u32,
}

enum Ends {
    V4 { from: Ipv4Addr, peer: Ipv4Addr, tos: u8 },
    V6 { from: Ipv6Addr, peer: Ipv6Addr },
}

impl<A: Alloc> Local<A> {
    /// Drops a frame for `reason` and sends its source an ICMP error, if that is allowed.
    pub(super) fn complain(
        &mut self,
        mut frame: A::Buf,
        reason: DropReason,
        cause: Cause,
        cx: &Cx<'_>,
        out: &mut Outputs<A::Buf>,
    ) {
        let l2 = Layer2::parse(frame.data());
        let plan = l2.and_then(|l2| plan(frame.data(), &l2, cause, cx).map(|plan| (l2, plan)));
        let Some((l2, plan)) = plan else { return out.drops.drop(frame, reason) };
        if !self.error_tokens.take(cx.now, cx.tables.icmp_errors_per_second) {
            self.counts.errors_withheld += 1;
            return out.drops.drop(frame, reason);
        }
        let waits = plan.to.next != Next::Forward;
        self.ident = self.ident.wrapping_add(1);
        if !build(&mut frame, &l2, cause, &plan, self.ident, waits) {
            return out.drops.drop(frame, reason);
        }
        let ethertype = l2.ethertype;
        if waits {
            // It waits like any frame, and is routed once more as if it had just come in.
            let back = Adjacency::forward(cx.at.port, cx.at.interface, cx.interface.mac, cx.interface.mac);
            if !encapsulate(&mut frame, 0, &back, ethertype, l2.tci) {
                return out.drops.drop(frame, reason);
            }
            let dst = match plan.ends {
                Ends::V4 { peer, .. } => IpAddr::V4(peer),
                Ends::V6 { peer, .. } => IpAddr::V6(peer),
            };
            out.drops.count(reason);
            out.originated += 1;
            self.counts.errors_sent += 1;
            self.wait(frame, dst, plan.number, cx, out);
            return;
        }
        let labels = usize::from(plan.to.push).checked_sub(1).map(|i| cx.tables.labels.stacks.get(i));
        let ethertype = match labels {
            None => ethertype,
            Some(Some(stack)) if push(&mut frame, stack) => ethertype::MPLS,
            Some(_) => return out.drops.drop(frame, reason),
        };
        if !encapsulate(&mut frame, 0, &plan.to, ethertype, l2.tci) {
            return out.drops.drop(frame, reason);
        }
        out.drops.count(reason);
        self.counts.errors_sent += 1;
        out.originate(plan.to.port.into(), frame);
    }
}

/// What the error will look like; `None` when none may be sent (RFC 1122 3.2.2, RFC 1812 4.3.2.7, RFC 4443 2.4 e).
fn plan(frame: &[u8], l2: &Layer2, cause: Cause, cx: &Cx<'_>) -> Option<Plan> {
    if l2.dst.is_group() || l2.src.is_group() {
        return None;
    }
    let packet = frame.get(l2.len..)?;
    match l2.ethertype {
        ethertype::IPV4 => plan4(packet, cause, cx),
        ethertype::IPV6 => plan6(packet, l2, cause, cx),
        _ => None,
    }
}

fn plan4(packet: &[u8], cause: Cause, cx: &Cx<'_>) -> Option<Plan> {
    let (ip, payload) = Ipv4::parse(packet)?;
    let len = packet.len().min(ip.total_len.into());
    let unicast = |addr| own::is_host4(addr) && !own::is_broadcast(cx.interface, addr);
    let splittable = matches!(cause, Cause::Fault(Fault::TooBig(_))) && !ip.dont_fragment;
    if len < packet.len() - payload.len() || ip.fragment_offset != 0 || splittable {
        return None;
    }
    if !unicast(ip.src) || !unicast(ip.dst) {
        return None;
    }
    if ip.protocol == protocol::ICMP {
        let kind = *payload.first()?;
        let error = [v4::UNREACHABLE, v4::SOURCE_QUENCH, v4::REDIRECT, v4::TIME_EXCEEDED, v4::PARAMETER_PROBLEM];
        if error.contains(&kind) || kind > v4::MASK_REPLY {
            return None;
        }
    }
    let number = cx.tables.route4(ip.src, ip.dst.to_bits());
    let to = way_back(cx.tables, number)?;
    let from = match cause {
        Cause::NoPort => ip.dst,
        // An address of the link that the error leaves by (RFC 1812 4.3.2.4).
        Cause::Fault(_) => {
            let leaves = cx.tables.interfaces.get(usize::from(to.interface));
            leaves.and_then(|link| own::source4(link, ip.src)).or_else(|| own::source4(cx.interface, ip.src))?
        }
    };
    let room = MOST4.min(to.mtu.into()).checked_sub(HEAD4).filter(|&room| room > ipv4::LEN)?;
    let tos = (ip.dscp << 2 | ip.ecn) & SERVICE | INTERNET_CONTROL;
    Some(Plan { ends: Ends::V4 { from, peer: ip.src, tos }, quote: len.min(room), to, number })
}

fn plan6(packet: &[u8], l2: &Layer2, cause: Cause, cx: &Cx<'_>) -> Option<Plan> {
    let (ip, payload) = Ipv6::parse(packet)?;
    let payload = payload.get(..payload.len().min(ip.payload_len.into()))?;
    if !own::is_host6(ip.src) || !own::is_host6(ip.dst) || !may_be_told_of(ip.next_header, payload) {
        return None;
    }
    // A link-local source is on the link the frame came by, and nowhere else.
    let (number, to) = if own::is_link_local(ip.src) {
        (0, Adjacency::forward(cx.at.port, cx.at.interface, l2.src, cx.interface.mac))
    } else {
        let number = cx.tables.route6(ip.src, ip.dst.to_bits() as u32);
        (number, way_back(cx.tables, number)?)
    };
    let from = match cause {
        Cause::NoPort => ip.dst,
        Cause::Fault(_) => own::source6(cx.interface, ip.src)?,
    };
    let quote = (ipv6::LEN + payload.len()).min(MOST6 - HEAD6);
    Some(Plan { ends: Ends::V6 { from, peer: ip.src }, quote, to, number })
}

/// The way to the source of a frame, when frames are sent there at all.
fn way_back(tables: &Tables, number: u32) -> Option<Adjacency> {
    let to = tables.adjacencies.get(number as usize)?;
    matches!(to.next, Next::Forward | Next::Glean | Next::Unresolved).then_some(*to)
}

/// Whether what is behind the extension headers is neither an ICMPv6 error nor out of sight.
fn may_be_told_of(mut next: u8, mut rest: &[u8]) -> bool {
    for _ in 0..8 {
        let len = match next {
            protocol::ICMPV6 => {
                return rest.first().is_some_and(|&kind| kind >= v6::ECHO_REQUEST && kind != v6::REDIRECT)
            }
            // Hop-by-hop, routing, destination options: in units of 8 bytes, not counting the first.
            0 | 43 | 60 => rest.get(1).map(|&units| 8 + 8 * usize::from(units)),
            // Authentication: in units of 4 bytes, less 2.
            51 => rest.get(1).map(|&units| 8 + 4 * usize::from(units)),
            protocol::IPV6_FRAGMENT => match rest.get(2..4) {
                Some(&[o0, o1]) if u16::from_be_bytes([o0, o1]) & 0xfff8 == 0 => Some(8),
                _ => None,
            },
            _ => return true,
        };
        let (Some(&after), Some(behind)) = (rest.first(), len.and_then(|len| rest.get(len..))) else { return false };
        (next, rest) = (after, behind);
    }
    false
}

/// Turns the frame into the error, without its link-layer header. `false`, and the frame spoilt, without headroom.
fn build<B: Buffer>(frame: &mut B, l2: &Layer2, cause: Cause, plan: &Plan, ident: u16, waits: bool) -> bool {
    // One that waits is routed before it leaves, which takes one away.
    let ttl = TTL + u8::from(waits);
    if !frame.trim_front(l2.len) || !frame.set_len(plan.quote) {
        return false;
    }
    if cause == Cause::Fault(Fault::HostUnreachable) {
        // The frame had been forwarded already when its neighbour was found missing.
        age(frame.data_mut());
    }
    match plan.ends {
        Ends::V4 { from, peer, tos } => {
            let ip = Ipv4 {
                dscp: tos >> 2,
                ecn: tos & 3,
                total_len: (HEAD4 + plan.quote) as u16,
                id: ident,
                dont_fragment: false,
                more_fragments: false,
                fragment_offset: 0,
                ttl,
                protocol: protocol::ICMP,
                checksum: 0,
                src: from,
                dst: peer,
            };
            frame.prepend(HEAD4)
                && write_ip4(Some(frame.data_mut()), ip)
                && write_icmp(frame.data_mut().get_mut(ipv4::LEN..), cause.message4(), 0)
        }
        Ends::V6 { from, peer } => {
            let len = (icmp::LEN + plan.quote) as u16;
            let ip = Ipv6 {
                traffic_class: 0,
                flow_label: 0,
                payload_len: len,
                next_header: protocol::ICMPV6,
                hop_limit: ttl,
                src: from,
                dst: peer,
            };
            let pseudo = checksum::pseudo_v6(from, peer, protocol::ICMPV6, len.into());
            frame.prepend(HEAD6)
                && ip.write(frame.data_mut())
                && write_icmp(frame.data_mut().get_mut(ipv6::LEN..), cause.message6(), pseudo)
        }
    }
}

/// One TTL or hop limit less, unless there is none left.
fn age(packet: &mut [u8]) {
    match packet {
        [first, _, _, _, _, _, _, hops, ..] if *first >> 4 == 6 => *hops = hops.saturating_sub(1),
        [first, _, _, _, _, _, _, _, ttl, protocol, c0, c1, ..] if *first >> 4 == 4 && *ttl > 0 => {
            let old = u16::from_be_bytes([*ttl, *protocol]);
            *ttl -= 1;
            let new = u16::from_be_bytes([*ttl, *protocol]);
            [*c0, *c1] = checksum::update(u16::from_be_bytes([*c0, *c1]), old, new).to_be_bytes();
        }
        _ => {}
    }
}

/// Puts a label stack in front of the packet; `false` without headroom.
fn push<B: Buffer>(frame: &mut B, stack: &Stack) -> bool {
    let entries = stack.entries.get(..stack.len.into()).unwrap_or_default();
    if !frame.prepend(entries.len() * mpls::LEN) {
        return false;
    }
    for (i, (to, entry)) in frame.data_mut().chunks_exact_mut(mpls::LEN).zip(entries).enumerate() {
        let [a, b, c, _] = *entry;
        to.copy_from_slice(&[a, b, c | u8::from(i + 1 == entries.len()), TTL]);
    }
    !entries.is_empty()
}
