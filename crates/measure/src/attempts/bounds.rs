//! Bounds over many trials: so many in a row, so many in all, so long in all.

use super::ruling::GivenUp;
use crate::schema::trial::TrialRecord;

/// Things of one kind in a row, which end something when there are enough of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streak {
    length: u32,
    enough: u32,
}

impl Streak {
    /// So many are enough.
    pub fn new(enough: u32) -> Self {
        Self { length: 0, enough }
    }

    /// Takes the next thing: one of the kind, or one that ends the row. Whether there are enough of them now.
    pub fn see(&mut self, is_one: bool) -> bool {
        self.length = if is_one { self.length.saturating_add(1) } else { 0 };
        self.is_enough()
    }

    /// How many there are in a row.
    pub fn length(&self) -> u32 {
        self.length
    }

    /// Whether there are enough.
    pub fn is_enough(&self) -> bool {
        self.length >= self.enough
    }
}

/// What a search or a test may spend on trials in all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    key: &'static str,
    most_s: f64,
    overhead_s: f64,
    most_trials: Option<u32>,
    spent_s: f64,
    made: u32,
}

impl Budget {
    /// At most so many seconds, which `key` of the plan says. Around each trial `overhead_s` seconds are waited.
    pub fn new(key: &'static str, most_s: f64, overhead_s: f64) -> Self {
        Self { key, most_s, overhead_s, most_trials: None, spent_s: 0.0, made: 0 }
    }

    /// At most so many trials too, invalid ones among them.
    pub fn with_trials(self, most: u32) -> Self {
        Self { most_trials: Some(most), ..self }
    }

    /// Takes a trial off it, whatever it says, with the waits around it.
    pub fn spend(&mut self, trial: &TrialRecord) {
        // Late frames are waited for, and the device rests for as long before the next trial.
        self.spend_s(trial.real_duration_s.max(0.0) + self.overhead_s + 2.0 * trial.spec.drain_s);
        self.made += 1;
    }

    /// Takes so many seconds off it.
    pub fn spend_s(&mut self, seconds: f64) {
        self.spent_s += seconds;
    }

    /// The share of the time that is spent.
    pub fn used_share(&self) -> f64 {
        self.spent_s / self.most_s
    }

    /// Why no further trial is made; `None` while one may be.
    pub fn used_up(&self) -> Option<GivenUp> {
        match self.most_trials {
            Some(most) if self.made >= most => Some(GivenUp::TooManyTrials { most }),
            _ => (self.spent_s >= self.most_s).then_some(GivenUp::TooLong { key: self.key, most_s: self.most_s }),
        }
    }
}
