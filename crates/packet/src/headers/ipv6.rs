//! IPv6 (RFC 8200), the fixed header.

use std::net::Ipv6Addr;

/// Length in bytes.
pub const LEN: usize = 40;
/// Where the source address stands; the destination follows.
pub const SRC: usize = 8;
/// Where the destination address stands.
pub const DST: usize = 24;

/// An IPv6 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv6 {
    /// Traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Length of what follows the header.
    pub payload_len: u16,
    /// Protocol of what follows ([`super::protocol`]).
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source.
    pub src: Ipv6Addr,
    /// Destination.
    pub dst: Ipv6Addr,
}

impl Ipv6 {
    /// Takes a header off the front. `None` also when the version is not 6.
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&[w0, w1, w2, w3, l0, l1, next_header, hop_limit], rest) = bytes.split_first_chunk::<8>()?;
        let (src, rest) = rest.split_first_chunk::<16>()?;
        let (dst, rest) = rest.split_first_chunk::<16>()?;
        let word = u32::from_be_bytes([w0, w1, w2, w3]);
        if word >> 28 != 6 {
            return None;
        }
        let header = Self {
            traffic_class: (word >> 20) as u8,
            flow_label: word & 0xf_ffff,
            payload_len: u16::from_be_bytes([l0, l1]),
            next_header,
            hop_limit,
            src: (*src).into(),
            dst: (*dst).into(),
        };
        Some((header, rest))
    }

    /// Writes the header to the front.
    #[must_use]
    pub fn write(self, to: &mut [u8]) -> bool {
        let Some(front) = to.first_chunk_mut::<LEN>() else { return false };
        let word = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0xf_ffff;
        front[..4].copy_from_slice(&word.to_be_bytes());
        front[4..6].copy_from_slice(&self.payload_len.to_be_bytes());
        (front[6], front[7]) = (self.next_header, self.hop_limit);
        front[SRC..DST].copy_from_slice(&self.src.octets());
        front[DST..].copy_from_slice(&self.dst.octets());
        true
    }
}
