//! The Internet checksum (RFC 1071), its incremental update (RFC 1624) and the pseudo-headers of IPv4 and IPv6.
//!
//! Sums are kept unfolded in a `u64`: 2^16 is 1 modulo 2^16 - 1, so that words of any multiple of 16 bits may be
//! added as they are, in any order, and folded once at the end.

use std::net::{Ipv4Addr, Ipv6Addr};

/// One's complement sum of big-endian 16-bit words, not folded; an odd last byte is padded with zero.
///
/// Good for slices of up to 2^33 bytes.
pub fn sum(bytes: &[u8]) -> u64 {
    let word = |bytes: &[u8]| {
        let mut word = [0; 4];
        word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        u64::from(u32::from_be_bytes(word))
    };
    bytes.chunks(4).map(word).sum()
}

/// Folds a sum to 16 bits with end-around carry.
#[inline(always)]
pub const fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    sum as u16
}

/// The checksum to put in the field: the complement of the folded sum (RFC 1071 §1).
#[inline(always)]
pub const fn finish(sum: u64) -> u16 {
    !fold(sum)
}

/// As [`finish`], with 0 sent as 0xffff, since a UDP checksum of 0 means none (RFC 768).
#[inline(always)]
pub const fn finish_udp(sum: u64) -> u16 {
    match finish(sum) {
        0 => 0xffff,
        checksum => checksum,
    }
}

/// The checksum after one 16-bit word changed: `HC' = ~(~HC + ~m + m')` (RFC 1624 eqn. 3).
#[inline]
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    finish(!checksum as u64 + !old as u64 + new as u64)
}

/// Sum of the IPv4 pseudo-header (RFC 768); `len` counts the upper layer's header and payload.
pub fn pseudo_v4(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, len: u16) -> u64 {
    u64::from(src.to_bits()) + u64::from(dst.to_bits()) + u64::from(protocol) + u64::from(len)
}

/// Sum of the IPv6 pseudo-header (RFC 8200 §8.1); `len` counts the upper layer's header and payload.
pub fn pseudo_v6(src: Ipv6Addr, dst: Ipv6Addr, protocol: u8, len: u32) -> u64 {
    sum(&src.octets()) + sum(&dst.octets()) + u64::from(protocol) + u64::from(len)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(sum(&bytes)), 0xddf2);
        assert_eq!(finish(sum(&bytes)), 0x220d);
    }

    #[test]
    fn the_example_of_rfc_1624() {
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn a_udp_checksum_is_never_zero() {
        assert_eq!((finish(0xffff), finish_udp(0xffff)), (0, 0xffff));
        assert_eq!(finish_udp(0x1_0000), finish(1));
        assert_eq!(fold(u64::MAX), 0xffff);
    }

    /// Word by word, as RFC 1071 §4.1 does it.
    fn oracle(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    proptest! {
        #[test]
        fn any_slice_sums_as_word_by_word(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(fold(sum(&bytes)), oracle(&bytes));
        }

        #[test]
        fn update_is_the_checksum_computed_anew(mut bytes in proptest::collection::vec(any::<u8>(), 20), new: u16) {
            bytes[0] = 0x45; // A header is never all zero, the one case in which eqn. 3 picks the other zero.
            let old = u16::from_be_bytes([bytes[4], bytes[5]]);
            let before = finish(sum(&bytes));
            bytes[4..6].copy_from_slice(&new.to_be_bytes());
            prop_assert_eq!(update(before, old, new), finish(sum(&bytes)));
        }

        #[test]
        fn pseudo_headers_match_etherparse(src: u32, dst: u32, s6: u128, d6: u128, payload in proptest::collection::vec(any::<u8>(), 0..50)) {
            let (src, dst, s6, d6) = (Ipv4Addr::from(src), Ipv4Addr::from(dst), Ipv6Addr::from(s6), Ipv6Addr::from(d6));
            let len = 8 + payload.len() as u16;
            let udp = etherparse::UdpHeader { source_port: 7, destination_port: 9, length: len, checksum: 0 };
            let own = sum(&udp.to_bytes()) + sum(&payload);
            prop_assert_eq!(
                finish_udp(own + pseudo_v4(src, dst, 17, len)),
                udp.calc_checksum_ipv4_raw(src.octets(), dst.octets(), &payload).unwrap()
            );
            prop_assert_eq!(
                finish_udp(own + pseudo_v6(s6, d6, 17, len.into())),
                udp.calc_checksum_ipv6_raw(s6.octets(), d6.octets(), &payload).unwrap()
            );
        }
    }
}
