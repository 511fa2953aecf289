//! How a run stands.

use serde::{Deserialize, Serialize};

use super::outcome::Verdict;

/// How a run stands, from good to bad. Results of schema 1 had a verdict: `passed`, `failed`, `inconclusive`, `stopped`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Done, and every criterion that was set is met: exit code 0.
    CriterionMet,
    /// Done; no criterion was set: exit code 0.
    #[serde(alias = "passed")]
    Completed,
    /// Done; no criterion was set, and no figure is a limit of the device: exit code 0.
    NotDeviceLimit,
    /// Done, and a criterion is missed: exit code 1.
    #[serde(alias = "failed")]
    CriterionMissed,
    /// A fault ended it early, such as a link that went down; what was measured is kept: exit code 1.
    Interrupted,
    /// Measured, but not trustworthy: exit code 3.
    #[serde(alias = "inconclusive")]
    NotTrustworthy,
    /// Stopped by the user; what was measured is kept: exit code 130.
    Stopped,
}

impl Standing {
    /// Whether it was done to its end, and misses nothing.
    pub fn is_good(self) -> bool {
        self.verdict() == Verdict::Passed
    }

    /// The exit code's share of it.
    pub fn verdict(self) -> Verdict {
        match self {
            Self::CriterionMet | Self::Completed | Self::NotDeviceLimit => Verdict::Passed,
            Self::CriterionMissed | Self::Interrupted => Verdict::Failed,
            Self::NotTrustworthy => Verdict::Inconclusive,
            Self::Stopped => Verdict::Stopped,
        }
    }

    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::CriterionMet => "criterion met",
            Self::Completed | Self::NotDeviceLimit => "completed; no criterion was set",
            Self::CriterionMissed => "criterion missed",
            Self::Interrupted => "interrupted by a fault; what was measured is kept",
            Self::NotTrustworthy => "not trustworthy",
            Self::Stopped => "stopped before the end; what was measured is kept",
        }
    }
}

impl From<Verdict> for Standing {
    /// Of a run without figures of its own, such as the score of a flow logger.
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Passed => Self::CriterionMet,
            Verdict::Failed => Self::CriterionMissed,
            Verdict::Inconclusive => Self::NotTrustworthy,
            Verdict::Stopped => Self::Stopped,
        }
    }
}
