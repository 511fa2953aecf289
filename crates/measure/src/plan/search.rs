//! `[search]`: which search finds the throughput, and its bounds.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use units::{Load, Ratio};

use super::{error::PlanError, goals::Goals, limits::percent};
use crate::schema::text;

/// Which search finds the throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Binary search from the highest load (RFC 2544 §26.1).
    #[default]
    Rfc2544,
    /// Binary search with loss verification over an array of loads (ETSI GS NFV-TST 009 §12.3.3).
    Tst009,
    /// MLRsearch: the bounds of several goals in one search (RFC 9971).
    Mlrsearch,
}

/// `[search]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SearchPlan {
    /// Which search.
    pub method: Method,
    /// Loss ratio that still passes. With `mlrsearch` this, `precision` and `duration` are the goals' own.
    #[serde(with = "text::ratio")]
    pub tolerated_loss: Ratio,
    /// Relative width `(upper - lower) / upper` at which the search stops; for `tst009` the step over the highest load.
    #[serde(with = "text::ratio")]
    pub precision: Ratio,
    /// Sending time of each trial (RFC 2544 §24: 60 s).
    #[serde(with = "text::span")]
    pub duration: Duration,
    /// Lowest load of the search, per direction; zero: the smallest load whose trial can tell the precision.
    #[serde(with = "text::load")]
    pub lower: Load,
    /// Highest load, per direction; absent: the line rate, or what the tester can do.
    #[serde(with = "text::opt_load", skip_serializing_if = "Option::is_none")]
    pub upper: Option<Load>,
    /// `tst009`: how often a lossy load is tried again, max(r) - 1.
    pub retries: u32,
    /// `tst009`: a trial that lost more frames than this is not tried again (z); absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_max_lost: Option<u64>,
    /// Most trials for one frame size, invalid ones counted. Absent: 100, and 400 for `mlrsearch`, whose trials are many
    /// and short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_trials: Option<u32>,
    /// Most time for one frame size, waits included.
    #[serde(with = "text::span")]
    pub timeout: Duration,
    /// `mlrsearch`: sending time of a first trial at the highest load that counts for nothing; zero: none.
    #[serde(with = "text::span", skip_serializing_if = "Duration::is_zero")]
    pub warmup: Duration,
    /// `mlrsearch`: the goals; absent: `csit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goals: Option<Goals>,
}

impl SearchPlan {
    /// Keys that belong to each goal with `mlrsearch`, and their names there.
    pub(super) const OF_GOALS: [(&'static str, &'static str); 3] =
        [("tolerated_loss", "loss_ratio"), ("precision", "width"), ("duration", "final_duration")];

    /// Most trials for one frame size: what was given, or the default of the method.
    pub fn max_trials(&self) -> u32 {
        self.max_trials.unwrap_or(if self.method == Method::Mlrsearch { 400 } else { 100 })
    }

    /// Whether the key belongs to each goal with `mlrsearch`.
    pub(super) fn is_of_goals(key: &str) -> bool {
        Self::OF_GOALS.iter().any(|(own, _)| *own == key)
    }

    /// Why a key is refused that belongs to each goal.
    pub(super) fn of_goals(key: &str, value: impl std::fmt::Display) -> PlanError {
        let there = Self::OF_GOALS.iter().find(|(own, _)| *own == key).map_or(key, |(_, there)| there);
        let legal = format!(
            "belongs to each goal with search.method = \"mlrsearch\": leave out search.{key}, and set {there} in search.goals"
        );
        PlanError::value(format!("search.{key}"), value, legal)
    }
}

impl Default for SearchPlan {
    fn default() -> Self {
        Self {
            method: Method::Rfc2544,
            tolerated_loss: Ratio::ZERO,
            precision: percent(0.5),
            duration: Duration::from_secs(60),
            lower: Load::Frames(units::Fps::ZERO),
            upper: None,
            retries: 0,
            retry_max_lost: None,
            max_trials: None,
            timeout: Duration::from_secs(2 * 3600),
            warmup: Duration::ZERO,
            goals: None,
        }
    }
}
