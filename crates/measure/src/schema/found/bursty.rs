//! Figures of bursty traffic (RFC 2544 §21).

use serde::{Deserialize, Serialize};
use units::Fps;

use crate::schema::outcome::TestOutcome;

/// The smallest interval for each burst size.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Bursty {
    /// Rate within a burst: back to back.
    pub burst_fps: Fps,
    /// One entry a burst size.
    pub bursts: Vec<BurstPoint>,
}

/// The smallest interval at one burst size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BurstPoint {
    /// Frames of a burst.
    pub burst_frames: u32,
    /// How its search ended.
    pub outcome: TestOutcome,
    /// From the end of a burst to the next, seconds, beyond the minimum gap; 0: back to back without end.
    pub interval_s: Option<f64>,
    /// Mean load at that interval.
    pub load_fps: Option<Fps>,
    /// Lowest mean load above it that lost frames.
    pub upper_bound_fps: Option<Fps>,
}
