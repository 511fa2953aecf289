//! Forwarding rates (RFC 2285 §3.6, RFC 2889 §5.6).

use serde::{Deserialize, Serialize};
use units::Fps;

/// Forwarding rates by load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ForwardingRate {
    /// The throughput, at which the steps begin.
    pub throughput_fps: Fps,
    /// Maximum offered load.
    pub mol_fps: Fps,
    /// Step of the intended load.
    pub step_fps: Fps,
    /// Forwarding rate at the maximum offered load (FRMOL).
    pub frmol_fps: Option<Fps>,
    /// Maximum forwarding rate (MFR).
    pub mfr_fps: Option<Fps>,
    /// The intended load it was seen at.
    pub mfr_iload_fps: Option<Fps>,
    /// Every load tried, rising.
    pub points: Vec<ForwardingPoint>,
}

/// The forwarding rate at one load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ForwardingPoint {
    /// Intended load (Iload).
    pub iload_fps: Fps,
    /// Offered load (Oload).
    pub oload_fps: Fps,
    /// Forwarding rate (FR).
    pub fr_fps: Fps,
    /// Number of the trial.
    pub trial: u32,
}
