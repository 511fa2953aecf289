//! The results schema: everything a run found, with what it was found from. `docs/results-schema.md` describes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::{Fps, FrameSize, Frames, LinkSpeed};

use crate::{
    plan::Test,
    procedure::{Found, TestOutcome},
    search::mlr::GoalResult,
    trial::{DirectionCounts, TrialRecord},
};

/// Name of this version of the schema.
pub const SCHEMA: &str = "linerate-result/1";

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
    /// What was measured, in words: `built-in l3 over wire`, `eth:t0 -> eth:t1`.
    pub dut: String,
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
    /// What the reader should know, worst first.
    pub warnings: Vec<Warning>,
    /// How it ended.
    pub verdict: Verdict,
}

/// The machine a run was made on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostFacts {
    /// Host name.
    pub hostname: String,
    /// Kernel release.
    pub kernel: String,
    /// CPU model name.
    pub cpu_model: String,
    /// CPUs this process may use.
    pub cpus_allowed: u32,
    /// Hypervisor vendor when virtual.
    pub hypervisor: Option<String>,
    /// DPDK version at run time.
    pub dpdk_version: String,
    /// Memory the packets live in: `hugepages 2M` or `no hugepages`.
    pub memory: String,
    /// TSC frequency.
    pub tsc_hz: u64,
    /// Whether the TSC is invariant.
    pub tsc_invariant: bool,
    /// Anything else worth keeping.
    #[serde(default)]
    pub extra: BTreeMap<String, String>,
}

/// One port of the tester.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PortFacts {
    /// As named by the user.
    pub name: String,
    /// DPDK driver, such as `net_memif`.
    pub driver: String,
    /// MAC address.
    pub mac: String,
    /// Link speed the port reports, when it means something.
    pub link_bps: Option<LinkSpeed>,
    /// Receive and transmit descriptors.
    pub descriptors: (u32, u32),
}

/// A mix of frame sizes that trials were made of (RFC 6985).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixFacts {
    /// As `frame_size_bytes` names it.
    pub frame_size_bytes: Frames,
    /// As RFC 6985 §4 and §5 write it: `IMIX - aaafg`, `CUSTOM IMIX - AAB (A=78, B=1400)`; or how the sequence was made (§6).
    pub genome: String,
    /// Of a sequence that is not written out: what makes it (RFC 6985 §6.3 to §6.5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// Of one that is drawn at random: what from (RFC 6985 §6.4, §6.5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Frames of each size in the sequence, from the smallest up (RFC 6985 §6.2); not of a range.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proportions: Vec<Proportion>,
    /// The sizes in the order sent, over and over; FCS included.
    pub sizes_bytes: Vec<FrameSize>,
    /// Mean bytes of a frame: what bit rates and shares of the line rate go by.
    pub average_bytes: f64,
}

/// How many frames of a mix have a size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Proportion {
    /// The size, FCS included.
    pub size_bytes: FrameSize,
    /// Frames of the sequence.
    pub frames: usize,
    /// The same in percent of all.
    pub percent: f64,
}

impl MixFacts {
    /// The mixes among these frame sizes.
    pub fn of(frame_sizes: &[Frames]) -> Vec<Self> {
        let facts = |frames: &Frames| {
            let mix = frames.mix()?;
            let percent = |of: usize| of as f64 / mix.sizes().len() as f64 * 100.0;
            let proportion = |(size_bytes, frames)| Proportion { size_bytes, frames, percent: percent(frames) };
            Some(Self {
                frame_size_bytes: *frames,
                genome: mix.to_string(),
                algorithm: mix.algorithm(),
                seed: mix.seed(),
                proportions: mix.frames_by_size().into_iter().map(proportion).collect(),
                sizes_bytes: frames.sizes().to_vec(),
                average_bytes: frames.average_bytes(),
            })
        };
        frame_sizes.iter().filter_map(facts).collect()
    }
}

/// The tester with no DUT: sending, receiving and checking every frame over a looped cable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelfTestPoint {
    /// Frame size, FCS included, or the mix.
    pub frame_size_bytes: Frames,
    /// Most frames/s sent, received and checked by one lcore.
    pub max_fps: Fps,
    /// Ticks of the tester's clock a frame took.
    pub cycles_per_frame: f64,
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
    /// The trial at the throughput found, by number.
    pub at_throughput_trial: Option<u32>,
    /// That trial's counts, one a direction, with latency.
    pub at_throughput: Vec<DirectionCounts>,
    /// Numbers of the trials behind the answer.
    pub trials: Vec<u32>,
    /// Trials thrown away as invalid.
    pub invalid_trials: u32,
    /// When nothing came back or the search failed: what was seen and the likely cause.
    pub diagnosis: Option<String>,
    /// What MLRsearch found for each goal, in the order of the plan; the figures above are the first goal's. Empty for
    /// other searches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<GoalResult>,
}

/// The answer of a test beside the throughput at one frame size.
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
    /// Trials thrown away as invalid or made in another placement of the cores.
    pub invalid_trials: u32,
    /// The figures.
    pub found: Found,
}

/// How far a standard is met (RFC 2544 §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compliance {
    /// Everything that it says MUST and SHOULD be.
    Unconditional,
    /// Everything that it says MUST be.
    Conditional,
    /// Something that it says MUST be was not.
    Departs,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Both bounds stand within the precision.
    Found,
    /// Even the highest load asked for met the goal.
    AtMaximum,
    /// The tester, not the DUT, set the highest load: the DUT does at least this.
    TesterLimited,
    /// Even the lowest load did not meet the goal.
    BelowMinimum,
    /// Nothing came back at any load.
    NoTraffic,
    /// Too many trials could not be trusted.
    Inconclusive,
    /// Stopped by the user or a fault before it ended; the bounds so far are kept.
    Interrupted,
}

/// Which standard a figure meets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StandardLabel {
    /// Such as `RFC 2544 §26.1 throughput`.
    pub name: String,
    /// Each way in which it departs, in words; empty when unconditionally compliant.
    pub departures: Vec<String>,
}

/// A class of places the hypervisor puts the cores in use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// Class number, in order of first sight.
    pub class: u32,
    /// Median core-to-core latency of its trials, one way, ns.
    pub core_to_core_ns: f64,
}

/// An answer in another placement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PlacementAnswer {
    /// The placement.
    pub placement: Placement,
    /// How far the search came there.
    pub outcome: Outcome,
    /// Highest load that met the goal there.
    pub throughput_fps: Option<Fps>,
    /// Lowest load that did not.
    pub upper_bound_fps: Option<Fps>,
    /// Valid trials made there.
    pub trials: u32,
}

/// Something the reader should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// What kind.
    pub kind: WarningKind,
    /// Cause and remedy, one line.
    pub text: String,
}

/// The closed list of warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// Trials were thrown away.
    InvalidTrials,
    /// The cores moved between placements.
    PlacementChanged,
    /// The tester was the limit.
    TesterLimited,
    /// Shorter than the standard asks.
    ShortTrials,
    /// Latency withheld: the clock cannot be trusted.
    Clock,
    /// No hugepages.
    NoHugepages,
    /// A port fell back to a slower driver.
    PortFallback,
    /// A port's own counters disagree with ours.
    PortCounters,
    /// Frames of a replay came back that are none of the capture's.
    Foreign,
    /// The machine is virtual, or lcores share a CPU.
    Host,
    /// The run was stopped before its end.
    Stopped,
    /// The device was simulated: nothing was measured.
    Simulated,
    /// The testbed lacks, or is not known to have, what the plan's document has.
    Needs,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Done and every criterion met: exit code 0.
    Passed,
    /// Done, a criterion was not met: exit code 1.
    Failed,
    /// Measured, but not trustworthy: exit code 3.
    Inconclusive,
    /// Stopped before the end; what was measured is kept: exit code 130 after Ctrl-C, otherwise 1.
    Stopped,
}
