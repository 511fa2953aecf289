//! IP packets to ourselves: echo (RFC 792, RFC 4443 4), and what nothing here listens to.

use std::net::IpAddr;

use packet::{
    checksum,
    headers::{
        icmp::{self, v4, v6, Icmp},
        ipv4::{self, Ipv4},
        ipv6::{self, Ipv6},
        protocol, udp,
    },
    Alloc, Buffer,
};

use super::{
    l2::{self, Layer2},
    own,
    state::{Cx, Local, LocalOutcome},
};
use crate::DropReason;

/// TTL and hop limit of what is sent from here.
pub(super) const TTL: u8 = 64;
/// Least length of a frame without FCS: padding up to it is left where it is.
const MIN_FRAME: usize = 60;

impl<A: Alloc> Local<A> {
    pub(super) fn ip4(&mut self, frame: &mut A::Buf, l2: &Layer2, cx: &Cx<'_>) -> LocalOutcome {
        let data = frame.data_mut();
        let packet = data.get(l2.len..).unwrap_or_default();
        let (ip, header) = match ip4_header(packet) {
            Ok(read) => read,
            Err(reason) => return LocalOutcome::Drop(reason),
        };
        let (src, dst) = (IpAddr::V4(ip.src), IpAddr::V4(ip.dst));
        if !own::is_host4(ip.src) || own::is_broadcast(cx.interface, ip.src) || own::owns(cx.interface, src) {
            return LocalOutcome::Drop(DropReason::MartianSource);
        }
        if l2.dst.is_group() {
            return LocalOutcome::Drop(DropReason::LinkGroup);
        }
        // What would have to be put together first, or asks for more than an answer, is nobody's here.
        let plain = header == ipv4::LEN && !ip.more_fragments && ip.fragment_offset == 0;
        if !plain || !own::is_ours(cx.interface, cx.tables, dst) {
            return LocalOutcome::Drop(DropReason::NotListening);
        }
        let total = usize::from(ip.total_len);
        let body = packet.get(header..total).unwrap_or_default();
        match ip.protocol {
            protocol::ICMP => {}
            protocol::UDP => {
                let pseudo = |len| checksum::pseudo_v4(ip.src, ip.dst, protocol::UDP, len);
                return to_no_port(body, true, pseudo);
            }
            _ => return LocalOutcome::Drop(DropReason::NotListening),
        }
        let Some((icmp, _)) = Icmp::parse(body) else { return LocalOutcome::Drop(DropReason::Icmp) };
        let sum = checksum::sum(body);
        if checksum::fold(sum) != 0xffff || icmp.kind != v4::ECHO_REQUEST {
            return LocalOutcome::Drop(DropReason::Icmp);
        }
        let rest = sum - u64::from(icmp.kind) * (1 << 24) - u64::from(icmp.checksum);
        let icmp = Icmp { kind: v4::ECHO_REPLY, checksum: checksum::finish(rest), ..icmp };
        let ip = Ipv4 { ttl: TTL, src: ip.dst, dst: ip.src, dont_fragment: false, checksum: 0, ..ip };
        if !(write_ip4(data.get_mut(l2.len..), ip) && data.get_mut(l2.len + header..).is_some_and(|to| icmp.write(to)))
        {
            return LocalOutcome::Drop(DropReason::Icmp);
        }
        self.echoed(data, l2, l2.len + total, cx)
    }

    pub(super) fn ip6(&mut self, frame: &mut A::Buf, l2: &Layer2, cx: &Cx<'_>) -> LocalOutcome {
        let packet = frame.data().get(l2.len..).unwrap_or_default();
        let ip = match ip6_header(packet) {
            Ok(ip) => ip,
            Err(reason) => return LocalOutcome::Drop(reason),
        };
        let (src, dst) = (IpAddr::V6(ip.src), IpAddr::V6(ip.dst));
        let body = packet.get(ipv6::LEN..ipv6::LEN + usize::from(ip.payload_len)).unwrap_or_default();
        if ip.src.is_multicast() || ip.src.is_loopback() {
            return LocalOutcome::Drop(DropReason::MartianSource);
        }
        let kind = body.first().filter(|_| ip.next_header == protocol::ICMPV6).copied();
        if matches!(kind, Some(v6::ROUTER_SOLICITATION..=v6::REDIRECT)) {
            return self.nd(frame, l2, &ip, cx);
        }
        if ip.dst.is_multicast() || l2.dst.is_group() {
            return LocalOutcome::Drop(DropReason::LinkGroup);
        }
        if ip.src.is_unspecified() || own::owns(cx.interface, src) {
            return LocalOutcome::Drop(DropReason::MartianSource);
        }
        if !own::is_ours(cx.interface, cx.tables, dst) {
            return LocalOutcome::Drop(match (own::is_link_local(ip.dst), own::is_link_local(ip.src)) {
                (true, _) => DropReason::MartianDestination,
                (_, true) => DropReason::MartianSource,
                _ => DropReason::NotListening,
            });
        }
        let pseudo = |next, len: u16| checksum::pseudo_v6(ip.src, ip.dst, next, len.into());
        match ip.next_header {
            protocol::ICMPV6 => {}
            protocol::UDP => return to_no_port(body, false, |len| pseudo(protocol::UDP, len)),
            _ => return LocalOutcome::Drop(DropReason::NotListening),
        }
        let Some((icmp, _)) = Icmp::parse(body) else { return LocalOutcome::Drop(DropReason::Icmp) };
        let sum = checksum::sum(body) + pseudo(protocol::ICMPV6, ip.payload_len);
        if checksum::fold(sum) != 0xffff || icmp.kind != v6::ECHO_REQUEST {
            return LocalOutcome::Drop(DropReason::Icmp);
        }
        // The two addresses change places, which the sum over them does not notice.
        let step = u64::from(v6::ECHO_REPLY - v6::ECHO_REQUEST) << 24;
        let icmp =
            Icmp { kind: v6::ECHO_REPLY, checksum: checksum::finish(sum - u64::from(icmp.checksum) + step), ..icmp };
        let len = l2.len + ipv6::LEN + body.len();
        let ip = Ipv6 { flow_label: 0, hop_limit: TTL, src: ip.dst, dst: ip.src, ..ip };
        let data = frame.data_mut();
        let (head, at) = (l2.len, l2.len + ipv6::LEN);
        if !(data.get_mut(head..).is_some_and(|to| ip.write(to)) && data.get_mut(at..).is_some_and(|to| icmp.write(to)))
        {
            return LocalOutcome::Drop(DropReason::Icmp);
        }
        self.echoed(data, l2, len, cx)
    }

    fn echoed(&mut self, data: &mut [u8], l2: &Layer2, end: usize, cx: &Cx<'_>) -> LocalOutcome {
        l2::readdress(data, l2.src, cx.interface.mac);
        self.counts.echo_replies += 1;
        LocalOutcome::Answer(end.max(MIN_FRAME).min(data.len()))
    }
}

/// The header and its length, or what is wrong with it (RFC 1812 5.2.2).
fn ip4_header(packet: &[u8]) -> Result<(Ipv4, usize), DropReason> {
    let Some(&[first, ..]) = packet.first_chunk::<{ ipv4::LEN }>() else { return Err(DropReason::Runt) };
    let len = usize::from(first & 0xf) * 4;
    if first >> 4 != 4 || len < ipv4::LEN {
        return Err(DropReason::Ip4Header);
    }
    let (Some((ip, _)), Some(header)) = (Ipv4::parse(packet), packet.get(..len)) else {
        return Err(DropReason::Ip4Length);
    };
    if usize::from(ip.total_len) < len || usize::from(ip.total_len) > packet.len() {
        return Err(DropReason::Ip4Length);
    }
    if checksum::fold(checksum::sum(header)) != 0xffff {
        return Err(DropReason::Ip4Checksum);
    }
    Ok((ip, len))
}

fn ip6_header(packet: &[u8]) -> Result<Ipv6, DropReason> {
    if packet.len() < ipv6::LEN {
        return Err(DropReason::Runt);
    }
    let (ip, payload) = Ipv6::parse(packet).ok_or(DropReason::Ip6Header)?;
    if usize::from(ip.payload_len) > payload.len() {
        return Err(DropReason::Ip6Length);
    }
    Ok(ip)
}

/// UDP: nothing listens, and the sender hears of it when the datagram arrived whole (RFC 1122 4.1.3.1). IPv6 has no
/// datagrams without a checksum (RFC 8200 8.1).
fn to_no_port(body: &[u8], may_lack_sum: bool, pseudo: impl FnOnce(u16) -> u64) -> LocalOutcome {
    let Some((header, _)) = udp::Udp::parse(body) else { return LocalOutcome::Drop(DropReason::NotListening) };
    let datagram = body.get(..header.len.into()).filter(|datagram| datagram.len() >= udp::LEN);
    let whole = datagram.is_some_and(|datagram| {
        let sum = checksum::sum(datagram) + pseudo(header.len);
        (header.checksum == 0 && may_lack_sum) || (header.checksum != 0 && checksum::fold(sum) == 0xffff)
    });
    if whole {
        LocalOutcome::NoPort
    } else {
        LocalOutcome::Drop(DropReason::NotListening)
    }
}

/// Writes an IPv4 header without options, with its checksum; `false` when there is no room.
pub(super) fn write_ip4(to: Option<&mut [u8]>, ip: Ipv4) -> bool {
    let Some(header) = to.and_then(|to| to.first_chunk_mut::<{ ipv4::LEN }>()) else { return false };
    let written = Ipv4 { checksum: 0, ..ip }.write(header);
    let sum = checksum::finish(checksum::sum(header));
    header[ipv4::CHECKSUM..ipv4::CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    written
}

/// Writes an ICMP header in front of what is there already, with the checksum over both and `pseudo`; `false` when
/// there is no room.
pub(super) fn write_icmp(to: Option<&mut [u8]>, message: Icmp, pseudo: u64) -> bool {
    let Some(to) = to else { return false };
    let written = Icmp { checksum: 0, ..message }.write(to);
    let sum = checksum::finish(checksum::sum(to) + pseudo);
    if let Some(field) = to.get_mut(icmp::CHECKSUM..icmp::CHECKSUM + 2) {
        field.copy_from_slice(&sum.to_be_bytes());
    }
    written
}
