//! The results schema: everything a run found, with what it was found from. `docs/results-schema.md` describes it.

use serde::{Deserialize, Serialize};
use units::{Fps, Frames, LinkSpeed};

use super::{
    answer::IntervalAnswer,
    device::DeviceRecord,
    found::Found,
    goal::GoalResult,
    lab::LabRecord,
    test::Test,
    timeline::TrialTimeline,
    trial::{DirectionCounts, TrialRecord},
};
pub use super::{
    facts::{
        FindingLevel, HostFacts, HostFinding, MixFacts, PortFacts, Proportion, SelfTestKind, SelfTestPair,
        SelfTestPoint,
    },
    outcome::{Compliance, Outcome, StandardLabel, TestOutcome, Verdict},
    placement::{CoreToCore, Placement, PlacementAnswer},
    standing::Standing,
    warning::{Warning, WarningKind},
};

/// Name of this version of the schema.
pub const SCHEMA: &str = "linerate-result/2";
/// The version before, with a verdict and the device in words only; [`crate::upgrade`] brings it to this one.
pub const SCHEMA_1: &str = "linerate-result/1";

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub linerate_version: String,
    /// Name of the plan.
    pub plan_name: String,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// Wall seconds of the whole run.
    pub elapsed_s: f64,
    /// The machine.
    pub host: HostFacts,
    /// What was measured, in words: `built-in l3 over wire`, `eth:t0 <-> eth:t1`.
    pub dut: String,
    /// The same by its parts.
    #[serde(default)]
    pub device: DeviceRecord,
    /// The lab between the ports, where Linerate brought one up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab: Option<LabRecord>,
    /// What the user calls the device, for tables and pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dut_name: Option<String>,
    /// The tester's ports in order, as named by the user.
    pub ports: Vec<PortFacts>,
    /// Link speed used for percentages, when known or given.
    pub link_bps: Option<LinkSpeed>,
    /// Number of directions loaded: 1 or 2.
    pub directions: u32,
    /// The effective plan with every default, as TOML would hold it.
    pub effective_plan: serde_json::Value,
    /// The mixes of frame sizes among those of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mixes: Vec<MixFacts>,
    /// What the tester can do with no DUT, per frame size.
    pub selftest: Vec<SelfTestPoint>,
    /// One answer per frame size (empty for a single trial).
    pub sizes: Vec<SizeResult>,
    /// One answer for each other test and frame size. Empty when there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<TestResult>,
    /// Every trial in the order run, valid or not.
    pub trials: Vec<TrialRecord>,
    /// One telling trial of a search by slices over time: at the first frame size with a figure (without any, at the last
    /// one) the last overload, or else the last trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<TrialTimeline>,
    /// What the reader should know, worst first.
    pub warnings: Vec<Warning>,
    /// How it stands.
    #[serde(alias = "verdict")]
    pub standing: Standing,
}

/// The answer for one frame size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizeResult {
    /// Frame size, FCS included, or the mix.
    pub frame_size_bytes: Frames,
    /// How the search ended.
    pub outcome: Outcome,
    /// Highest load that met the goal, per direction. `None` unless something was found.
    pub throughput_fps: Option<Fps>,
    /// Lowest load known not to meet the goal, per direction.
    pub upper_bound_fps: Option<Fps>,
    /// Between which loads it lies, where it was searched for by slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<IntervalAnswer>,
    /// Which standard the figure meets, such as `RFC 2544 §26.1`, and each departure from it.
    pub standard: StandardLabel,
    /// Whether that standard is met; results of before it was told have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compliance: Option<Compliance>,
    /// The standard of the latency at the throughput, with departures of its own; nothing where none was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_standard: Option<StandardLabel>,
    /// Whether that one is met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_compliance: Option<Compliance>,
    /// Core-to-core latency of the placement it was found in.
    pub placement: Option<Placement>,
    /// Answers found in other placements of the cores, when the machine moved them.
    #[serde(default)]
    pub other_placements: Vec<PlacementAnswer>,
    /// The way of a cache line from core to core, over all trials of the size; nothing where none was probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_to_core: Option<CoreToCore>,
    /// The trial at the throughput found, by number.
    pub at_throughput_trial: Option<u32>,
    /// That trial's counts, one a direction, with latency.
    pub at_throughput: Vec<DirectionCounts>,
    /// Numbers of the trials behind the answer.
    pub trials: Vec<u32>,
    /// Trials discarded as invalid.
    pub invalid_trials: u32,
    /// When nothing came back or the search failed: what was seen and the likely cause.
    pub diagnosis: Option<String>,
    /// What MLRsearch found for each goal, in the order of the plan; the figures above are the first goal's. Empty for
    /// other searches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<GoalResult>,
}

/// The answer of a test besides the throughput at one frame size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// Which test.
    pub test: Test,
    /// Frame size, FCS included, or the mix.
    pub frame_size_bytes: Frames,
    /// How it ended.
    pub outcome: TestOutcome,
    /// Why, when the outcome alone does not say: one line.
    pub reason: Option<String>,
    /// Which standard it follows, with its parameters, and each departure.
    pub standard: StandardLabel,
    /// Whether the standard is met.
    pub compliance: Compliance,
    /// Numbers of the valid trials behind it.
    pub trials: Vec<u32>,
    /// Trials discarded as invalid or made in another placement of the cores.
    pub invalid_trials: u32,
    /// The figures.
    pub found: Found,
}
