use serde::{Deserialize, Serialize};
use units::Fps;

use super::{
    table::{LoadTable, RelevantBounds},
    SearchGoal,
};

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

impl GoalResult {
    pub(super) fn new(goal: &SearchGoal, table: &LoadTable, regularity: Regularity) -> Self {
        let RelevantBounds { lower, upper } = table.bounds(goal);
        let rows = || [lower, upper].into_iter().flatten().filter_map(|load| table.row(load));
        Self {
            goal: goal.clone(),
            regularity,
            lower_fps: lower,
            upper_fps: upper,
            conditional_throughput_fps: lower.and_then(|load| table.conditional_throughput(goal, load)),
            trials: rows().flat_map(|row| row.trials.iter().map(|t| t.0)).collect(),
            trial_s: rows().flat_map(|row| row.seen()).map(|s| s.effective_s).fold(0.0, |all, s| all + s),
        }
    }
}
