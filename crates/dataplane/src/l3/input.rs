//! What a router checks before it looks at a route (RFC 1812 5.2.2 and 5.3, RFC 8200 3).

use packet::headers::ethertype;

use super::framing::{Framing, ETHERNET};
use crate::{
    tables::{Interface, MacFilter, PortTable},
    DropReason,
};

/// ICMPv6, and its neighbour solicitation and advertisement (RFC 4861 4.3, 4.4).
const ICMP6: u8 = 58;
const NEIGHBOUR: [u8; 2] = [135, 136];

/// Bytes of an Ethernet and an IPv4 header, neither with anything optional.
pub(super) const PLAIN: usize = ETHERNET + 20;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parsed {
    /// A packet to look up.
    Packet(Packet),
    /// For the router itself, whatever the routes say.
    Deliver,
}

/// A packet that may be routed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) dst: Dst,
    /// Length by its header, in bytes; 65535 for the few lengths of IPv6 above.
    pub(super) len: u16,
    /// Behind a VLAN tag.
    pub(super) tagged: bool,
    /// Its TTL or hop limit is used up, should it have to go on.
    pub(super) spent: bool,
    /// Its source is link-local, so that it must not go on (RFC 4291 2.5.6).
    pub(super) near: bool,
}

/// The destination of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dst {
    /// IPv4, host byte order.
    V4(u32),
    /// IPv6.
    V6([u8; 16]),
}

/// The destination and the length of an untagged IPv4 packet without options in which nothing is wrong. On `None`
/// the frame may be of another kind or bad: [`parse`] decides.
#[inline(always)]
pub(super) fn plain_ip4(data: &[u8], macs: MacFilter) -> Option<(u32, u16)> {
    plain_ip4_if(data, |head| macs.takes(head))
}

#[inline(always)]
fn plain_ip4_if(data: &[u8], takes: impl Fn([u8; 8]) -> bool) -> Option<(u32, u16)> {
    let frame: &[u8; PLAIN] = data.first_chunk()?;
    let header = Header::from_frame(frame);
    // Nearly every frame passes all of these.
    let good = takes(*frame.first_chunk()?)
        & (frame[12..14] == [8, 0])
        & (header.first as u8 == 0x45)
        & (usize::from(header.total()).wrapping_sub(20) <= data.len() - PLAIN)
        & (frame[22] > 1)
        & !martian_source4(frame[26])
        & all_ones(header.sum());
    good.then_some((header.dst(), header.total()))
}

/// Three words of an IPv4 header without options, little-endian.
#[derive(Clone, Copy)]
pub(super) struct Header {
    pub(super) first: u64,
    second: u64,
    third: u32,
}

impl Header {
    #[inline(always)]
    pub(super) fn from_frame(frame: &[u8; PLAIN]) -> Self {
        let word = |at: usize| frame[at..].first_chunk().copied().map_or(0, u64::from_le_bytes);
        let third = frame.last_chunk().copied().map_or(0, u32::from_le_bytes);
        Self { first: word(ETHERNET), second: word(ETHERNET + 8), third }
    }

    #[inline(always)]
    fn total(self) -> u16 {
        (self.first as u32).swap_bytes() as u16
    }

    #[inline(always)]
    pub(super) fn dst(self) -> u32 {
        self.third.swap_bytes()
    }

    /// The ones' complement sum. It does not depend on the byte order.
    #[inline(always)]
    pub(super) fn sum(self) -> u64 {
        // What is carried out of the top goes back in at the bottom; nothing comes of adding it the second time.
        let (sum, carry) = self.first.carrying_add(self.second, false);
        let (sum, carry) = sum.carrying_add(u64::from(self.third), carry);
        sum + u64::from(carry)
    }
}

/// The same behind a VLAN tag that the port knows.
#[inline(always)]
pub(super) fn tagged_ip4(data: &[u8], port: &PortTable) -> Option<(u32, u16)> {
    let (head, rest) = data.split_first_chunk::<4>()?;
    let [m4, m5, m6, m7, .., t0, t1, c0, c1] = *rest.first_chunk::<12>()?;
    let [m0, m1, m2, m3] = *head;
    let framing = Framing { tci: Some(u16::from_be_bytes([c0, c1])), ether_type: ethertype::IPV4 };
    let ours = port.macs.takes([m0, m1, m2, m3, m4, m5, m6, m7]) & (t0 == 0x81) & (t1 == 0);
    // Less four bytes in front, the rest is like an untagged frame but for its addresses.
    if ours && framing.interface(port).is_some() {
        plain_ip4_if(rest, |_| true)
    } else {
        None
    }
}

/// The same for an untagged IPv6 packet, to other destinations than link-local and multicast ones.
#[inline(always)]
pub(super) fn plain_ip6(data: &[u8], macs: MacFilter) -> Option<([u8; 16], u16)> {
    let frame: &[u8; 54] = data.first_chunk()?;
    let [m0, m1, m2, m3, m4, m5, m6, m7, ..] = *frame;
    let (src, dst): (&[u8; 16], &[u8; 16]) = (frame[22..].first_chunk()?, frame.last_chunk()?);
    let payload = u16::from_be_bytes([frame[18], frame[19]]);
    let src = u128::from_be_bytes(*src);
    let good = (frame[12..14] == [0x86, 0xdd])
        & (frame[14] >> 4 == 6)
        & macs.takes([m0, m1, m2, m3, m4, m5, m6, m7])
        & (usize::from(payload) + ETHERNET + 40 <= data.len())
        & (frame[21] > 1)
        & (dst[0] < 0xfe)
        & !martian_source6(src)
        & !link_local(src);
    good.then_some((*dst, payload.saturating_add(40)))
}

/// Everything [`plain_ip4`] and [`plain_ip6`] take and every other kind that is routed or for the router, or why not.
pub(super) fn parse(data: &[u8], port: &PortTable, interfaces: &[Interface]) -> Result<Parsed, DropReason> {
    let Some(&[m0, m1, m2, m3, m4, m5, m6, m7, ..]) = data.first_chunk::<ETHERNET>() else {
        return Err(DropReason::Runt);
    };
    let group = m0 & 1 != 0;
    if !group && !port.macs.takes([m0, m1, m2, m3, m4, m5, m6, m7]) {
        return Err(DropReason::NotOurMac);
    }
    let framing = Framing::read(data).ok_or(DropReason::Runt)?;
    let interface = framing.interface(port).ok_or(DropReason::VlanUnknown)?;
    let packet = data.get(framing.len()..).unwrap_or_default();
    let parsed = match framing.ether_type {
        ethertype::ARP => Ok(Parsed::Deliver),
        ethertype::IPV6 => ip6(packet, interfaces.get(usize::from(interface)).filter(|_| !group)),
        ethertype::IPV4 => ip4(packet),
        ethertype::VLAN | ethertype::QINQ => Err(DropReason::VlanUnknown),
        _ => Err(DropReason::NotIp),
    };
    match parsed {
        // What is sent to a group is for the router itself or not for a router at all.
        Ok(Parsed::Packet(_)) | Err(_) if group => Err(DropReason::LinkGroup),
        Ok(Parsed::Packet(packet)) => Ok(Parsed::Packet(Packet { tagged: framing.tci.is_some(), ..packet })),
        other => other,
    }
}

fn ip4(packet: &[u8]) -> Result<Parsed, DropReason> {
    let Some(fixed) = packet.first_chunk::<20>() else {
        return Err(DropReason::Runt);
    };
    let [.., d0, d1, d2, d3] = *fixed;
    let header = usize::from(fixed[0] & 0xf) * 4;
    let total = u16::from_be_bytes([fixed[2], fixed[3]]);
    if fixed[0] >> 4 != 4 || header < 20 {
        return Err(DropReason::Ip4Header);
    }
    if usize::from(total) < header || usize::from(total) > packet.len() {
        return Err(DropReason::Ip4Length);
    }
    if !packet.get(..header).is_some_and(checksum_holds) {
        return Err(DropReason::Ip4Checksum);
    }
    if martian_source4(fixed[12]) {
        return Err(DropReason::MartianSource);
    }
    Ok(Parsed::Packet(Packet {
        dst: Dst::V4(u32::from_be_bytes([d0, d1, d2, d3])),
        len: total,
        tagged: false,
        spent: fixed[8] <= 1,
        near: false,
    }))
}

fn ip6(packet: &[u8], interface: Option<&Interface>) -> Result<Parsed, DropReason> {
    let Some((fixed, rest)) = packet.split_first_chunk::<40>() else {
        return Err(DropReason::Runt);
    };
    let [version, _, _, _, l0, l1, next_header, hop_limit, addresses @ ..] = fixed;
    if version >> 4 != 6 {
        return Err(DropReason::Ip6Header);
    }
    let payload = u16::from_be_bytes([*l0, *l1]);
    if usize::from(payload) > rest.len() {
        return Err(DropReason::Ip6Length);
    }
    let (Some(src), Some(dst)) = (addresses.first_chunk(), addresses.last_chunk()) else {
        return Err(DropReason::Runt);
    };
    let (from, to) = (u128::from_be_bytes(*src), u128::from_be_bytes(*dst));
    // Before the source is looked at: a host that tries an address has none yet (RFC 4862 5.4.2).
    let asks = *next_header == ICMP6 && rest.first().is_some_and(|kind| NEIGHBOUR.contains(kind));
    if asks && neighbour_group(to) {
        return Ok(Parsed::Deliver);
    }
    if martian_source6(from) {
        return Err(DropReason::MartianSource);
    }
    if link_local(to) {
        let ours = interface.is_some_and(|at| at.ip6.iter().any(|(own, _)| own.to_bits() == to));
        return if ours { Ok(Parsed::Deliver) } else { Err(DropReason::MartianDestination) };
    }
    Ok(Parsed::Packet(Packet {
        dst: Dst::V6(*dst),
        len: payload.saturating_add(40),
        tagged: false,
        spent: *hop_limit <= 1,
        near: link_local(from),
    }))
}

/// Whether the ones' complement sum over the header is all ones (RFC 1071); the length is a multiple of 4, and the
/// header not all zeros.
#[inline(always)]
fn checksum_holds(header: &[u8]) -> bool {
    // The sum does not depend on the byte order, so the machine's own serves.
    let words = header.chunks_exact(4).map(|w| w.first_chunk().map_or(0, |w| u64::from(u32::from_ne_bytes(*w))));
    all_ones(words.sum())
}

/// Whether a ones' complement sum, folded to 16 bits, is all ones: whether it is a multiple of 65535.
#[inline(always)]
fn all_ones(sum: u64) -> bool {
    quotient(sum) <= LARGEST
}

/// A 65535th of a multiple of 65535, and more than [`LARGEST`] for every other number: the odd divisor has an inverse modulo
/// 2^64, by which only multiples come out that low.
#[inline(always)]
pub(super) fn quotient(sum: u64) -> u64 {
    sum.wrapping_mul(0xfffe_fffe_fffe_ffff)
}

/// The largest quotient there is.
pub(super) const LARGEST: u64 = u64::MAX / 0xffff;

/// This network, loopback, multicast, reserved and broadcast: no host's own address.
#[inline(always)]
const fn martian_source4(first: u8) -> bool {
    // 1 to 223 are hosts', but for 127.
    (first.wrapping_sub(1) >= 223) | (first == 127)
}

/// Unspecified, loopback and multicast.
#[inline(always)]
fn martian_source6(src: u128) -> bool {
    (src <= 1) | (src >> 120 == 0xff)
}

#[inline(always)]
fn link_local(addr: u128) -> bool {
    addr >> 118 == 0x3fa
}

/// All nodes, or the solicited-node group of some address (RFC 4291 2.7.1).
fn neighbour_group(dst: u128) -> bool {
    dst == 0xff02 << 112 | 1 || dst >> 24 == (0xff02 << 112 | 0x1_ff00_0000) >> 24
}

#[cfg(test)]
mod tests {
    use packet::checksum;

    use super::*;

    /// Whether the sum holds as [`plain_ip4`] adds it up.
    fn plain(header: &[u8; 20]) -> bool {
        let mut frame = [0; PLAIN];
        frame[ETHERNET..].copy_from_slice(header);
        all_ones(Header::from_frame(&frame).sum())
    }

    #[test]
    fn the_quick_sum_is_the_sum() {
        let mut header = [0x45u8, 0, 0, 46, 0x12, 0x34, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 9];
        for word in (0..=u16::MAX).step_by(7).chain([0, 1, 0xfffe, 0xffff]) {
            for at in [4, 10, 18] {
                let mut h = header;
                h[at..at + 2].copy_from_slice(&word.to_be_bytes());
                let slow =
                    checksum::fold(h.chunks(2).map(|w| u64::from(u16::from_be_bytes([w[0], w[1]]))).sum()) == 0xffff;
                assert_eq!(checksum_holds(&h), slow, "{h:?}");
                assert_eq!(plain(&h), slow, "{h:?}");
            }
        }
        // And some header does hold.
        let sum = checksum::fold(header.chunks(2).map(|w| u64::from(u16::from_be_bytes([w[0], w[1]]))).sum());
        header[10..12].copy_from_slice(&(!sum).to_be_bytes());
        assert!(checksum_holds(&header) && plain(&header));
        // The largest sums, in which both carries are made.
        for tail in [[0xff; 4], [0, 0, 0, 1], [0; 4]] {
            header[..16].fill(0xff);
            header[16..].copy_from_slice(&tail);
            assert_eq!(plain(&header), checksum_holds(&header), "{header:?}");
        }
    }

    #[test]
    fn martian_sources_are_the_standards() {
        for first in 0..=255 {
            assert_eq!(martian_source4(first), matches!(first, 0 | 127 | 224..), "{first}");
        }
    }
}
