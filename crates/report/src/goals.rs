//! Search goals of MLRsearch as tables and pictures of several results show them.

use measure::search::mlr::{GoalResult, Regularity};

use crate::{figures::Shown, text};

/// A goal's name, as long as a column bears.
pub(crate) fn name(goal: &GoalResult) -> String {
    text::clip(&text::clean(&goal.goal.name), 24)
}

/// The rate of a goal, and whether it is but a lower bound: the same rule as of the first goal, whose figures are the
/// size's own.
pub(crate) fn rate(goal: &GoalResult) -> Shown {
    match (goal.regularity, goal.lower_fps) {
        (Regularity::Regular, Some(fps)) => Shown::Exactly(fps),
        (Regularity::AtMaximum | Regularity::TesterLimited, Some(fps)) => Shown::AtLeast(fps),
        _ => Shown::Nothing,
    }
}
