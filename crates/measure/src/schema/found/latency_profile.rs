//! Delays by load (RFC 2544 §26.2).

use serde::{Deserialize, Serialize};
use units::Fps;

use super::spread::Spread;

/// Delays by load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LatencyProfile {
    /// The throughput.
    pub throughput_fps: Fps,
    /// One entry a load, rising.
    pub points: Vec<LatencyPoint>,
    /// When the frame would be tagged, seconds into the stream.
    pub tagged_at_s: f64,
    /// Delay there at the throughput, nanoseconds, over the repetitions: the median of the window that holds the moment.
    pub tagged_ns: Option<Spread>,
}

/// Delays at one load, of all directions and repetitions: the least minimum, the mean of means, the largest of the rest.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LatencyPoint {
    /// Share of the throughput in percent; `None` for the idle load.
    pub percent: Option<f64>,
    /// Intended load.
    pub load_fps: Fps,
    /// Numbers of its trials; each holds the whole distribution.
    pub trials: Vec<u32>,
    /// Largest loss ratio of a trial.
    pub loss_ratio: f64,
    /// Smallest delay; `None` when delays were withheld or nothing came back.
    pub min_ns: Option<u64>,
    /// Mean delay.
    pub avg_ns: Option<f64>,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p99_9_ns: Option<u64>,
    /// Largest delay.
    pub max_ns: Option<u64>,
}
