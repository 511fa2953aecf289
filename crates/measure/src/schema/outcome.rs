//! How searches, tests and runs ended, and how far they meet their standards.

use serde::{Deserialize, Serialize};

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

impl Outcome {
    /// Whether there is a figure.
    pub fn has_figure(self) -> bool {
        match self {
            Self::Found | Self::AtMaximum | Self::TesterLimited => true,
            Self::BelowMinimum | Self::NoTraffic | Self::Inconclusive | Self::Interrupted => false,
        }
    }
}

/// Which standard a figure meets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StandardLabel {
    /// Such as `RFC 2544 §26.1 throughput`.
    pub name: String,
    /// Each way in which it departs, in words; empty when unconditionally compliant.
    pub departures: Vec<String>,
}

/// How a run ended, as its exit code tells it. [`Standing`](super::standing::Standing) says more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Done, nothing missed: exit code 0.
    Passed,
    /// Done, a criterion missed, or interrupted by a fault: exit code 1.
    Failed,
    /// Measured, but not trustworthy: exit code 3.
    Inconclusive,
    /// Stopped before the end; what was measured is kept: exit code 130.
    Stopped,
}

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    /// Run to its end.
    Done,
    /// Not run: the standard does not ask for it here, or there is no throughput to go by.
    NotRun,
    /// The answer is the highest that was tried, or near it: the device does at least this.
    AtMaximum,
    /// Even the least that was tried lost frames.
    BelowMinimum,
    /// The tester cannot offer what the test asks for.
    TesterLimited,
    /// Nothing came back.
    NoTraffic,
    /// Run to its end, and a criterion was not met.
    Failed,
    /// Too many trials could not be trusted, or it took too long.
    Inconclusive,
    /// Stopped by the user or a fault before its end; what was measured is kept.
    Interrupted,
}
