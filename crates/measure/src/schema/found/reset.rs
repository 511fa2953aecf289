//! Figures of a reset (RFC 2544 §26.6, RFC 6201).

use serde::{Deserialize, Serialize};
use units::Fps;

use super::spread::Spread;

/// Reset times.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reset {
    /// What was reset.
    pub event: ResetEvent,
    /// When the event was to be caused, seconds from the first frame.
    pub at_s: f64,
    /// The throughput, which is the load.
    pub load_fps: Fps,
    /// Each trial.
    pub trials: Vec<ResetTrial>,
    /// Reset time by frame loss summed up, seconds (RFC 6201 §1.3, method 1: preferred).
    pub by_loss_s: Option<Spread>,
    /// Reset time by time stamps summed up, seconds (§1.3, method 2).
    pub by_timestamps_s: Option<Spread>,
}

/// One reset.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ResetTrial {
    /// Number of the trial.
    pub trial: u32,
    /// Frames lost.
    pub lost: u64,
    /// Of those, in the longest run of lost frames.
    pub lost_in_outage: u64,
    /// Lost frames over the offered rate, seconds; the longest of the directions.
    pub by_loss_s: f64,
    /// From the last frame before the longest run of lost frames to the first behind it, seconds; `None` when no frame
    /// came back, or none was lost.
    pub by_timestamps_s: Option<f64>,
    /// Whether frames came back after it.
    pub recovered: bool,
    /// How the command ended, in words; `None` when none was run (a simulated device).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// What is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResetEvent {
    /// A process of the device is ended and started again (RFC 6201 §4.2.2).
    #[default]
    Process,
    /// A link of the device goes down and comes up.
    Link,
    /// Whatever the command does.
    Command,
}
