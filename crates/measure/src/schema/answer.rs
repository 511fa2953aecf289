//! The answer of a search with its uncertainty.

use serde::{Deserialize, Serialize};
use units::Fps;

/// What was shown of a throughput: between which loads it lies. Loads are per direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct IntervalAnswer {
    /// Highest load shown to meet the goal; `None` when none was.
    pub lower_fps: Option<Fps>,
    /// Lowest load shown not to meet it; `None` when none was: the tester or the plan set the highest load.
    pub upper_fps: Option<Fps>,
    /// The likeliest load, within the two.
    pub point_fps: Option<Fps>,
    /// Confidence of the interval, 0 to 1; `None` of a search whose bounds rest on single trials (TST009, MLRsearch).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Time behind it in slices that count, seconds.
    pub clean_seconds: f64,
    /// Passes over the loads near the answer.
    pub passes: u32,
    /// Share of the sending time that was set aside, since somebody was away.
    pub aside_share: f64,
    /// What the device forwarded while it was kept busy, whoever was away; `None` when it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_measured: Option<AsMeasured>,
}

/// The rate that a device forwarded while it was kept busy, disturbances included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AsMeasured {
    /// Lower end of the interval.
    pub lower_fps: Fps,
    /// Upper end of the interval.
    pub upper_fps: Fps,
    /// Mean over the passes.
    pub point_fps: Fps,
}

impl IntervalAnswer {
    /// Width over the upper end; `None` when an end is missing.
    pub fn relative_width(&self) -> Option<f64> {
        let (lower, upper) = (self.lower_fps?.get(), self.upper_fps?.get());
        (upper > 0.0).then(|| (upper - lower) / upper)
    }
}
