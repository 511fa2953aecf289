//! What the reader of a result should know.

use serde::{Deserialize, Serialize};

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
    /// Trials were discarded.
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
    /// The machine is virtual, or lcores share a CPU with each other.
    Host,
    /// Another process polls on a CPU in use.
    CpuShared,
    /// The kernel limits real-time priority.
    Realtime,
    /// Virtual machines of a lab are emulated: their rates mean nothing.
    Emulated,
    /// The run was stopped before its end.
    Stopped,
    /// The device was simulated: nothing was measured.
    Simulated,
    /// The testbed lacks, or is not known to have, what the plan's document has.
    Needs,
}
