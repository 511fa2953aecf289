//! MPLS label stack entry (RFC 3032 §2.1).

use super::write_front;

/// Length in bytes.
pub const LEN: usize = 4;
/// Largest label: 20 bits.
pub const MAX_LABEL: u32 = 0xf_ffff;

/// One label stack entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mpls {
    /// Label, 20 bits.
    pub label: u32,
    /// Traffic class, 3 bits (RFC 5462).
    pub tc: u8,
    /// Bottom of stack.
    pub bottom: bool,
    /// Time to live.
    pub ttl: u8,
}

impl Mpls {
    /// Takes an entry off the front.
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (entry, rest) = bytes.split_first_chunk::<LEN>()?;
        let word = u32::from_be_bytes(*entry);
        Some((Self { label: word >> 12, tc: (word >> 9) as u8 & 7, bottom: word & 0x100 != 0, ttl: word as u8 }, rest))
    }

    /// Writes the entry to the front.
    #[must_use]
    pub fn write(self, to: &mut [u8]) -> bool {
        let word = (self.label & MAX_LABEL) << 12
            | u32::from(self.tc & 7) << 9
            | u32::from(self.bottom) << 8
            | u32::from(self.ttl);
        write_front(to, word.to_be_bytes())
    }
}
