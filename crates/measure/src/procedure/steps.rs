//! The steps of a test: what it wants next, and what it makes of a valid trial.

use units::Fps;

use crate::{
    attempts::SILENT_TRIALS,
    schema::{
        found::Found,
        outcome::TestOutcome,
        trial::{TrialRecord, TrialSpec},
    },
};

/// What the steps of a procedure want next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Want {
    Trial(TrialSpec),
    /// A trial in which an event is to be caused so many seconds after the first frame.
    Event(TrialSpec, f64),
    End(TestOutcome, Option<String>),
}

impl Want {
    /// The end, with something to say.
    pub(super) fn end(outcome: TestOutcome, reason: impl Into<String>) -> Self {
        Self::End(outcome, Some(reason.into()))
    }
}

/// The part of a procedure that only sees valid trials of what it asked for.
pub(super) trait Steps: std::fmt::Debug + Send {
    fn next(&mut self) -> Want;
    fn verdict(&mut self, trial: &TrialRecord);
    /// The tester cannot offer what was asked for, at most `most`. Whether the procedure goes on without.
    fn beyond(&mut self, _most: Fps) -> bool {
        false
    }
    /// No trial of what was asked for was valid: why. Whether the procedure goes on without.
    fn without(&mut self, _why: &str) -> bool {
        false
    }
    /// Valid trials in a row without a received frame that end it.
    fn patience(&self) -> u32 {
        SILENT_TRIALS
    }
    fn found(&self) -> Found;
    /// Valid trials that it takes in all, about.
    fn expected(&self) -> u32;
}
