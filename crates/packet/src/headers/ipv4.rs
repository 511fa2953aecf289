//! IPv4 (RFC 791).

use std::net::Ipv4Addr;

use super::write_front;

/// Length in bytes without options.
pub const LEN: usize = 20;
/// Where the header checksum stands.
pub const CHECKSUM: usize = 10;
/// Where the source address stands; the destination follows.
pub const SRC: usize = 12;
/// Where the destination address stands.
pub const DST: usize = 16;

/// An IPv4 header; options are skipped when read and never written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv4 {
    /// Differentiated services code point, 6 bits.
    pub dscp: u8,
    /// Explicit congestion notification, 2 bits.
    pub ecn: u8,
    /// Length of header and payload.
    pub total_len: u16,
    /// Identification.
    pub id: u16,
    /// Don't fragment.
    pub dont_fragment: bool,
    /// More fragments follow.
    pub more_fragments: bool,
    /// In units of 8 bytes, 13 bits.
    pub fragment_offset: u16,
    /// Time to live.
    pub ttl: u8,
    /// Protocol of what follows ([`super::protocol`]).
    pub protocol: u8,
    /// Header checksum as on the wire.
    pub checksum: u16,
    /// Source.
    pub src: Ipv4Addr,
    /// Destination.
    pub dst: Ipv4Addr,
}

impl Ipv4 {
    /// Takes a header, options included, off the front. `None` also when the version is not 4.
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&[vihl, tos, l0, l1, i0, i1, f0, f1, ttl, protocol, c0, c1, s0, s1, s2, s3, d0, d1, d2, d3], _) =
            bytes.split_first_chunk::<LEN>()?;
        let header_len = usize::from(vihl & 0xf) * 4;
        if vihl >> 4 != 4 || header_len < LEN {
            return None;
        }
        let header = Self {
            dscp: tos >> 2,
            ecn: tos & 3,
            total_len: u16::from_be_bytes([l0, l1]),
            id: u16::from_be_bytes([i0, i1]),
            dont_fragment: f0 & 0x40 != 0,
            more_fragments: f0 & 0x20 != 0,
            fragment_offset: u16::from_be_bytes([f0 & 0x1f, f1]),
            ttl,
            protocol,
            checksum: u16::from_be_bytes([c0, c1]),
            src: Ipv4Addr::new(s0, s1, s2, s3),
            dst: Ipv4Addr::new(d0, d1, d2, d3),
        };
        Some((header, bytes.get(header_len..)?))
    }

    /// Writes the header to the front.
    #[must_use]
    pub fn write(self, to: &mut [u8]) -> bool {
        let ([l0, l1], [i0, i1]) = (self.total_len.to_be_bytes(), self.id.to_be_bytes());
        let fragment =
            u16::from(self.dont_fragment) << 14 | u16::from(self.more_fragments) << 13 | self.fragment_offset & 0x1fff;
        let ([f0, f1], [c0, c1]) = (fragment.to_be_bytes(), self.checksum.to_be_bytes());
        let ([s0, s1, s2, s3], [d0, d1, d2, d3]) = (self.src.octets(), self.dst.octets());
        let tos = self.dscp << 2 | self.ecn & 3;
        write_front(
            to,
            [0x45, tos, l0, l1, i0, i1, f0, f1, self.ttl, self.protocol, c0, c1, s0, s1, s2, s3, d0, d1, d2, d3],
        )
    }
}
