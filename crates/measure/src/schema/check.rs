//! The result of `linerate check`: what this machine can measure. `docs/check.md` describes it.

use serde::{Deserialize, Serialize};
use units::{Fps, Frames};

use super::{facts::HostFacts, standing::Standing};

/// Name of this version of the schema.
pub const CHECK_SCHEMA: &str = "linerate-check/1";

/// A whole check.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CheckResult {
    /// [`CHECK_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub linerate_version: String,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// Seconds asked for.
    pub duration_s: f64,
    /// Wall seconds that it took.
    pub elapsed_s: f64,
    /// The machine.
    pub host: HostFacts,
    /// What the kernel was told, where that matters.
    pub state: MachineState,
    /// CPUs that this process may use, rising; or those asked for.
    pub cpus: Vec<u32>,
    /// Each of them alone: nothing else of ours ran.
    pub cores: Vec<CoreNoise>,
    /// The two of the trials at once; `None` on one CPU, or when stopped before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<TogetherNoise>,
    /// Trials over a software cable; `None` on one CPU, or when stopped before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials: Option<CheckTrials>,
    /// What follows.
    pub answer: CheckAnswer,
    /// What would improve it, the most first.
    pub causes: Vec<Cause>,
}

/// What the kernel was told, and who else ran.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MachineState {
    /// Packets are in hugepages.
    pub hugepages: bool,
    /// The polling thread had real-time priority; `None` when nobody can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_time: Option<bool>,
    /// Share of the time that the kernel keeps from real-time threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rt_throttle_share: Option<f64>,
    /// The host moved the cores to another place during the check.
    pub cores_moved: bool,
    /// Threads of other processes that ran on these CPUs, the longest first; at most 8.
    pub others: Vec<OtherThread>,
}

/// A thread of another process.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OtherThread {
    /// Its process.
    pub pid: u32,
    /// Its name, set by the process itself.
    pub name: String,
    /// The CPU it ran on last.
    pub cpu: u32,
    /// CPU time over the time of the check.
    pub share: f64,
    /// A thread of the kernel.
    pub kernel: bool,
}

/// How often and for how long a core was away from a loop that polls the clock. Shares are of `seconds`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CoreNoise {
    /// The CPU.
    pub cpu: u32,
    /// Time polled, seconds.
    pub seconds: f64,
    /// Shortest gap between polls that counts, nanoseconds.
    pub gap_threshold_ns: u64,
    /// Number of gaps.
    pub gaps: u64,
    /// Gaps a second.
    pub gaps_per_s: f64,
    /// Median gap, nanoseconds; `None` without gaps.
    pub p50_ns: Option<u64>,
    /// 99th percentile, nanoseconds.
    pub p99_ns: Option<u64>,
    /// Largest gap, nanoseconds.
    pub largest_ns: Option<u64>,
    /// Share of the time in gaps.
    pub away_share: f64,
    /// Gaps from which a trial sets slices aside: this long, nanoseconds.
    pub absence_threshold_ns: u64,
    /// Number of those.
    pub absences: u64,
    /// Share of the time in those.
    pub absence_share: f64,
    /// Longest time without one of those, seconds.
    pub longest_clean_s: f64,
    /// Share of the time that the hypervisor gave to others, where the kernel reports it (steps of 10 ms).
    pub steal_share: Option<f64>,
    /// Share of the time that other threads had the CPU while the loop was ready to run.
    pub waited_share: Option<f64>,
    /// Interrupts a second, of all sources.
    pub interrupts_per_s: Option<f64>,
    /// Of those, of the local timer.
    pub timer_per_s: Option<f64>,
    /// Kept from the scheduler by `isolcpus`.
    pub isolated: bool,
    /// Without the timer tick while one thread runs (`nohz_full`).
    pub tickless: bool,
    /// Frequency governor, where there is one.
    pub governor: Option<String>,
    /// Other CPUs on the same core.
    pub siblings: Vec<u32>,
    /// Share of the time in which one of those was busy.
    pub sibling_busy_share: Option<f64>,
}

/// Both cores of the trials at once.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TogetherNoise {
    /// The tester's core, and the device's.
    pub cores: Vec<CoreNoise>,
    /// Share of the time in which neither was absent.
    pub both_there_share: f64,
    /// Longest time in which neither was, seconds.
    pub longest_clean_s: f64,
}

/// Trials at rising loads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CheckTrials {
    /// CPU of the tester.
    pub tester_cpu: u32,
    /// CPU of the built-in device.
    pub device_cpu: Option<u32>,
    /// Frame size, FCS included.
    pub frame_size_bytes: Option<Frames>,
    /// What the tester does without a device, frames/s.
    pub tester_max_fps: Option<Fps>,
    /// The loads, rising.
    pub loads: Vec<CheckLoad>,
    /// Trials at all that the tester can send: how fast both cores are, and how steady.
    pub full_load: Vec<FullLoad>,
}

/// All trials at one load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CheckLoad {
    /// Intended load, frames/s.
    pub load_fps: Fps,
    /// Offered in the slices that count, mean over the trials.
    pub offered_fps: Fps,
    /// Trials made.
    pub trials: u32,
    /// Of those, trials that show the load to pass.
    pub passed: u32,
    /// Time in slices that count over the time of all.
    pub clean_share: f64,
    /// Frames lost or refused in the slices that count.
    pub lost: u64,
}

/// What came through in one trial at full load, in slices in which nobody was away.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FullLoad {
    /// Frames received a second: the mean of the slices.
    pub fps: Fps,
    /// Standard deviation of the slices over their mean.
    pub deviation: f64,
    /// Length of a slice, seconds.
    pub slice_s: f64,
    /// Time in these slices, seconds.
    pub clean_s: f64,
    /// Time in the others, seconds.
    pub aside_s: f64,
}

/// What the machine can measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckAnswer {
    /// `completed`, `not_trustworthy` or `stopped`.
    pub standing: Standing,
    /// Highest load that is clean.
    pub clean_load_fps: Option<Fps>,
    /// Time in slices that count over the time of all, at full load.
    pub clean_share: Option<f64>,
    /// Width of the interval to be expected, over the rate.
    pub precision: Option<ExpectedPrecision>,
    /// That width rounded up to 1, 2 or 5 of a decade: what the machine is good for.
    pub good_for: Option<f64>,
    /// One line.
    pub conclusion: String,
}

impl Default for CheckAnswer {
    fn default() -> Self {
        Self {
            standing: Standing::NotTrustworthy,
            clean_load_fps: None,
            clean_share: None,
            precision: None,
            good_for: None,
            conclusion: String::new(),
        }
    }
}

/// How wide an interval is to be expected, and why. All are shares of the rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ExpectedPrecision {
    /// Time of measuring, seconds.
    pub within_s: f64,
    /// Whole width of the interval.
    pub width: f64,
    /// Half width by the spread of slices.
    pub by_slices: f64,
    /// Half width by what differs between trials.
    pub by_trials: f64,
}

/// Something that takes time from the polling cores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// What.
    pub kind: CauseKind,
    /// Share of the time that it took, where that is known.
    pub share: Option<f64>,
    /// What was seen, one line.
    pub text: String,
    /// What to do: a command where there is one.
    pub remedy: String,
    /// Where that is explained.
    pub page: String,
}

/// What takes time from the polling cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// There is but one CPU.
    OneCpu,
    /// The hypervisor gave the core to others, or moved it.
    Hypervisor,
    /// Other threads had the CPU.
    Processes,
    /// The kernel kept real-time threads off.
    RtThrottling,
    /// The core's other CPU was busy.
    Sibling,
    /// The timer tick.
    TimerTicks,
    /// Interrupts of devices and of other CPUs.
    Interrupts,
    /// Long absences on a machine without a hypervisor that no counter explains.
    Firmware,
    /// The frequency is not fixed.
    Governor,
    /// Packets are in ordinary pages.
    NoHugepages,
}
