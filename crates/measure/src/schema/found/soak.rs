//! What hours of a load showed.

use serde::{Deserialize, Serialize};
use units::{Fps, Ratio};

use super::spread::Trend;

/// What hours of a load showed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Soak {
    /// Intended load.
    pub load_fps: Fps,
    /// Seconds of sending that were asked for.
    pub asked_s: f64,
    /// Seconds of sending that count.
    pub sent_s: f64,
    /// Frames due.
    pub intended: u64,
    /// Frames lost or refused.
    pub lost: u64,
    /// `lost / intended`.
    pub loss_ratio: f64,
    /// The most that passes.
    pub budget: Ratio,
    /// Drift of the median delay of the windows, ns; `None` of fewer than three.
    pub delay_ns: Option<Trend>,
    /// Drift of the forwarding rate of the windows, frames/s of all directions together.
    pub rate_fps: Option<Trend>,
    /// The segments in order.
    pub segments: Vec<Segment>,
}

/// One segment. Delays are the largest of the directions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Number of the trial.
    pub trial: u32,
    /// Seconds of sending before it.
    pub from_s: f64,
    /// Frames lost or refused.
    pub lost: u64,
    /// Frames/s that came back, per direction.
    pub forwarding_fps: Fps,
    /// Median delay, ns.
    pub p50_ns: Option<u64>,
    /// 99.9th percentile of the delay, ns.
    pub p99_9_ns: Option<u64>,
    /// Largest delay, ns.
    pub max_ns: Option<u64>,
}
