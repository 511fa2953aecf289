//! What the slices of a trial show about the device, kept with the trial in place of the slices.

use serde::{Deserialize, Serialize};
use units::Fps;

/// What the slices of a trial show. Rates are per direction, the mean over directions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SliceEvidence {
    /// Length of a slice, seconds.
    pub slice_s: f64,
    /// Time of sending in slices that count, seconds: nobody was away, nor had the device to recover from it.
    pub clean_s: f64,
    /// Time of sending in the other slices, seconds.
    pub aside_s: f64,
    /// Offered load in the slices that count: frames sent or refused.
    pub offered_fps: Fps,
    /// Frames sent or refused in the slices that count, over all directions.
    pub offered: u64,
    /// Of those, frames lost or refused.
    pub lost: u64,
    /// Of `aside_s`, time in which an outside device stood still while it was loaded, seconds: the device or the host was
    /// away, nobody knows which.
    pub stalled_s: f64,
    /// Frames lost or refused in that time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stalled_lost: u64,
    /// How long frames waited in the queue of a device under pressure, seconds.
    pub queue_s: f64,
    /// Most frames a direction that the device took beyond its rate before it lost any: what its buffers or buckets of tokens
    /// hold. Zero where it was never kept busy.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub absorbed: u64,
    /// What the device forwarded while it was kept busy, whoever was away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_measured: Option<Saturation>,
    /// The same without the slices in which the device was away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undisturbed: Option<Saturation>,
    /// What was offered later on, where nothing was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
    /// The delay of the slices that count, where frames came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<DelayTrend>,
}

/// Time in slices that count that a trial must have, as a share of it, and in seconds.
const CLEAN_SHARE: f64 = 0.1;
const CLEAN_S: f64 = 5e-3;

impl SliceEvidence {
    /// Whether a trial of this length has time enough in which nobody was away.
    pub fn is_clean(&self, duration_s: f64) -> bool {
        self.clean_s >= CLEAN_S.max(duration_s * CLEAN_SHARE).min(duration_s * 0.5)
    }
}

fn is_zero(frames: &u64) -> bool {
    *frames == 0
}

/// The rate of a device that was kept busy: every slice of a stretch lost frames, or met a full queue.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Saturation {
    /// Frames forwarded over the time of all stretches.
    pub fps: Fps,
    /// Standard error of that, by the spread of parts of the stretches.
    pub error_fps: Fps,
    /// Time in such stretches, seconds.
    pub seconds: f64,
    /// Number of stretches.
    pub stretches: u32,
}

/// Load offered after the first quarter of a trial: what a bucket of tokens lets through at first is gone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// In all slices, whoever was away.
    pub all_fps: Fps,
    /// In the slices that count.
    pub clean_fps: Fps,
    /// In all slices of the first half of that time.
    pub earlier_fps: Fps,
    /// In all slices of the second half.
    pub later_fps: Fps,
}

/// How the smallest delays of slices moved within stretches that count.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DelayTrend {
    /// The floor: a low percentile of the smallest delay of each slice, nanoseconds.
    pub floor_ns: u64,
    /// The smallest delay at the end of the stretches, the median over stretches, nanoseconds.
    pub end_ns: u64,
    /// Seconds that the delay grows by in a second; about zero below the capacity, and the share of the excess above it.
    pub growth: f64,
}
