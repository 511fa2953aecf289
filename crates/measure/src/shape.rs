//! How the frames of a trial are spread over it, and what is looked for in what comes back beside counts and delays.

use serde::{Deserialize, Serialize};
use units::Fps;

use crate::trial::IpdvSummary;

/// How the frames of a trial are spread over its duration.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadShape {
    /// Evenly.
    #[default]
    Steady,
    /// One burst of exactly so many frames at the load, which is the rate back to back (RFC 2544 §26.4, RFC 9004 §6.3).
    /// The duration is that of the burst.
    Burst {
        /// Frames.
        frames: u64,
    },
    /// Bursts of so many frames back to back, spaced so that they make up the load (RFC 2544 §21).
    Bursts {
        /// Frames of one burst.
        frames: u32,
        /// Frames/s within a burst.
        burst_fps: Fps,
    },
    /// The load for so long, then another for the rest of the duration (RFC 2544 §26.5).
    Step {
        /// Seconds at the load.
        step_s: f64,
        /// Load from then on, frames/s per direction.
        then_fps: Fps,
    },
}

impl LoadShape {
    /// Whether frames leave evenly.
    pub fn is_steady(&self) -> bool {
        *self == Self::Steady
    }
}

/// The last frame of a direction that was lost and had others behind it, or the last of all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LastLost {
    /// Its sequence number, from 0.
    pub sequence: u64,
    /// When it left, seconds from the start of sending: no later than this, by the departure of the frame behind it.
    pub departed_s: f64,
}

/// The longest run of lost frames, for RFC 6201.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Outage {
    /// Frames lost in it.
    pub lost: u64,
    /// Arrival of the last frame before it, seconds from the start of sending.
    pub from_s: f64,
    /// Arrival of the first frame behind it; `None` when none came.
    pub to_s: Option<f64>,
}

/// One-way delay within a window of a trial (RFC 5481: its minimum is that of the same interval). Nanoseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WindowSummary {
    /// Beginning, seconds from the start of sending.
    pub from_s: f64,
    /// End.
    pub to_s: f64,
    /// Frames received in it.
    pub received: u64,
    /// Frames that frames received in it showed to be missing.
    pub missing: u64,
    /// Smallest delay.
    pub min_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest delay.
    pub max_ns: u64,
    /// PDV p99.9 (RFC 5481 §4.2).
    pub pdv_p99_9_ns: u64,
    /// IPDV (RFC 5481 §4.1).
    pub ipdv: Option<IpdvSummary>,
}
