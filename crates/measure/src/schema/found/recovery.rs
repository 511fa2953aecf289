//! Figures of system recovery (RFC 2544 §26.5).

use serde::{Deserialize, Serialize};
use units::Fps;

use super::spread::Spread;

/// Recovery times.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Recovery {
    /// The throughput.
    pub throughput_fps: Fps,
    /// The overload: the least of its multiple of the throughput and the highest load.
    pub overload_fps: Fps,
    /// The load after it: half of the overload.
    pub after_fps: Fps,
    /// Each trial.
    pub trials: Vec<RecoveryTrial>,
    /// Recovery times summed up, seconds; of the trials in which it recovered.
    pub recovery_s: Option<Spread>,
}

/// One overload.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RecoveryTrial {
    /// Number of the trial.
    pub trial: u32,
    /// From the drop of the load to the last lost frame, seconds; 0 when none was lost any more; `None` when frames were
    /// lost to the end.
    pub recovery_s: Option<f64>,
    /// Frames lost in all.
    pub lost: u64,
}
