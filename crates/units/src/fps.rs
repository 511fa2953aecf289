//! Rates in frames per second.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{si, UnitError};

/// Frames per second: finite and not negative.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Fps(f64);

impl Fps {
    /// No frames.
    pub const ZERO: Self = Self(0.0);

    /// A rate in frames per second. Errors when negative or not finite.
    pub fn new(fps: f64) -> Result<Self, UnitError> {
        if fps.is_finite() && fps >= 0.0 {
            Ok(Self(fps))
        } else {
            Err(UnitError::new("rate", fps, "must be a finite number of frames per second, 0 or more"))
        }
    }

    /// For arithmetic whose operands are known to be legal: clamps what is not to zero.
    pub fn from_raw(fps: f64) -> Self {
        Self(if fps.is_finite() { fps.max(0.0) } else { 0.0 })
    }

    /// Frames counted over seconds; zero when no time has passed.
    pub fn from_count(frames: u64, seconds: f64) -> Self {
        Self::from_raw(if seconds > 0.0 { frames as f64 / seconds } else { 0.0 })
    }

    /// Frames per second.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Fps {
    type Error = UnitError;
    fn try_from(fps: f64) -> Result<Self, UnitError> {
        Self::new(fps)
    }
}

impl From<Fps> for f64 {
    fn from(fps: Fps) -> f64 {
        fps.0
    }
}

impl fmt::Display for Fps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}pps", si(self.0)))
    }
}
