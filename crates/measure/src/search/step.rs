//! What every search is: asked for the next trial, told what it gave, with an answer at the end.

use units::Fps;

use super::reason::{self, Reason};
use crate::schema::{
    answer::IntervalAnswer,
    goal::GoalResult,
    outcome::Outcome,
    trial::{TrialRecord, TrialSpec},
};

/// A search for the highest load that meets a goal.
pub trait Search {
    /// The trial wanted now. The same again until it is reported.
    fn next(&mut self) -> Step;
    /// Tells what a trial gave. A record of another trial than the one wanted is ignored.
    fn report(&mut self, trial: &TrialRecord);
    /// The bounds as they stand, with [`Outcome::Interrupted`] until it is done:
    /// for progress, and for what is kept when a run is stopped.
    fn so_far(&self) -> Answer;
}

impl<S: Search + ?Sized> Search for Box<S> {
    fn next(&mut self) -> Step {
        (**self).next()
    }
    fn report(&mut self, trial: &TrialRecord) {
        (**self).report(trial);
    }
    fn so_far(&self) -> Answer {
        (**self).so_far()
    }
}

/// What a search wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Run this trial and report it.
    Run(TrialSpec),
    /// Nothing more.
    Done(Answer),
}

/// What a search found. Loads are intended loads per direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// How it ended.
    pub outcome: Outcome,
    /// Highest load that met the goal in a valid trial.
    pub throughput: Option<Fps>,
    /// Lowest load above it that did not, in a valid trial.
    pub upper_bound: Option<Fps>,
    /// Number of the trial that passed at `throughput`.
    pub best_trial: Option<u32>,
    /// Numbers of the valid trials behind the answer, in order.
    pub trials: Vec<u32>,
    /// Trials discarded.
    pub invalid_trials: u32,
    /// Lossy loads tried again, and how often (TST009 loss verification).
    pub retries: Vec<(Fps, u32)>,
    /// Placement class the answer holds for; `None` when no placed trial was seen.
    pub placement: Option<u32>,
    /// Why it ended as it did, when the outcome alone does not say.
    pub reasons: Vec<Reason>,
    /// What was found for each goal of an MLRsearch, in the order given; empty for other searches.
    pub goals: Vec<GoalResult>,
    /// The answer with its uncertainty, of a search by slices.
    pub interval: Option<IntervalAnswer>,
}

impl Answer {
    /// What is left of it after longer trials: the load that passed one, if any did. `asked`: the precision of the search.
    pub fn lower(&mut self, passed: Option<Fps>, asked: f64) {
        self.throughput = passed;
        self.interval = self.interval.map(|found| found.lowered(passed, self.upper_bound, asked));
    }

    /// The reasons in one line; `None` when there are none.
    pub fn reason(&self) -> Option<String> {
        reason::line(&self.reasons)
    }
}

/// Whether a record is of the trial asked for: why it was run does not change what it shows.
pub(super) fn same_trial(asked: &TrialSpec, run: &TrialSpec) -> bool {
    (asked.frame_size_bytes, asked.load_fps, asked.duration_s) == (run.frame_size_bytes, run.load_fps, run.duration_s)
}
