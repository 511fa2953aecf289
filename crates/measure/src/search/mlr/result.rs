//! A Goal Result (RFC 9971) from the trials seen.

use super::table::{LoadTable, RelevantBounds};
use crate::schema::goal::{GoalResult, Regularity, SearchGoal};

/// The result of a goal with these trials.
pub(super) fn goal_result(goal: &SearchGoal, table: &LoadTable, regularity: Regularity) -> GoalResult {
    let RelevantBounds { lower, upper } = table.bounds(goal);
    let rows = || [lower, upper].into_iter().flatten().filter_map(|load| table.row(load));
    GoalResult {
        goal: goal.clone(),
        regularity,
        lower_fps: lower,
        upper_fps: upper,
        conditional_throughput_fps: lower.and_then(|load| table.conditional_throughput(goal, load)),
        trials: rows().flat_map(|row| row.trials.iter().map(|t| t.0)).collect(),
        trial_s: rows().flat_map(|row| row.seen()).map(|s| s.effective_s).fold(0.0, |all, s| all + s),
    }
}
