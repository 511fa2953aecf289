//! UDP (RFC 768).

use super::write_front;

/// Length in bytes.
pub const LEN: usize = 8;
/// Where the checksum stands.
pub const CHECKSUM: usize = 6;

/// A UDP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Udp {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Length of header and payload.
    pub len: u16,
    /// Checksum as on the wire; zero means none was computed.
    pub checksum: u16,
}

impl Udp {
    /// Takes a header off the front.
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&[s0, s1, d0, d1, l0, l1, c0, c1], rest) = bytes.split_first_chunk::<LEN>()?;
        let word = |a, b| u16::from_be_bytes([a, b]);
        Some((Self { src_port: word(s0, s1), dst_port: word(d0, d1), len: word(l0, l1), checksum: word(c0, c1) }, rest))
    }

    /// Writes the header to the front.
    #[must_use]
    pub fn write(self, to: &mut [u8]) -> bool {
        let ([s0, s1], [d0, d1]) = (self.src_port.to_be_bytes(), self.dst_port.to_be_bytes());
        let ([l0, l1], [c0, c1]) = (self.len.to_be_bytes(), self.checksum.to_be_bytes());
        write_front(to, [s0, s1, d0, d1, l0, l1, c0, c1])
    }
}
