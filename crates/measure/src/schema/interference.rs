//! What disturbed the cores in use during a trial.

use serde::{Deserialize, Serialize};

/// What disturbed the lcores in use during a trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Interference {
    /// One entry a polling lcore.
    pub lcores: Vec<LcoreInterference>,
    /// Core-to-core latency just before, one way, nanoseconds; `None` when only one core is in use.
    pub core_to_core_before_ns: Option<f64>,
    /// Core-to-core latency just after, one way, nanoseconds.
    pub core_to_core_after_ns: Option<f64>,
    /// Number of the placement class (from 0) this trial was made in; `None` when it changed during the trial.
    pub placement: Option<u32>,
    /// How long busy threads of an outside device waited for a CPU that another thread had, the longest of them,
    /// nanoseconds; `None` when none is watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_waited_ns: Option<u64>,
    /// TSC against CLOCK_MONOTONIC over the trial, parts per million; large means a clock lies.
    pub clock_drift_ppm: f64,
}

/// What disturbed one polling lcore.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LcoreInterference {
    /// Whose core it is.
    pub role: LcoreRole,
    /// EAL lcore id.
    pub lcore: u32,
    /// CPU it is pinned to, when it is pinned to one.
    pub cpu: Option<u32>,
    /// How the kernel schedules its thread while it polls; `None` in results of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<Scheduling>,
    /// Time in turns of the tester's loop that sent or received frames, until sending ended: the driver's and the kernel's part
    /// of its calls included. `None` of the device, and in results of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_ns: Option<u64>,
    /// Largest time between two polls.
    pub largest_gap_ns: u64,
    /// When the largest gap began, from the start of the trial.
    pub largest_gap_at_ns: u64,
    /// Sum of gaps long enough to lose frames (see `gap_threshold_ns`).
    pub total_gap_ns: u64,
    /// Number of such gaps.
    pub gaps: u64,
    /// The shortest polling gap counted.
    pub gap_threshold_ns: u64,
    /// Steal time of its CPU over the trial, when the kernel reports it.
    pub steal_ns: Option<u64>,
    /// How long its thread was ready while another thread had the CPU, when the kernel counts that: what this does not explain
    /// of the gaps, interrupts, the firmware or a host took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
    /// Involuntary context switches of its thread.
    pub involuntary_switches: Option<u64>,
    /// Interrupts taken by its CPU.
    pub interrupts: Option<u64>,
    /// CPU frequency seen at the end of the trial, when the kernel reports it.
    pub frequency_mhz: Option<f64>,
    /// Thermal throttle events of its CPU, when the kernel reports them.
    pub throttles: Option<u64>,
}

impl Interference {
    /// Whether the way from core to core was probed, before or after: not with one core.
    pub fn is_probed(&self) -> bool {
        self.core_to_core_before_ns.is_some() || self.core_to_core_after_ns.is_some()
    }
}

/// How the kernel schedules a polling thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheduling {
    /// As every thread: it shares its CPU with others.
    Ordinary,
    /// With real-time priority: ordinary threads wait until it is done.
    Realtime,
}

impl Scheduling {
    /// As results and tables write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ordinary => "ordinary",
            Self::Realtime => "realtime",
        }
    }
}

/// Whose polling lcore it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LcoreRole {
    /// The tester's: sends, receives and checks.
    #[default]
    Tester,
    /// The built-in device's.
    Dut,
}

impl LcoreRole {
    /// As results and tables write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tester => "tester",
            Self::Dut => "dut",
        }
    }
}
