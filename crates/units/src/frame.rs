//! Frame sizes, FCS included (RFC 2544).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::UnitError;

/// Bytes of the frame check sequence, which RFC 2544 counts in a frame size and software ports never see.
pub const FCS_BYTES: u32 = 4;
/// Bytes a frame takes on an Ethernet wire beside itself: 7 preamble, 1 start delimiter, 12 inter-frame gap.
pub const WIRE_OVERHEAD_BYTES: u32 = 20;

/// An Ethernet frame size in bytes **with** its FCS, as RFC 2544 §9 counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct FrameSize(u32);

impl FrameSize {
    /// The smallest legal Ethernet frame.
    pub const MIN: Self = Self(64);
    /// The largest frame accepted: jumbo frames as NICs carry them.
    pub const MAX: Self = Self(9216);
    /// The sizes of RFC 2544 §9.1 for Ethernet.
    pub const RFC2544: [Self; 7] = [Self(64), Self(128), Self(256), Self(512), Self(1024), Self(1280), Self(1518)];

    /// A size in bytes, FCS included. Errors outside 64..=9216.
    pub fn new(bytes: u32) -> Result<Self, UnitError> {
        if (Self::MIN.0..=Self::MAX.0).contains(&bytes) {
            Ok(Self(bytes))
        } else {
            Err(UnitError::new("frame size", bytes, "must be 64 to 9216 bytes, FCS included"))
        }
    }

    /// Bytes with the FCS.
    #[inline]
    pub const fn bytes(self) -> u32 {
        self.0
    }

    /// Bytes a software port sees: without the FCS.
    #[inline]
    pub const fn without_fcs(self) -> usize {
        (self.0 - FCS_BYTES) as usize
    }

    /// Bytes of wire time: with FCS, preamble, start delimiter and inter-frame gap.
    #[inline]
    pub const fn on_wire(self) -> u32 {
        self.0 + WIRE_OVERHEAD_BYTES
    }
}

impl TryFrom<u32> for FrameSize {
    type Error = UnitError;
    fn try_from(bytes: u32) -> Result<Self, UnitError> {
        Self::new(bytes)
    }
}

impl From<FrameSize> for u32 {
    fn from(size: FrameSize) -> u32 {
        size.0
    }
}

impl FromStr for FrameSize {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let digits = text.trim().trim_end_matches(['B', 'b']);
        let bytes = digits
            .parse()
            .map_err(|_| UnitError::new("frame size", text, "must be a number of bytes, 64 to 9216, FCS included"))?;
        Self::new(bytes)
    }
}

impl fmt::Display for FrameSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_count_the_fcs() {
        let min = FrameSize::MIN;
        assert_eq!((min.bytes(), min.without_fcs(), min.on_wire()), (64, 60, 84));
    }

    #[test]
    fn runts_and_giants_are_refused_with_the_range() {
        for bad in ["63", "9217", "", "-64", "64.5", "4294967296"] {
            assert_eq!(bad.parse::<FrameSize>().unwrap_err().value, bad);
        }
        insta::assert_snapshot!("63".parse::<FrameSize>().unwrap_err(), @r#"frame size "63": must be 64 to 9216 bytes, FCS included"#);
        assert_eq!("1518B".parse::<FrameSize>().unwrap().bytes(), 1518);
    }
}
