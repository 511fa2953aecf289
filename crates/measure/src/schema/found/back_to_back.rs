//! Figures of back-to-back frames (RFC 9004).

use serde::{Deserialize, Serialize};
use units::Fps;

use super::spread::Spread;

/// A mean so near the limit is likely the limit's and not the device's (RFC 9004 §6.2).
const NEAR: f64 = 0.9;

/// Burst lengths, and the buffer behind them (RFC 9004 §6.4, §7).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BackToBack {
    /// Rate of the bursts: back to back.
    pub rate_fps: Fps,
    /// The throughput that the correction goes by.
    pub throughput_fps: Fps,
    /// Smallest step of the burst length, frames.
    pub step_frames: u64,
    /// Longest burst tried, frames.
    pub limit_frames: u64,
    /// Longest burst without loss of each search, frames; 0: even the shortest lost some.
    pub bursts: Vec<u64>,
    /// The same summed up, frames: its mean is the benchmark.
    pub frames: Option<Spread>,
    /// Mean length over the rate back to back, seconds.
    pub implied_buffer_s: Option<f64>,
    /// Without the frames forwarded while the burst came, seconds.
    pub corrected_buffer_s: Option<f64>,
    /// The frames that the corrected time stands for.
    pub corrected_buffer_frames: Option<f64>,
    /// Buffer time at the throughput, seconds (§7, actual buffer time).
    pub actual_buffer_s: Option<f64>,
    /// Longest time that a burst was given to leave the buffer again, beyond the waits of every trial, seconds.
    #[serde(default)]
    pub longest_drain_s: f64,
    /// A burst would have needed longer than is waited.
    #[serde(default)]
    pub drain_cut: bool,
}

impl BackToBack {
    /// Whether a burst is the longest tried, or their mean near it: the device holds at least this, and the test has to be
    /// repeated with a higher limit (RFC 9004 §6.2).
    pub fn at_limit(&self) -> bool {
        let limit = self.limit_frames;
        self.bursts.iter().any(|&burst| burst >= limit) || self.mean_near_limit()
    }

    /// Whether the mean is so near the longest burst tried that it is likely the limit's (RFC 9004 §6.2).
    pub fn mean_near_limit(&self) -> bool {
        self.frames.is_some_and(|frames| frames.mean >= NEAR * self.limit_frames as f64)
    }
}
