//! What every procedure needs around it: invalid trials repeated within a bound, loads beyond the tester recognised,
//! trials of another placement of the cores left out, a device that went silent named, trials and time bounded.

use units::Fps;

use super::{
    setting::Setting,
    steps::{Steps, Want},
};
use crate::{
    schema::{found::Found, outcome::TestOutcome},
    trial::{Rule, TrialRecord, TrialSpec},
    validity::beyond_tester,
};

/// So many trials in a row that the tester could not offer put a load beyond it.
const SHORT_REPEATS: u32 = 3;
/// So many trials in a row made in another placement of the cores end a test: the host does not move them back.
const ELSEWHERE: u32 = 20;

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
    /// Trials thrown away as invalid, or made in another placement of the cores.
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
    max_repeats: u32,
    timeout_s: f64,
    overhead_s: f64,
    spent_s: f64,
    /// Of the pending trial: invalid ones, those not offered in full, those in a row that could not be, those elsewhere.
    void: u32,
    fell_short: u32,
    short: u32,
    elsewhere: u32,
    most_offered: f64,
    silent: u32,
    trials: Vec<u32>,
    invalid: u32,
}

impl Procedure {
    pub(super) fn new(setting: &Setting, steps: Box<dyn Steps>) -> Self {
        Self {
            steps,
            pending: None,
            ended: None,
            home: setting.placement,
            max_repeats: setting.max_repeats,
            timeout_s: setting.timeout_s,
            overhead_s: setting.overhead_s,
            spent_s: 0.0,
            void: 0,
            fell_short: 0,
            short: 0,
            elsewhere: 0,
            most_offered: 0.0,
            silent: 0,
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
                (self.void, self.fell_short, self.short, self.elsewhere, self.most_offered) = (0, 0, 0, 0, 0.0);
                self.steps.next()
            }
        };
        if !matches!(want, Want::End(..)) && self.spent_s >= self.timeout_s {
            self.end(TestOutcome::Inconclusive, format!("did not end within test_timeout = {} s", self.timeout_s));
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
        self.spent_s += trial.real_duration_s.max(0.0) + self.overhead_s + spec.drain_s;
        if !trial.valid() {
            return self.report_void(&spec, trial);
        }
        let seen = &trial.interference;
        let probed = seen.core_to_core_before_ns.is_some() || seen.core_to_core_after_ns.is_some();
        if probed && self.home.is_some() && seen.placement != self.home {
            self.invalid += 1;
            self.elsewhere += 1;
            if self.elsewhere >= ELSEWHERE {
                self.end(
                    TestOutcome::Inconclusive,
                    format!("{ELSEWHERE} trials in a row were made in another placement of the cores than the first"),
                );
            }
            return;
        }
        self.home = self.home.or(seen.placement);
        self.pending = None;
        self.trials.push(trial.number);
        let received: u64 = trial.directions.iter().map(|d| d.received).sum();
        self.silent = if received == 0 { self.silent + 1 } else { 0 };
        self.steps.verdict(trial);
        if self.silent >= self.steps.patience() {
            self.end(
                TestOutcome::NoTraffic,
                match self.silent {
                    1 => "nothing came back in the trial".to_owned(),
                    n => format!("nothing came back in {n} trials in a row"),
                },
            );
        }
    }

    /// The event of a trial was not caused as the plan says: why. Its figures are none of a reset, and the test ends.
    pub fn event_failed(&mut self, trial: u32, why: &str) {
        self.end(
            TestOutcome::Inconclusive,
            format!("reset.command failed in trial {trial}, {why}: whether anything was reset is not known"),
        );
    }

    fn report_void(&mut self, spec: &TrialSpec, trial: &TrialRecord) {
        self.invalid += 1;
        self.void += 1;
        if trial.violations.iter().any(|v| v.rule == Rule::TesterShort) {
            let offered = trial.directions.iter().map(|d| d.sent + d.refused).max().unwrap_or(0);
            self.fell_short += 1;
            self.most_offered = self.most_offered.max(Fps::from_count(offered, trial.real_duration_s).get());
        }
        self.short = if beyond_tester(trial) { self.short + 1 } else { 0 };
        let hopeless = self.fell_short > self.max_repeats / 2 && self.fell_short == self.void;
        let limited = trial.violations.iter().any(|v| v.rule == Rule::TesterLimited);
        if self.short >= SHORT_REPEATS.min(self.max_repeats + 1) || hopeless || limited {
            let most = Fps::from_raw(self.most_offered.min(spec.load_fps.get() * 0.999));
            self.pending = None;
            if !self.steps.beyond(most) {
                let last = trial.violations.first().map_or("", |v| v.text.as_str());
                let reason = format!("{} for {} s was not offered: {last}", spec.load_fps, spec.duration_s);
                self.end(TestOutcome::TesterLimited, reason);
            }
        } else if self.void > self.max_repeats {
            let last = trial.violations.first().map_or("", |v| v.text.as_str());
            let reason = format!("all {} trials at {} were invalid, the last: {last}", self.void, spec.load_fps);
            self.pending = None;
            if !self.steps.without(&reason) {
                self.end(TestOutcome::Inconclusive, reason);
            }
        }
    }

    fn end(&mut self, outcome: TestOutcome, reason: String) {
        self.pending = None;
        self.ended = Some((self.told(outcome), Some(reason)));
    }

    /// A tester that offered nothing in full says nothing of the device.
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
