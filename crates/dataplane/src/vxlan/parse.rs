//! Which frames of the underlay are VXLAN for one of our tunnel addresses, and what is inside.

use std::net::IpAddr;

use packet::{
    checksum,
    headers::{
        ethertype,
        ipv4::Ipv4,
        ipv6::{self, Ipv6},
        protocol,
        udp::Udp,
        vlan::Vlan,
    },
};

use super::outer::sum;
use crate::{
    tables::{MacFilter, PortTable, ETHERNET, I_FLAG, NO_INTERFACE, UDP_VXLAN},
    DropReason,
};

/// A VXLAN frame for one of our tunnel addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tunnelled {
    /// The other end.
    pub src: IpAddr,
    /// Which of our own ends.
    pub end: usize,
    /// The network.
    pub vni: u32,
    /// Where the inner frame begins and ends in the frame.
    pub inner: (usize, usize),
}

/// What a frame of the underlay is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnderlayKind {
    /// Not VXLAN for us, or not a good IP packet: routed, or dropped with a reason of its own, by the router.
    Underlay,
    /// VXLAN for us.
    Tunnelled(Tunnelled),
    /// VXLAN for us, of which nothing can be made.
    Bad(DropReason),
}

/// What a plain frame has to say of where it belongs, as it stands in the frame; `N` is 8 for IPv4 and 32 for IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plain<const N: usize> {
    /// Source and destination address.
    addresses: [u8; N],
    /// UDP destination port in the upper half, VNI in the lower.
    port_vni: u64,
}

impl<const N: usize> Plain<N> {
    /// What no frame says.
    pub(super) const NONE: Self = Self { addresses: [0; N], port_vni: u64::MAX };

    /// Where the inner frame begins.
    pub(super) const INNER: usize = if N == 8 { 50 } else { 70 };

    /// What [`parse`] would say of the frame, which ends at `frame_end`.
    #[inline(never)]
    pub(super) fn kind(&self, ends: &[(IpAddr, u16)], frame_end: usize) -> UnderlayKind {
        let (src, dst) = self.addresses.split_at(N / 2);
        let (Some(src), Some(dst)) = (addr(src), addr(dst)) else { return UnderlayKind::Underlay };
        let end = (dst, (self.port_vni >> 32) as u16);
        match ends.iter().position(|e| *e == end) {
            Some(end) if !martian(src) => UnderlayKind::Tunnelled(Tunnelled {
                src,
                end,
                vni: self.port_vni as u32,
                inner: (Self::INNER, frame_end),
            }),
            _ => UnderlayKind::Underlay,
        }
    }
}

fn addr(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => bytes.first_chunk::<4>().map(|b| (*b).into()),
        _ => bytes.first_chunk::<16>().map(|b| (*b).into()),
    }
}

/// The plain case in which nothing is wrong: an untagged IPv4 frame without options, not a fragment, UDP without checksum,
/// the I flag set, at least an Ethernet header inside. Returns with it the length of the frame without padding. Whether
/// it is ours is for the caller to see. `None` says nothing; [`parse`] tells.
#[inline(always)]
pub(super) fn plain4(data: &[u8], macs: MacFilter) -> Option<(Plain<8>, usize)> {
    let head: &[u8; 50] = data.first_chunk()?;
    let [m0, m1, m2, m3, m4, m5, m6, m7, ..] = *head;
    let total = usize::from(u16::from_be_bytes([head[16], head[17]]));
    let udp_len = usize::from(u16::from_be_bytes([head[38], head[39]]));
    let words = head[14..34].chunks_exact(4).map(|w| w.first_chunk().map_or(0, |w| u64::from(u32::from_ne_bytes(*w))));
    let good = (head[12..15] == [0x08, 0x00, 0x45])
        & macs.takes([m0, m1, m2, m3, m4, m5, m6, m7])
        & (head[23] == protocol::UDP)
        & ((head[20] & 0x3f) | head[21] == 0)
        & (total + ETHERNET <= data.len())
        & (udp_len + 20 == total)
        & (udp_len >= UDP_VXLAN + ETHERNET)
        & (head[40..42] == [0, 0])
        & (head[42] & I_FLAG != 0)
        & (checksum::fold(words.sum()) == 0xffff);
    let [.., a, b, c, d, e, f, g, h, _, _, p, q, _, _, _, _, _, _, _, _, v0, v1, v2, _] = *head;
    let port_vni = u64::from_be_bytes([0, 0, p, q, 0, v0, v1, v2]);
    good.then_some((Plain { addresses: [a, b, c, d, e, f, g, h], port_vni }, total + ETHERNET))
}

/// The same for an untagged IPv6 frame; of the UDP checksum [`sound6`] tells.
#[inline(always)]
pub(super) fn plain6(data: &[u8], macs: MacFilter) -> Option<(Plain<32>, usize)> {
    let head: &[u8; 70] = data.first_chunk()?;
    let [m0, m1, m2, m3, m4, m5, m6, m7, ..] = *head;
    let payload = usize::from(u16::from_be_bytes([head[18], head[19]]));
    let good = (head[12..14] == [0x86, 0xdd])
        & (head[14] >> 4 == 6)
        & macs.takes([m0, m1, m2, m3, m4, m5, m6, m7])
        & (head[20] == protocol::UDP)
        & (head[18..20] == head[58..60])
        & (payload >= UDP_VXLAN + ETHERNET)
        & (head[62] & I_FLAG != 0);
    let end = payload + 54;
    if !good | (end > data.len()) {
        return None;
    }
    let [.., p, q, _, _, _, _, _, _, _, _, v0, v1, v2, _] = *head;
    let port_vni = u64::from_be_bytes([0, 0, p, q, 0, v0, v1, v2]);
    Some((Plain { addresses: *head[22..].first_chunk()?, port_vni }, end))
}

/// Whether the UDP checksum of a [`plain6`] frame holds, or is zero.
#[inline]
pub(super) fn sound6(data: &[u8], end: usize) -> bool {
    // The addresses stand right in front of the datagram, so that one sum takes both.
    let Some((summed, length)) = data.get(22..end).zip(end.checked_sub(54)) else { return false };
    let unsummed = data.get(60..62).is_some_and(|sum| *sum == [0, 0]);
    unsummed || checksum::fold(sum(summed) + u64::from(protocol::UDP) + length as u64) == 0xffff
}

/// Everything [`plain4`] and [`plain6`] take and every other form.
///
/// A UDP checksum that is there must hold. Over IPv6 one of zero is taken, as RFC 6935 5 lets tunnels do. The reserved
/// bits of VXLAN are not looked at (RFC 7348 5). A fragment is the router's, which refuses it: tunnel ends may (RFC 7348
/// 4.3).
#[inline(never)]
pub(super) fn parse(data: &[u8], port: &PortTable, ends: &[(IpAddr, u16)]) -> UnderlayKind {
    packet(data, port, ends).unwrap_or(UnderlayKind::Underlay)
}

fn packet(data: &[u8], port: &PortTable, ends: &[(IpAddr, u16)]) -> Option<UnderlayKind> {
    let head = data.first_chunk::<8>()?;
    let (ethernet, mut packet) = data.split_first_chunk::<ETHERNET>()?;
    let [.., t0, t1] = *ethernet;
    let mut kind = u16::from_be_bytes([t0, t1]);
    if !port.macs.takes(*head) {
        return None;
    }
    if kind == ethertype::VLAN {
        let (tag, rest) = Vlan::parse(packet)?;
        let known = |vlans: &[u16; 4096]| vlans.get(usize::from(tag.vid)).is_some_and(|i| *i != NO_INTERFACE);
        if !port.vlans.as_deref().is_none_or(known) {
            return None;
        }
        (kind, packet) = (tag.ether_type, rest);
    }
    let ip = match kind {
        ethertype::IPV4 => ip4(packet)?,
        ethertype::IPV6 => ip6(packet)?,
        _ => return None,
    };
    let (header, payload) = Udp::parse(ip.payload)?;
    let end = ends.iter().position(|end| *end == (ip.dst, header.dst_port))?;
    // A bad packet is left to the router, which knows why it is bad; IPv6 has no header checksum.
    let ip_header = packet.get(..ip.header)?;
    if ip.dst.is_ipv4() && checksum::fold(checksum::sum(ip_header)) != 0xffff || martian(ip.src) {
        return None;
    }
    let len = usize::from(header.len);
    let Some(datagram) = ip.payload.get(..len).filter(|_| len >= 8) else {
        return Some(UnderlayKind::Bad(DropReason::VxlanOuter));
    };
    if header.checksum != 0 && checksum::fold(ip.pseudo + len as u64 + sum(datagram)) != 0xffff {
        return Some(UnderlayKind::Bad(DropReason::VxlanOuter));
    }
    let vxlan = payload.get(..len - 8).and_then(|payload| payload.split_first_chunk::<8>());
    let Some((&[_, _, _, _, v0, v1, v2, _], inner)) = vxlan.filter(|(header, _)| header[0] & I_FLAG != 0) else {
        return Some(UnderlayKind::Bad(DropReason::VxlanHeader));
    };
    if inner.len() < ETHERNET {
        return Some(UnderlayKind::Bad(DropReason::Runt));
    }
    let vni = u32::from_be_bytes([0, v0, v1, v2]);
    let begin = data.len() - packet.len() + ip.header + UDP_VXLAN;
    Some(UnderlayKind::Tunnelled(Tunnelled { src: ip.src, end, vni, inner: (begin, begin + inner.len()) }))
}

/// An IP packet that carries UDP and is whole.
struct Ip<'a> {
    src: IpAddr,
    dst: IpAddr,
    /// Length of the header.
    header: usize,
    /// Sum of the pseudo-header but for the length.
    pseudo: u64,
    payload: &'a [u8],
}

fn ip4(packet: &[u8]) -> Option<Ip<'_>> {
    let (ip, rest) = Ipv4::parse(packet)?;
    let header = packet.len() - rest.len();
    if ip.protocol != protocol::UDP || ip.more_fragments || ip.fragment_offset != 0 {
        return None;
    }
    let payload = rest.get(..usize::from(ip.total_len).checked_sub(header)?)?;
    let pseudo = checksum::pseudo_v4(ip.src, ip.dst, protocol::UDP, 0);
    Some(Ip { src: ip.src.into(), dst: ip.dst.into(), header, pseudo, payload })
}

fn ip6(packet: &[u8]) -> Option<Ip<'_>> {
    let (ip, rest) = Ipv6::parse(packet)?;
    if ip.next_header != protocol::UDP {
        return None;
    }
    let payload = rest.get(..usize::from(ip.payload_len))?;
    let pseudo = checksum::pseudo_v6(ip.src, ip.dst, protocol::UDP, 0);
    Some(Ip { src: ip.src.into(), dst: ip.dst.into(), header: ipv6::LEN, pseudo, payload })
}

/// No host's own address.
fn martian(src: IpAddr) -> bool {
    let reserved = matches!(src, IpAddr::V4(src) if src.octets()[0] == 0 || src.octets()[0] >= 240);
    reserved || src.is_unspecified() || src.is_loopback() || src.is_multicast()
}
