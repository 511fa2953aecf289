//! Figures of the frame-loss curve (RFC 2544 §26.3).

use serde::{Deserialize, Serialize};
use units::Fps;

/// The loss at each load of the curve.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FrameLoss {
    /// The rate that percentages are of: the line rate, or the highest load where that is not known.
    pub theoretical_fps: Fps,
    /// From the highest load down.
    pub points: Vec<LossPoint>,
    /// Loads of the curve that the tester cannot offer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_offered_fps: Vec<Fps>,
    /// Loads of the curve at which no trial was valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_figure: Vec<NoPoint>,
}

/// A load at which no trial was valid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoPoint {
    /// Intended load.
    pub load_fps: Fps,
    /// The same in percent of the theoretical rate.
    pub percent: f64,
    /// Why there is no figure: one line.
    pub reason: String,
}

/// The loss at one load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LossPoint {
    /// Intended load.
    pub load_fps: Fps,
    /// The same in percent of the theoretical rate.
    pub percent: f64,
    /// Frames lost or refused over frames due.
    pub loss_ratio: f64,
    /// Frames/s that came back.
    pub forwarding_fps: Fps,
    /// Number of the trial.
    pub trial: u32,
}
