//! Ratios, such as a loss.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{si::parse_si, UnitError};

/// A share from 0 to 1, such as a frame loss ratio.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Ratio(f64);

const LEGAL: &str = "must be 0 to 1 (0.005), or 0% to 100% (0.5%)";

impl Ratio {
    /// Nothing.
    pub const ZERO: Self = Self(0.0);

    /// A share. Errors outside 0..=1.
    pub fn new(share: f64) -> Result<Self, UnitError> {
        if (0.0..=1.0).contains(&share) {
            Ok(Self(share))
        } else {
            Err(UnitError::new("ratio", share, LEGAL))
        }
    }

    /// `part` of `whole`, clamped to 0..=1; zero when there is no whole.
    pub fn of(part: u64, whole: u64) -> Self {
        Self(if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) })
    }

    /// The share, 0..=1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Ratio {
    type Error = UnitError;
    fn try_from(share: f64) -> Result<Self, UnitError> {
        Self::new(share)
    }
}

impl From<Ratio> for f64 {
    fn from(r: Ratio) -> f64 {
        r.0
    }
}

impl FromStr for Ratio {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        match parse_si(text) {
            Some((v, "%")) => Self::new(v / 100.0).map_err(|_| UnitError::new("ratio", text, LEGAL)),
            Some((v, "")) => Self::new(v).map_err(|_| UnitError::new("ratio", text, LEGAL)),
            _ => Err(UnitError::new("ratio", text, LEGAL)),
        }
    }
}

impl fmt::Display for Ratio {
    /// As a percentage that never rounds a loss away: `0 %`, `0.5 %`, `1.2e-6 %`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        let text = if percent == 0.0 {
            "0 %".to_owned()
        } else if percent < 0.001 {
            format!("{percent:.1e} %")
        } else {
            let digits = if percent >= 10.0 {
                2
            } else if percent >= 0.1 {
                3
            } else {
                5
            };
            let fixed = format!("{percent:.digits$}");
            format!("{} %", fixed.trim_end_matches('0').trim_end_matches('.'))
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_lost_frame_stays_visible() {
        assert_eq!(Ratio::of(1, 100_000_000).to_string(), "1.0e-6 %");
        assert_eq!(Ratio::of(0, 5).to_string(), "0 %");
        assert_eq!(Ratio::of(1, 200).to_string(), "0.5 %");
        assert_eq!(Ratio::of(1, 1).to_string(), "100 %");
    }

    #[test]
    fn percent_and_share_parse_alike() {
        assert_eq!("0.5%".parse::<Ratio>().unwrap(), "0.005".parse::<Ratio>().unwrap());
        for bad in ["1.1", "101%", "-1", "x", ""] {
            let error = bad.parse::<Ratio>().unwrap_err();
            assert_eq!(error.value, bad);
        }
        insta::assert_snapshot!("101%".parse::<Ratio>().unwrap_err(), @r#"ratio "101%": must be 0 to 1 (0.005), or 0% to 100% (0.5%)"#);
    }
}
