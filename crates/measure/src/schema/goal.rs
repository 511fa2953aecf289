//! Search goals of MLRsearch (RFC 9971), and what a search found for each.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use units::{Fps, Ratio};

use super::text::{self, span_text};

/// A Search Goal (RFC 9971, Goal Terms), as written; `plan::GoalSet::new` says whether it makes sense.
///
/// Its default is CSIT's goal without loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SearchGoal {
    /// Short name, one of its kind in a search: `NDR`.
    pub name: String,
    /// Goal Final Trial Duration: trials shorter than this are short ones.
    #[serde(with = "text::span")]
    pub final_duration: Duration,
    /// Goal Duration Sum: trials of so much in all settle a load at the latest, when they are full-length.
    #[serde(with = "text::span")]
    pub duration_sum: Duration,
    /// Goal Loss Ratio: a trial that loses more is a high-loss one.
    #[serde(with = "text::ratio")]
    pub loss_ratio: Ratio,
    /// Goal Exceed Ratio: the share of the duration sum that high-loss trials may take at a lower bound.
    #[serde(with = "text::ratio")]
    pub exceed_ratio: Ratio,
    /// Goal Initial Trial Duration: no trial for this goal's sake is shorter. Absent: the final one.
    #[serde(with = "text::opt_span", skip_serializing_if = "Option::is_none")]
    pub initial_duration: Option<Duration>,
    /// Goal Width: the bounds are close enough when `(upper - lower) / upper` is no more than this.
    #[serde(with = "text::ratio")]
    pub width: Ratio,
}

impl Default for SearchGoal {
    fn default() -> Self {
        Self::of("NDR", (1, 21), (0.0, 0.5), 0.005)
    }
}

impl SearchGoal {
    /// Durations in seconds: final, sum. Ratios: loss, exceed.
    pub(crate) fn of(name: &str, durations: (u64, u64), ratios: (f64, f64), width: f64) -> Self {
        let ratio = |r| Ratio::new(r).unwrap_or(Ratio::ZERO);
        Self {
            name: name.to_owned(),
            final_duration: Duration::from_secs(durations.0),
            duration_sum: Duration::from_secs(durations.1),
            loss_ratio: ratio(ratios.0),
            exceed_ratio: ratio(ratios.1),
            initial_duration: None,
            width: ratio(width),
        }
    }

    pub(crate) fn tried_for_a_second(self) -> Self {
        Self { initial_duration: Some(Duration::from_secs(1)), ..self }
    }

    /// Goal Final Trial Duration, seconds.
    pub fn final_s(&self) -> f64 {
        self.final_duration.as_secs_f64()
    }

    /// Goal Duration Sum, seconds.
    pub fn sum_s(&self) -> f64 {
        self.duration_sum.as_secs_f64()
    }

    /// Goal Initial Trial Duration, seconds.
    pub fn initial_s(&self) -> f64 {
        self.initial_duration.unwrap_or(self.final_duration).as_secs_f64()
    }

    /// Whether two loads are within the goal's width of each other.
    pub fn narrow(&self, lower: f64, upper: f64) -> bool {
        upper - lower <= upper * self.width.get() * (1.0 + 1e-9)
    }

    /// Whether a result of this goal is unconditionally compliant with RFC 2544 (RFC 9971, MLRsearch Compliant with RFC
    /// 2544).
    pub fn is_rfc2544(&self) -> bool {
        self.is_lossless() && self.final_s() >= 60.0
    }

    /// Whether no trial at a lower bound may lose a frame: enough to be conditionally compliant (ibid.).
    pub fn is_lossless(&self) -> bool {
        self.loss_ratio == Ratio::ZERO && self.exceed_ratio == Ratio::ZERO
    }

    /// Every attribute, in words: `NDR (loss 0 %, exceed 50 %, final 1s, sum 21s, initial 1s, width 0.5 %)`.
    pub fn describe(&self) -> String {
        format!(
            "{} (loss {}, exceed {}, final {}, sum {}, initial {}, width {})",
            self.name,
            self.loss_ratio,
            self.exceed_ratio,
            span_text(self.final_duration),
            span_text(self.duration_sum),
            span_text(self.initial_duration.unwrap_or(self.final_duration)),
            self.width
        )
    }
}

/// What the search found for one goal: a Goal Result (RFC 9971). Loads are intended loads per direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoalResult {
    /// The goal, every attribute of it.
    pub goal: SearchGoal,
    /// Regular, or why not. An irregular result's figures must be marked as such wherever they are shown.
    pub regularity: Regularity,
    /// Relevant Lower Bound; only an effective one when there is no upper bound.
    pub lower_fps: Option<Fps>,
    /// Relevant Upper Bound.
    pub upper_fps: Option<Fps>,
    /// Conditional Throughput at the lower bound: the forwarding rate to expect there.
    pub conditional_throughput_fps: Option<Fps>,
    /// Numbers of the trials at the lower bound, then of those at the upper one.
    pub trials: Vec<u32>,
    /// Seconds of these trials.
    pub trial_s: f64,
}

/// Whether a Goal Result is a regular one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Regularity {
    /// Both bounds stand, no farther apart than the goal's width.
    Regular,
    /// Irregular: Max Load is a lower bound, there is no upper one.
    AtMaximum,
    /// Irregular: the same, and it is the tester that sets Max Load.
    TesterLimited,
    /// Irregular: Min Load is an upper bound, there is no lower one.
    BelowMinimum,
    /// Irregular: the search ended before the goal's bounds met; they are given as far as they stand.
    Unfinished,
}
