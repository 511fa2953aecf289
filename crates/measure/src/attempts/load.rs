//! The attempts at one load.

use units::Fps;

use super::{
    limits::{ELSEWHERE, HEADROOM, SHORT_IN_A_ROW, UNCLEAR},
    ruling::{GivenUp, Ruling},
};
use crate::{
    schema::trial::{Rule, TrialRecord},
    validity::{beyond_tester, fell_short},
};

/// Whether a trial was made in another placement of the cores than `home`. With one core there is nothing to probe, and
/// one place to be.
pub fn is_elsewhere(trial: &TrialRecord, home: Option<u32>) -> bool {
    trial.interference.is_probed() && home.is_some() && trial.interference.placement != home
}

/// The attempts at one load: what was discarded, and why.
#[derive(Debug, Clone, Default)]
pub struct Attempts {
    max_repeats: u32,
    invalid: u32,
    /// Of the invalid ones those that the tester did not offer in full, and those in a row that it could not.
    fell_short: u32,
    short_in_a_row: u32,
    elsewhere: u32,
    most_offered: f64,
}

impl Attempts {
    /// An invalid trial is repeated at most so often.
    pub fn new(max_repeats: u32) -> Self {
        Self { max_repeats, ..Self::default() }
    }

    /// Another load: nothing is known of it.
    pub fn restart(&mut self) {
        *self = Self::new(self.max_repeats);
    }

    /// Whether an earlier trial of the load was discarded.
    pub fn are_several(&self) -> bool {
        self.invalid > 0
    }

    /// What follows from a trial of the load, `home` being the placement that it has to be in.
    pub fn rule(&mut self, trial: &TrialRecord, home: Option<u32>) -> Ruling {
        if !trial.valid() {
            return self.invalid(trial);
        }
        // The device is not silent that was sent nothing.
        if trial.nothing_offered() {
            return self.unclear(trial);
        }
        if !is_elsewhere(trial, home) {
            return Ruling::Counts;
        }
        self.elsewhere += 1;
        match self.elsewhere {
            ELSEWHERE.. => Ruling::GiveUp(GivenUp::Elsewhere),
            _ => Ruling::Repeat,
        }
    }

    /// What follows from a valid trial by slices that passed at less than its load, since the tester offered no more.
    pub fn short(&mut self, offered: Fps) -> Ruling {
        self.invalid += 1;
        self.short_in_a_row += 1;
        self.most_offered = self.most_offered.max(offered.get());
        match self.short_in_a_row >= SHORT_IN_A_ROW {
            true => Ruling::BeyondTester { most_offered: Fps::from_raw(self.most_offered), disturbed: false },
            false => Ruling::Repeat,
        }
    }

    /// What follows from a valid trial by slices in nearly all of which somebody was away, or whose slices say nothing.
    pub fn unclear(&mut self, trial: &TrialRecord) -> Ruling {
        self.invalid += 1;
        let (trials, load) = (self.invalid, trial.spec.load_fps);
        match trials > self.max_repeats || trials >= UNCLEAR {
            true if trial.evidence.is_none() => Ruling::GiveUp(GivenUp::Untold { trials, load }),
            true => Ruling::GiveUp(GivenUp::Unclear { trials, load }),
            false => Ruling::Repeat,
        }
    }

    /// What follows from a trial that says nothing: an invalid one, or one that passed no more than is known, since the tester
    /// offered no more.
    pub fn invalid(&mut self, trial: &TrialRecord) -> Ruling {
        let broke = |rule| trial.violations.iter().any(|v| v.rule == rule);
        self.invalid += 1;
        if fell_short(trial) {
            let offered = trial.directions.iter().map(|d| d.sent + d.refused).max().unwrap_or(0);
            self.fell_short += 1;
            self.most_offered = self.most_offered.max(Fps::from_count(offered, trial.real_duration_s).get());
        }
        self.short_in_a_row = if beyond_tester(trial) { self.short_in_a_row + 1 } else { 0 };
        let enough = SHORT_IN_A_ROW.min(self.max_repeats + 1);
        let limited = self.short_in_a_row >= enough || broke(Rule::TesterLimited);
        // Disturbed or not: a load that the tester never managed to offer is given up.
        let hopeless = self.fell_short > self.max_repeats / 2 && self.fell_short == self.invalid;
        if limited || hopeless {
            Ruling::BeyondTester { most_offered: Fps::from_raw(self.most_offered), disturbed: !limited }
        } else if self.invalid > self.max_repeats {
            let (trials, load, last) = (self.invalid, trial.spec.load_fps, broken(trial));
            Ruling::GiveUp(GivenUp::Invalid { trials, load, last })
        } else {
            Ruling::Repeat
        }
    }
}

/// The first rule that a trial broke, in words.
pub fn broken(trial: &TrialRecord) -> String {
    let short = || "the tester offered less than the load".to_owned();
    trial.violations.first().map_or_else(short, |v| v.text.clone())
}

/// The highest load that the tester is asked for next, where it offered `most_offered` of `load` and that was beyond it:
/// lower by the precision at least, so that a search ends.
pub fn within_tester(load: Fps, most_offered: Fps, precision: f64) -> Fps {
    let most = load.get() * (1.0 - precision);
    let offered = most_offered.get() * HEADROOM;
    Fps::from_raw(if offered > 0.0 { offered.min(most) } else { most }.floor())
}
