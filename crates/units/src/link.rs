//! Link speeds and the line rates that follow from them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{si::parse_si, si_short, Fps, Frames, UnitError, WIRE_OVERHEAD_BYTES};

/// The speed of a link in bits per second of layer 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct LinkSpeed(u64);

impl LinkSpeed {
    /// A speed in bit/s. Errors outside 1 Mbit/s to 10 Tbit/s.
    pub fn new(bps: u64) -> Result<Self, UnitError> {
        if (1_000_000..=10_000_000_000_000).contains(&bps) {
            Ok(Self(bps))
        } else {
            Err(UnitError::new("link speed", bps, LEGAL))
        }
    }

    /// Bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// The most frames of this size the link carries in a second: `link / ((L + 20) * 8)` (RFC 2544 appendix B). Of a mix
    /// `L` is the average, since each frame takes its own wire time.
    pub fn line_rate(self, frames: impl Into<Frames>) -> Fps {
        self.line_rate_average(frames.into().average_bytes())
    }

    /// The most frames that the link carries in a second, when they have `bytes` bytes in the mean, FCS included.
    pub fn line_rate_average(self, bytes: f64) -> Fps {
        Fps::from_raw(self.0 as f64 / ((bytes + f64::from(WIRE_OVERHEAD_BYTES)) * 8.0))
    }
}

const LEGAL: &str = "must be 1M to 10T bit/s, written like 10G, 2.5Gbps or 100M";

impl TryFrom<u64> for LinkSpeed {
    type Error = UnitError;
    fn try_from(bps: u64) -> Result<Self, UnitError> {
        Self::new(bps)
    }
}

impl From<LinkSpeed> for u64 {
    fn from(speed: LinkSpeed) -> u64 {
        speed.0
    }
}

impl FromStr for LinkSpeed {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (value, unit) = parse_si(text).ok_or_else(|| UnitError::new("link speed", text, LEGAL))?;
        match unit {
            "" | "bps" | "bit/s" | "b/s" if value >= 0.0 => Self::new(value as u64),
            _ => Err(UnitError::new("link speed", text, LEGAL)),
        }
    }
}

impl fmt::Display for LinkSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&si_short(self.0 as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FrameSize;

    #[test]
    fn line_rates_are_the_standards() {
        let ten_g: LinkSpeed = "10G".parse().unwrap();
        assert_eq!(ten_g.line_rate(FrameSize::MIN).get() as u64, 14_880_952);
        assert_eq!(ten_g.line_rate(FrameSize::new(1518).unwrap()).get() as u64, 812_743);
        let small: LinkSpeed = "2.5Gbps".parse().unwrap();
        // The small-router document, "L1 vs L2": 203715 frames of 1514 bytes, 1534 on the wire.
        assert_eq!(small.line_rate(FrameSize::new(1514).unwrap()).get() as u64, 203_715);
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in ["", "G", "10X", "-1G", "10Gpps", "1k", "11T", "nan", "inf"] {
            assert!(bad.parse::<LinkSpeed>().is_err(), "{bad}");
        }
    }
}
