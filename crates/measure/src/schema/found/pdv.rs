//! Delay variation of a stream (RFC 5481).

use serde::{Deserialize, Serialize};
use units::Fps;

use super::spread::Spread;
use crate::schema::delay::IpdvSummary;

/// Delay variation at one load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Pdv {
    /// Intended load.
    pub load_fps: Fps,
    /// Length of a window, seconds.
    pub window_s: f64,
    /// Loss ratio of the trial.
    pub loss_ratio: f64,
    /// One entry a direction.
    pub directions: Vec<PdvDirection>,
}

/// Delay variation of one direction. Nanoseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PdvDirection {
    /// Sending port.
    pub from: String,
    /// Receiving port.
    pub to: String,
    /// Smallest delay of the whole.
    pub min_ns: u64,
    /// PDV p99.9 of the whole, against that minimum (RFC 5481 §4.2).
    pub pdv_p99_9_ns: u64,
    /// IPDV of the whole (§4.1).
    pub ipdv: Option<IpdvSummary>,
    /// The windows summed up; `None` when there are none with frames.
    pub windows: Option<WindowSpread>,
}

/// How the windows of a direction differ. Nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowSpread {
    /// Their smallest delays.
    pub min_ns: Spread,
    /// Their PDV p99.9, each against its own minimum.
    pub pdv_p99_9_ns: Spread,
    /// Their IPDV ranges, from the 5th to the 95th percentile; `None` where none was measured.
    pub ipdv_range_ns: Option<Spread>,
}
