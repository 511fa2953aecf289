//! One-way delay and its variation, summed up.

use serde::{Deserialize, Serialize};

/// One-way delay of every frame received, and its variation (RFC 5481). Nanoseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Frames measured.
    pub frames: u64,
    /// Smallest delay.
    pub min_ns: u64,
    /// Mean delay.
    pub avg_ns: f64,
    /// Largest delay.
    pub max_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p99_9_ns: u64,
    /// 99.99th percentile.
    pub p99_99_ns: u64,
    /// 99.999th percentile.
    pub p99_999_ns: u64,
    /// PDV p99.9: the 99.9th percentile less the minimum of the same interval (RFC 5481 §4.2).
    pub pdv_p99_9_ns: u64,
    /// IPDV over consecutive frames of a stream (RFC 5481 §4.1).
    pub ipdv: Option<IpdvSummary>,
    /// The distribution: `[upper edge in ns, frames]` for each bin that holds any, rising.
    pub histogram: Vec<(u64, u64)>,
}

/// Inter-packet delay variation: delay less the delay of the frame sent just before. Nanoseconds, signed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct IpdvSummary {
    /// Pairs measured; pairs whose earlier frame was lost or reordered are left out.
    pub pairs: u64,
    /// Smallest (most negative).
    pub min_ns: i64,
    /// 5th percentile.
    pub p5_ns: i64,
    /// Median.
    pub p50_ns: i64,
    /// 95th percentile.
    pub p95_ns: i64,
    /// Largest.
    pub max_ns: i64,
    /// Mean of the absolute values.
    pub mean_abs_ns: f64,
}
