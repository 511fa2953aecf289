//! What a router checks before it looks at a route (RFC 1812 5.2.2 and 5.3, RFC 8200 3).

use packet::{checksum, headers::ethertype};

use crate::DropReason;

/// Bytes of an Ethernet header.
pub(super) const ETHERNET: usize = 14;
/// Bytes of a VLAN tag.
pub(super) const VLAN: usize = 4;

/// Which destination MAC addresses are taken: those where `first 8 bytes & mask == want`, little endian.
#[derive(Debug, Clone, Copy)]
pub(super) struct MacFilter {
    mask: u64,
    want: u64,
}

impl MacFilter {
    /// Any unicast address.
    pub(super) const UNICAST: Self = Self { mask: 1, want: 0 };

    /// Only this address.
    pub(super) fn only(mac: [u8; 6]) -> Self {
        let [a, b, c, d, e, f] = mac;
        Self { mask: 0xffff_ffff_ffff, want: u64::from_le_bytes([a, b, c, d, e, f, 0, 0]) }
    }

    #[inline(always)]
    fn takes(self, head: [u8; 8]) -> bool {
        u64::from_le_bytes(head) & self.mask == self.want
    }
}

/// A frame that may be routed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) tagged: bool,
    pub(super) dst: Dst,
}

/// The destination of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dst {
    /// IPv4, host byte order.
    V4(u32),
    /// IPv6.
    V6([u8; 16]),
}

/// The destination of an untagged IPv4 frame without options in which nothing is wrong. `None` says nothing: the
/// frame may be another kind or a bad one, [`parse`] tells which.
#[inline(always)]
pub(super) fn plain_ip4(data: &[u8], macs: MacFilter) -> Option<u32> {
    let frame: &[u8; 34] = data.first_chunk()?;
    let [m0, m1, m2, m3, m4, m5, m6, m7, ..] = *frame;
    let ip: &[u8; 20] = frame.last_chunk()?;
    let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *ip;
    let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    // One branch for all: each check is a flag, and nearly every frame passes them all.
    let good = (frame[12..15] == [0x08, 0x00, 0x45])
        & macs.takes([m0, m1, m2, m3, m4, m5, m6, m7])
        & (total >= 20)
        & (total + ETHERNET <= data.len())
        & (ip[8] > 1)
        & checksum_holds(ip)
        & !martian_source4(u32::from_be_bytes([s0, s1, s2, s3]));
    good.then_some(u32::from_be_bytes([d0, d1, d2, d3]))
}

/// The same for an untagged IPv6 frame.
#[inline(always)]
pub(super) fn plain_ip6(data: &[u8], macs: MacFilter) -> Option<[u8; 16]> {
    let frame: &[u8; 54] = data.first_chunk()?;
    let [m0, m1, m2, m3, m4, m5, m6, m7, ..] = *frame;
    let src: &[u8; 16] = frame[22..].first_chunk()?;
    let payload = usize::from(u16::from_be_bytes([frame[18], frame[19]]));
    let good = (frame[12..14] == [0x86, 0xdd])
        & (frame[14] >> 4 == 6)
        & macs.takes([m0, m1, m2, m3, m4, m5, m6, m7])
        & (payload + ETHERNET + 40 <= data.len())
        & (frame[21] > 1)
        & !martian_source6(u128::from_be_bytes(*src));
    good.then_some(*frame.last_chunk()?)
}

/// Everything [`plain_ip4`] and [`plain_ip6`] take and every other kind that may be routed, or why not.
pub(super) fn parse(data: &[u8], macs: MacFilter) -> Result<Parsed, DropReason> {
    let Some(&[m0, m1, m2, m3, m4, m5, m6, m7, _, _, _, _, t0, t1]) = data.first_chunk::<ETHERNET>() else {
        return Err(DropReason::Runt);
    };
    if !macs.takes([m0, m1, m2, m3, m4, m5, m6, m7]) {
        return Err(if m0 & 1 != 0 { DropReason::LinkGroup } else { DropReason::NotOurMac });
    }
    let mut kind = u16::from_be_bytes([t0, t1]);
    let mut packet = &data[ETHERNET..];
    let tagged = kind == ethertype::VLAN;
    if tagged {
        let Some((&[_, _, t0, t1], rest)) = packet.split_first_chunk::<VLAN>() else {
            return Err(DropReason::Runt);
        };
        (kind, packet) = (u16::from_be_bytes([t0, t1]), rest);
    }
    let dst = match kind {
        ethertype::IPV4 => Dst::V4(ip4(packet)?),
        ethertype::IPV6 => Dst::V6(ip6(packet)?),
        _ => return Err(DropReason::NotIp),
    };
    Ok(Parsed { tagged, dst })
}

fn ip4(packet: &[u8]) -> Result<u32, DropReason> {
    let Some(fixed) = packet.first_chunk::<20>() else {
        return Err(DropReason::Runt);
    };
    let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *fixed;
    let header = usize::from(fixed[0] & 0xf) * 4;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if fixed[0] >> 4 != 4 || header < 20 {
        return Err(DropReason::Ip4Header);
    }
    if total < header || total > packet.len() {
        return Err(DropReason::Ip4Length);
    }
    if !checksum_holds(&packet[..header]) {
        return Err(DropReason::Ip4Checksum);
    }
    if martian_source4(u32::from_be_bytes([s0, s1, s2, s3])) {
        return Err(DropReason::MartianSource);
    }
    if fixed[8] <= 1 {
        return Err(DropReason::Ip4Ttl);
    }
    Ok(u32::from_be_bytes([d0, d1, d2, d3]))
}

fn ip6(packet: &[u8]) -> Result<[u8; 16], DropReason> {
    let Some(fixed) = packet.first_chunk::<40>() else {
        return Err(DropReason::Runt);
    };
    let [version, _, _, _, l0, l1, _, hop_limit, addresses @ ..] = fixed;
    if version >> 4 != 6 {
        return Err(DropReason::Ip6Header);
    }
    if 40 + usize::from(u16::from_be_bytes([*l0, *l1])) > packet.len() {
        return Err(DropReason::Ip6Length);
    }
    let (Some(src), Some(dst)) = (addresses.first_chunk(), addresses.last_chunk()) else {
        return Err(DropReason::Runt);
    };
    if martian_source6(u128::from_be_bytes(*src)) {
        return Err(DropReason::MartianSource);
    }
    if *hop_limit <= 1 {
        return Err(DropReason::Ip6HopLimit);
    }
    Ok(*dst)
}

/// Whether the ones' complement sum over the header is all ones (RFC 1071); the length is a multiple of 4.
#[inline(always)]
fn checksum_holds(header: &[u8]) -> bool {
    // The sum does not depend on the byte order, so the machine's own serves.
    let words = header.chunks_exact(4).map(|w| w.first_chunk().map_or(0, |w| u64::from(u32::from_ne_bytes(*w))));
    checksum::fold(words.sum()) == 0xffff
}

/// This network, loopback, multicast, reserved and broadcast: no host's own address.
#[inline(always)]
fn martian_source4(src: u32) -> bool {
    let top = src >> 24;
    (top == 0) | (top == 127) | (top >= 224)
}

/// Unspecified, loopback, multicast, and link-local, which must stay on its link.
#[inline(always)]
fn martian_source6(src: u128) -> bool {
    (src <= 1) | (src >> 120 == 0xff) | (src >> 118 == 0x3fa)
}
