//! MLRsearch (RFC 9971): one search for the bounds of several goals.
//!
//! | in | is |
//! |---|---|
//! | `goal` | the Search Goals and what makes them sound |
//! | `classify` | Load Classification and Conditional Throughput, as pure functions |
//! | `table` | the trials seen, by load, and the Relevant Bounds they make |
//! | `result` | the Goal Results |
//! | `ladder`, `belief`, `strategy` | which trial to make next: the part that RFC 9971 leaves to the implementation |
//!
//! The first four modules follow the specification to the letter. Only classification makes a load a bound; the strategy
//! cannot. Trial Effective Duration is the Trial Duration. The validity rules judge a trial with too low an offered load
//! before it comes here: frames that the link refused are loss; frames that the tester did not send make the trial
//! invalid.

mod belief;
pub mod classify;
mod hints;
mod ladder;
mod result;
mod strategy;
mod table;

pub use strategy::Mlr;

use super::{config::SearchConfig, retrying::Retrying};
pub use crate::{
    plan::GoalSet,
    schema::goal::{GoalResult, Regularity, SearchGoal},
};

/// A search for all goals of a set at once (RFC 9971).
///
/// The configuration gives frame size, lowest and highest load (Min Load, Max Load), and the bounds on trials, time and
/// repeats. Each goal has its own duration, tolerated loss and precision. The answer holds a [`GoalResult`] for each goal
/// in the order given; the other fields of the answer describe the first goal.
pub type MlrSearch = Retrying<Mlr>;

impl MlrSearch {
    /// A new search. With `warmup_s` above zero, the first trial lasts `warmup_s` seconds at the highest load, and the
    /// search ignores its result.
    pub fn new(config: SearchConfig, goals: GoalSet, warmup_s: f64) -> Self {
        let of = |value: fn(&SearchGoal) -> f64| goals.goals().iter().map(value).fold(f64::INFINITY, f64::min);
        let duration_s = of(SearchGoal::initial_s);
        let precision = units::Ratio::new(of(|g| g.width.get())).unwrap_or(config.precision);
        let config = SearchConfig { duration_s, precision, ..config };
        let strategy =
            Mlr::new(goals, config.floor().get(), (config.upper.get(), config.upper_is_tester), warmup_s.max(0.0));
        Self::with(config, strategy)
    }
}

#[cfg(test)]
mod tests;
