//! Times in nanoseconds, and durations as text.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::UnitError;

/// A span of time in whole nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Ticks of a clock that runs at `hz`, rounded to the nearest nanosecond.
    pub fn from_ticks(ticks: u64, hz: u64) -> Self {
        let hz = u128::from(hz.max(1));
        let ns = (u128::from(ticks) * 1_000_000_000 + hz / 2) / hz;
        Self(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Seconds as a float, for rates.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl From<Duration> for Nanos {
    fn from(d: Duration) -> Self {
        Self(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Nanos {
    /// Three significant digits at least: `643 ns`, `12.3 us`, `1.20 ms`, `60.0 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let (v, unit) = match self.0 {
            0..=999 => return f.pad(&format!("{} ns", self.0)),
            1_000..=999_999 => (ns / 1e3, "us"),
            1_000_000..=999_999_999 => (ns / 1e6, "ms"),
            _ => (ns / 1e9, "s"),
        };
        let digits = if v >= 100.0 {
            0
        } else if v >= 10.0 {
            1
        } else {
            2
        };
        f.pad(&format!("{v:.digits$} {unit}"))
    }
}

/// Reads `60s`, `500ms`, `20us`, `2m`, `1h` or a bare number of seconds.
///
/// Errors on anything else, on zero and on more than 30 days.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let err = || UnitError::new("duration", text, "must be like 60s, 500ms, 2m or 1h: above zero, at most 30 days");
    parse(text).filter(|time| !time.is_zero()).ok_or_else(err)
}

/// The same, where zero is legal: `0`, or of any unit.
pub fn parse_duration_or_zero(text: &str) -> Result<Duration, UnitError> {
    let err = || UnitError::new("duration", text, "must be like 60s, 500ms, 2m or 1h, at most 30 days");
    parse(text).ok_or_else(err)
}

/// Zero to 30 days.
fn parse(text: &str) -> Option<Duration> {
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(trimmed.len());
    let value: f64 = trimmed[..split].trim().parse().ok()?;
    let scale = match &trimmed[split..] {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    let seconds = value * scale;
    let legal = seconds == 0.0 && !seconds.is_sign_negative() || (1e-9..=30.0 * 86_400.0).contains(&seconds);
    legal.then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_do_not_overflow() {
        assert_eq!(Nanos::from_ticks(2_600_000_000, 2_600_000_000), Nanos(1_000_000_000));
        assert_eq!(Nanos::from_ticks(u64::MAX, 2_600_000_000).0, 7_094_901_566_811_366_006);
    }

    #[test]
    fn spans_read_well() {
        for (ns, text) in [(643, "643 ns"), (12_345, "12.3 us"), (1_200_000, "1.20 ms"), (60_000_000_000, "60.0 s")] {
            assert_eq!(Nanos(ns).to_string(), text);
        }
    }

    #[test]
    fn durations_parse() {
        assert_eq!(parse_duration("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(parse_duration("2m").unwrap(), Duration::from_secs(120));
        assert_eq!(parse_duration("0.25").unwrap(), Duration::from_millis(250));
        for bad in ["", "s", "-1s", "0s", "1y", "1e99s", "31d", "1 s s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
            assert_eq!(parse_duration_or_zero(bad).is_ok(), bad == "0s", "{bad}");
        }
        for zero in ["0", "0s", "0.0ms"] {
            assert_eq!(parse_duration_or_zero(zero).unwrap(), Duration::ZERO, "{zero}");
        }
        for bad in ["-0s", "0y", "0.1ns", "nan"] {
            assert!(parse_duration_or_zero(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_duration_or_zero("30d").unwrap(), Duration::from_secs(30 * 86_400));
    }
}
