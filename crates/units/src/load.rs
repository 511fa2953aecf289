//! Intended loads as a user writes them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{si::parse_si, Fps, FrameSize, Frames, LinkSpeed, UnitError, FCS_BYTES, WIRE_OVERHEAD_BYTES};

/// An intended load as a user writes it: frames, bits of layer 1 or 2, or a share of the line rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// `1Mpps`, `1Mfps` or a bare number.
    Frames(Fps),
    /// `10Gbps` or `10GbpsL1`: layer-1 bit/s, with 20 bytes of wire overhead a frame.
    L1(f64),
    /// `10GbpsL2`: layer-2 bit/s, the FCS counted.
    L2(f64),
    /// `50%` of the line rate.
    LinePercent(f64),
}

const LEGAL: &str =
    "must be frames (1Mpps, 250000), bits of layer 1 (1Gbps) or 2 (1GbpsL2), or a share of the link (50%)";

/// The highest load, in frames/s and in bits/s: far above what the fastest port does.
const MOST_FPS: f64 = 10e9;
const MOST_BPS: f64 = 10e12;

impl Load {
    /// This load in frames per second for frames of this size, or of this mix.
    ///
    /// Errors when a share is asked for and the link speed is not known.
    pub fn resolve(self, frames: impl Into<Frames>, link: Option<LinkSpeed>) -> Result<Fps, UnitError> {
        self.resolve_average(frames.into().average_bytes(), link)
    }

    /// This load in frames per second, for frames of `bytes` bytes in the mean, FCS included.
    ///
    /// Errors when a share is asked for and the link speed is not known.
    pub fn resolve_average(self, bytes: f64, link: Option<LinkSpeed>) -> Result<Fps, UnitError> {
        Ok(match self {
            Self::Frames(fps) => fps,
            Self::L1(bps) => Fps::from_raw(bps / ((bytes + f64::from(WIRE_OVERHEAD_BYTES)) * 8.0)),
            Self::L2(bps) => Fps::from_raw(bps / (bytes * 8.0)),
            Self::LinePercent(percent) => match link {
                Some(link) => Fps::from_raw(link.line_rate_average(bytes).get() * percent / 100.0),
                None => {
                    return Err(UnitError::new(
                        "load",
                        self,
                        "a share needs the link speed, which this port does not report: add --link 10G, or give frames (1Mpps)",
                    ))
                }
            },
        })
    }

    /// The bytes of a frame that a bit rate counts for the kernel's `tc`: without the FCS.
    pub fn kernel_bits(size: FrameSize) -> f64 {
        f64::from(size.bytes() - FCS_BYTES) * 8.0
    }
}

impl FromStr for Load {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let err = || UnitError::new("load", text, LEGAL);
        let (value, unit) = parse_si(text).ok_or_else(err)?;
        if value < 0.0 {
            return Err(err());
        }
        let most = if unit.starts_with('b') { MOST_BPS } else { MOST_FPS };
        if value > most {
            let legal = "must be at most 10 Gpps or 10 Tbps: no port does more";
            return Err(UnitError::new("load", text, legal));
        }
        match unit {
            "" | "pps" | "fps" => Ok(Self::Frames(Fps::new(value)?)),
            "bps" | "bit/s" | "bpsL1" => Ok(Self::L1(value)),
            "bpsL2" => Ok(Self::L2(value)),
            "%" if value <= 100.0 => Ok(Self::LinePercent(value)),
            _ => Err(err()),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Frames(fps) => write!(f, "{}pps", crate::si_short(fps.get())),
            Self::L1(bps) => write!(f, "{}bps", crate::si_short(bps)),
            Self::L2(bps) => write!(f, "{}bpsL2", crate::si_short(bps)),
            Self::LinePercent(p) => write!(f, "{p}%"),
        }
    }
}

impl Serialize for Load {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Load {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fps(text: &str, size: u32, link: Option<&str>) -> f64 {
        let link = link.map(|l| l.parse().unwrap());
        text.parse::<Load>().unwrap().resolve(FrameSize::new(size).unwrap(), link).unwrap().get()
    }

    #[test]
    fn each_form_resolves() {
        assert_eq!(fps("1.5Mpps", 64, None), 1.5e6);
        assert_eq!(fps("250000", 64, None), 250_000.0);
        assert_eq!(fps("672Mbps", 64, None), 1e6);
        assert_eq!(fps("512MbpsL2", 64, None), 1e6);
        assert_eq!(fps("50%", 64, Some("10G")) as u64, 7_440_476);
    }

    #[test]
    fn a_share_without_a_link_says_what_to_add() {
        let err = "50%".parse::<Load>().unwrap().resolve(FrameSize::MIN, None).unwrap_err();
        insta::assert_snapshot!(err, @r#"load "50%": a share needs the link speed, which this port does not report: add --link 10G, or give frames (1Mpps)"#);
    }

    #[test]
    fn loads_survive_their_own_text() {
        for text in ["1.5Mpps", "10Gbps", "10GbpsL2", "99.5%", "0pps", "10Gpps", "10Tbps"] {
            let load: Load = text.parse().unwrap();
            assert_eq!(load.to_string().parse::<Load>().unwrap(), load);
        }
        for bad in ["", "-1pps", "101%", "1Mpss", "fast", "nan", "1e99pps", "11Gpps", "11Tbps", "1e300bpsL2"] {
            assert!(bad.parse::<Load>().is_err(), "{bad}");
        }
    }
}
