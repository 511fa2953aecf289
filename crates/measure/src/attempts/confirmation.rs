//! A throughput confirmed by a longer trial, and lowered where that does not pass.

use units::Fps;

use super::{
    limits::{
        ELSEWHERE, SHORT_CONFIRMATIONS, SHORT_OF_LOAD, SILENT_CHECKS, STEPS_DOWN, TESTER_STEP, UNCLEAR_CONFIRMATIONS,
    },
    load::is_elsewhere,
    ruling::{GivenUp, Ruling},
};
use crate::{schema::trial::TrialRecord, validity::beyond_tester};

/// The attempts to confirm a throughput by a longer trial, in the placement it was found in.
#[derive(Debug, Clone)]
pub struct Confirmation {
    home: Option<u32>,
    /// The throughput is the tester's limit.
    tester_limited: bool,
    most: u32,
    made: u32,
    short: u32,
    silent: u32,
    unclear: u32,
}

impl Confirmation {
    /// Of a throughput found in this placement, with as many trials as an invalid one is repeated, or those of a placement
    /// that does not come back where these are more.
    pub fn new(max_repeats: u32, home: Option<u32>, tester_limited: bool) -> Self {
        Self { home, tester_limited, most: max_repeats.max(ELSEWHERE), made: 0, short: 0, silent: 0, unclear: 0 }
    }

    /// Number of the next trial at this load, from 1.
    pub fn attempt(&self) -> u32 {
        self.made + 1
    }

    /// Whether to try again after a trial that counts and does not say whether its load passes.
    pub fn again(&mut self) -> bool {
        self.unclear += 1;
        self.unclear < UNCLEAR_CONFIRMATIONS && self.made < self.most
    }

    /// What follows from a trial.
    pub fn rule(&mut self, trial: &TrialRecord) -> Ruling {
        self.made += 1;
        let duration_s = trial.spec.duration_s;
        if trial.valid() && !is_elsewhere(trial, self.home) {
            if trial.received() > 0 {
                return Ruling::Counts;
            }
            self.silent += 1;
            if self.silent >= SILENT_CHECKS {
                let (trials, last) = (self.silent, trial.number);
                return Ruling::GiveUp(GivenUp::GoneAfterSearch { trials, duration_s, last });
            }
        }
        self.short += u32::from(beyond_tester(trial));
        if self.tester_limited && self.short >= SHORT_CONFIRMATIONS {
            return Ruling::BeyondTester { most_offered: Fps::ZERO, disturbed: false };
        }
        match self.made >= self.most {
            true => Ruling::GiveUp(GivenUp::Unconfirmed { trials: self.made, duration_s }),
            false => Ruling::Repeat,
        }
    }
}

/// What a trial that counts says of the load that it is to confirm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Said {
    /// This share of the frames was lost.
    Lost(f64),
    /// By slices it was offered less than the load.
    Short,
    /// By slices somebody was away in nearly all of it: whatever was lost, the load may pass.
    Nothing,
}

impl Said {
    /// Of a trial, by its slices or as a whole.
    pub fn of(trial: &TrialRecord, by_slices: bool) -> Self {
        if !by_slices {
            return Self::Lost(trial.loss_ratio());
        }
        let clean = trial.evidence.as_ref().filter(|e| e.offered > 0 && e.is_clean(trial.spec.duration_s));
        match clean {
            None => Self::Nothing,
            Some(e) if e.lost == 0 && e.offered_fps.get() < trial.spec.load_fps.get() * (1.0 - SHORT_OF_LOAD) => {
                Self::Short
            }
            Some(e) => Self::Lost(e.lost as f64 / e.offered as f64),
        }
    }
}

/// A load that is lowered step by step until a trial passes at it.
#[derive(Debug, Clone, Copy)]
pub struct Lowering {
    load: f64,
    steps: u32,
}

impl Lowering {
    /// From this load on.
    pub fn new(found: Fps) -> Self {
        Self { load: found.get(), steps: 0 }
    }

    /// The load to try; `None` when it was lowered as often as it may be.
    pub fn load(&self) -> Option<Fps> {
        (self.steps <= STEPS_DOWN).then_some(Fps::from_raw(self.load))
    }

    /// Whether it was lowered at all.
    pub fn is_lowered(&self) -> bool {
        self.steps > 0
    }

    /// Lowers it by the precision of the search: the trial lost frames.
    pub fn after_loss(&mut self, precision: f64) {
        self.step(1.0 - precision);
    }

    /// Lowers it since the tester did not offer it for so long: it may for a moment.
    pub fn after_shortfall(&mut self) {
        self.step(TESTER_STEP);
    }

    fn step(&mut self, share: f64) {
        self.load *= share;
        self.steps += 1;
    }
}
