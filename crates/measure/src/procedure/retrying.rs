//! What every procedure needs around it: invalid trials repeated within a bound, loads beyond the tester recognised,
//! trials of another placement of the cores left out, a device that went silent named, trials and time bounded.

use units::Fps;

use super::{
    setting::Setting,
    steps::{Steps, Want},
};
use crate::{
    attempts::{broken, Attempts, Budget, GivenUp, Ruling, Streak},
    schema::{
        found::Found,
        outcome::TestOutcome,
        trial::{TrialRecord, TrialSpec},
    },
};

/// What a procedure wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// Run this trial and report it.
    Run(TrialSpec),
    /// Run this trial, cause the event `at_s` seconds into it, and report it.
    Event {
        /// The trial.
        spec: TrialSpec,
        /// When to cause the event, seconds from the start of sending.
        at_s: f64,
    },
    /// Nothing more: see [`Procedure::so_far`].
    Done,
}

/// What a procedure found so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// How it ended; [`TestOutcome::Interrupted`] until it has.
    pub outcome: TestOutcome,
    /// Why, when the outcome alone does not say: one line.
    pub reason: Option<String>,
    /// Numbers of the valid trials behind it, in order.
    pub trials: Vec<u32>,
    /// Trials discarded as invalid, or made in another placement of the cores.
    pub invalid_trials: u32,
    /// The figures.
    pub found: Found,
}

/// A test of a standard at one frame size: asked for the next trial, told what it gave. No I/O and no clock.
#[derive(Debug)]
pub struct Procedure {
    steps: Box<dyn Steps>,
    pending: Option<Want>,
    ended: Option<(TestOutcome, Option<String>)>,
    /// Placement of the cores that trials have to be in; settled by the first.
    home: Option<u32>,
    budget: Budget,
    /// At the pending trial.
    attempts: Attempts,
    /// Valid trials in a row without a received frame.
    silent: Streak,
    trials: Vec<u32>,
    invalid: u32,
}

impl Procedure {
    pub(super) fn new(setting: &Setting, steps: Box<dyn Steps>) -> Self {
        Self {
            silent: Streak::new(steps.patience()),
            steps,
            pending: None,
            ended: None,
            home: setting.placement,
            attempts: Attempts::new(setting.max_repeats),
            budget: Budget::new("test_timeout", setting.timeout_s, setting.overhead_s),
            trials: Vec::new(),
            invalid: 0,
        }
    }

    /// The trial wanted now: the same again until it is reported.
    pub fn wanted(&mut self) -> Ask {
        if self.ended.is_some() {
            return Ask::Done;
        }
        let want = match self.pending.take() {
            Some(want) => want,
            None => {
                self.attempts.restart();
                self.steps.next()
            }
        };
        if let Some(why) = self.budget.used_up().filter(|_| !matches!(want, Want::End(..))) {
            self.end(TestOutcome::Inconclusive, why);
            return Ask::Done;
        }
        let ask = match &want {
            Want::Trial(spec) => Ask::Run(*spec),
            Want::Event(spec, at_s) => Ask::Event { spec: *spec, at_s: *at_s },
            Want::End(outcome, reason) => {
                self.ended = Some((self.told(*outcome), reason.clone()));
                return Ask::Done;
            }
        };
        self.pending = Some(want);
        ask
    }

    /// Tells what a trial gave. A record of another trial than the one wanted is ignored.
    pub fn report(&mut self, trial: &TrialRecord) {
        let spec = match &self.pending {
            Some(Want::Trial(spec) | Want::Event(spec, _)) if *spec == trial.spec => *spec,
            _ => return,
        };
        self.budget.spend(trial);
        match self.attempts.rule(trial, self.home) {
            Ruling::Counts => {}
            other => return self.discard(&spec, trial, other),
        }
        self.home = self.home.or(trial.interference.placement);
        self.pending = None;
        self.trials.push(trial.number);
        self.steps.verdict(trial);
        if self.silent.see(trial.received() == 0) {
            self.end(TestOutcome::NoTraffic, GivenUp::Silent { trials: self.silent.length() });
        }
    }

    /// The event of a trial was not caused as the plan says: why. Its figures are none of a reset, and the test ends.
    pub fn event_failed(&mut self, trial: u32, why: &str) {
        self.end(
            TestOutcome::Inconclusive,
            format!("reset.command failed in trial {trial}, {why}: whether anything was reset is not known"),
        );
    }

    /// What follows from a trial that does not count.
    fn discard(&mut self, spec: &TrialSpec, trial: &TrialRecord, ruling: Ruling) {
        self.invalid += 1;
        match ruling {
            Ruling::Counts | Ruling::Repeat => {}
            Ruling::BeyondTester { most_offered, .. } => {
                let most = Fps::from_raw(most_offered.get().min(spec.load_fps.get() * 0.999));
                self.pending = None;
                if !self.steps.beyond(most) {
                    let (load, duration_s, last) = (spec.load_fps, spec.duration_s, broken(trial));
                    self.end(TestOutcome::TesterLimited, GivenUp::NotOffered { load, duration_s, last });
                }
            }
            Ruling::GiveUp(why @ GivenUp::Invalid { .. }) => {
                self.pending = None;
                if !self.steps.without(&why.to_string()) {
                    self.end(TestOutcome::Inconclusive, why);
                }
            }
            Ruling::GiveUp(why) => self.end(TestOutcome::Inconclusive, why),
        }
    }

    fn end(&mut self, outcome: TestOutcome, why: impl ToString) {
        self.pending = None;
        self.ended = Some((self.told(outcome), Some(why.to_string())));
    }

    /// The outcome to report. If the tester offered no load in full, its limit does not describe the device.
    fn told(&self, outcome: TestOutcome) -> TestOutcome {
        match outcome {
            TestOutcome::TesterLimited if self.trials.is_empty() => TestOutcome::Inconclusive,
            other => other,
        }
    }

    /// What was found, and how it ended.
    pub fn so_far(&self) -> Findings {
        let (outcome, reason) = self.ended.clone().unwrap_or((TestOutcome::Interrupted, None));
        Findings {
            outcome,
            reason,
            trials: self.trials.clone(),
            invalid_trials: self.invalid,
            found: self.steps.found(),
        }
    }

    /// Valid trials still to come, about: for progress.
    pub fn trials_left(&self) -> u32 {
        self.steps.expected().saturating_sub(self.trials.len() as u32)
    }
}
