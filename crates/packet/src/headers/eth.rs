//! Ethernet II.

use super::write_front;
use crate::MacAddr;

/// Length in bytes.
pub const LEN: usize = 14;

/// An Ethernet II header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eth {
    /// Destination.
    pub dst: MacAddr,
    /// Source.
    pub src: MacAddr,
    /// EtherType of what follows ([`super::ethertype`]).
    pub ether_type: u16,
}

impl Eth {
    /// Takes a header off the front.
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&[d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1], rest) = bytes.split_first_chunk::<LEN>()?;
        let (dst, src) = (MacAddr([d0, d1, d2, d3, d4, d5]), MacAddr([s0, s1, s2, s3, s4, s5]));
        Some((Self { dst, src, ether_type: u16::from_be_bytes([t0, t1]) }, rest))
    }

    /// Writes the header to the front.
    #[must_use]
    pub fn write(self, to: &mut [u8]) -> bool {
        let ([d0, d1, d2, d3, d4, d5], [s0, s1, s2, s3, s4, s5]) = (self.dst.0, self.src.0);
        let [t0, t1] = self.ether_type.to_be_bytes();
        write_front(to, [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1])
    }
}
