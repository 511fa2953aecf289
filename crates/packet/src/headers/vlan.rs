//! IEEE 802.1Q tag, less its TPID, which stands where an EtherType would.

use super::write_front;

/// Length in bytes.
pub const LEN: usize = 4;
/// Largest VLAN identifier that names a VLAN; 4095 is reserved.
pub const MAX_VID: u16 = 4094;

/// Tag control information and the EtherType behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vlan {
    /// Priority code point, 3 bits.
    pub pcp: u8,
    /// Drop eligible.
    pub dei: bool,
    /// VLAN identifier, 12 bits.
    pub vid: u16,
    /// EtherType of what follows.
    pub ether_type: u16,
}

impl Vlan {
    /// Takes a tag off the front.
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&[c0, c1, t0, t1], rest) = bytes.split_first_chunk::<LEN>()?;
        let vid = u16::from_be_bytes([c0 & 0x0f, c1]);
        let ether_type = u16::from_be_bytes([t0, t1]);
        Some((Self { pcp: c0 >> 5, dei: c0 & 0x10 != 0, vid, ether_type }, rest))
    }

    /// Writes the tag to the front.
    #[must_use]
    pub fn write(self, to: &mut [u8]) -> bool {
        let tci = u16::from(self.pcp & 7) << 13 | u16::from(self.dei) << 12 | self.vid & 0xfff;
        let ([c0, c1], [t0, t1]) = (tci.to_be_bytes(), self.ether_type.to_be_bytes());
        write_front(to, [c0, c1, t0, t1])
    }
}
