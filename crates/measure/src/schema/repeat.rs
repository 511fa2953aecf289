//! What whole runs of the same plan found, one after the other, and how far they agree. `docs/results-schema.md` describes it.

use serde::{Deserialize, Serialize};
use units::{Fps, Frames};

use super::{result::RunResult, standing::Standing};

/// Name of this version of the schema.
pub const REPEAT_SCHEMA: &str = "linerate-repeat/1";

/// Several whole runs of one plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepeatResult {
    /// [`REPEAT_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub linerate_version: String,
    /// Name of the plan.
    pub plan_name: String,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// Wall seconds of all runs.
    pub elapsed_s: f64,
    /// The effective plan with every default, as TOML would hold it.
    pub effective_plan: serde_json::Value,
    /// Runs asked for; fewer were made when it was stopped.
    pub planned: usize,
    /// How far the runs agree at each frame size, in the order of the plan.
    pub sizes: Vec<RepeatedSize>,
    /// The runs made, in order.
    pub runs: Vec<RunResult>,
    /// How it stands: as its runs together.
    pub standing: Standing,
}

/// How far the runs agree at one frame size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepeatedSize {
    /// Frame size, FCS included, or the mix.
    pub frame_size_bytes: Frames,
    /// Runs that searched at it.
    pub made: usize,
    /// Of those, runs with a figure.
    pub answered: usize,
    /// Of those, figures that are limits of the device, rather than of the tester, the link or the plan.
    pub device_limits: usize,
    /// The figures summarised; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<RepeatedFigures>,
    /// Pairs of runs whose answers have intervals.
    pub pairs: usize,
    /// Of those, pairs whose intervals overlap.
    pub overlapping: usize,
    /// The runs by the way of a cache line from core to core, the shortest first; empty unless the host had the cores in
    /// several placements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<RepeatedPlacement>,
    /// What is clear about the order of the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
}

/// How far runs agree whose cores were equally far apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepeatedPlacement {
    /// The shortest way from core to core of these runs (each has the median of its trials), ns.
    pub min_ns: f64,
    /// The longest, ns.
    pub max_ns: f64,
    /// Numbers of the runs, from 1.
    pub runs: Vec<usize>,
    /// Their figures summarised.
    pub figures: RepeatedFigures,
    /// Pairs of them whose answers have intervals.
    pub pairs: usize,
    /// Of those, pairs whose intervals overlap.
    pub overlapping: usize,
}

/// The figures of several runs: each is the likeliest load of a run's interval, or else its throughput. Frames/s per
/// direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RepeatedFigures {
    /// Half of the figures are below it.
    pub median_fps: Fps,
    /// Smallest figure.
    pub min_fps: Fps,
    /// Largest figure.
    pub max_fps: Fps,
    /// Their mean.
    pub mean_fps: Fps,
    /// Half of the 95 % interval of the mean, by Student's t; `None` of one figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_error_fps: Option<Fps>,
    /// Sample standard deviation over the mean; 0 of one figure.
    pub relative_stddev: f64,
}

/// Something that is clear about the figures of several runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Remark {
    /// What.
    pub kind: RemarkKind,
    /// Numbers of the runs that it is about, from 1; empty of a drift, which is about all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<usize>,
    /// How far, as a share of the median: of outliers the largest distance from it, of a drift the change from the first
    /// run to the last. Negative is downwards.
    pub change: f64,
}

/// What can be clear about the figures of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemarkKind {
    /// The first run is far from all others.
    FirstRun,
    /// Other runs are far from the rest.
    Outliers,
    /// The figures rise or fall from run to run.
    Drift,
}
