//! One policy of repeats: when a trial is made again, and when a load, a placement of the cores, the tester or the device
//! is given up.
//!
//! Searches, the tests besides the throughput, the confirmation of a throughput and the scores of a flow logger go by it. A
//! trial that breaks a validity rule is *invalid*: it is discarded and repeated. The sentences about giving up stand here.
//! The search by slices and the rounds of the address tests count their own invalid trials.

use std::fmt;

use units::Fps;

use crate::{
    schema::trial::{Rule, TrialRecord},
    validity::beyond_tester,
};

/// After so many trials in a row that the tester could not offer, though its polling gaps do not explain it, the load is
/// beyond the tester.
pub const SHORT_IN_A_ROW: u32 = 3;
/// The same for the confirmation of a throughput that only the tester limits: so many in all.
pub const SHORT_CONFIRMATIONS: u32 = 6;
/// After so many loads in a row without one valid trial the tester is given up: a machine that takes its cores away in
/// every trial offers no load in full, however low.
pub const LOADS_IN_A_ROW: u32 = 3;
/// After so many trials in another placement of the cores than the first a test ends: the host does not move them back.
pub const ELSEWHERE: u32 = 20;
/// After so many valid trials in a row without a received frame a test ends: the device is gone.
pub const SILENT_TRIALS: u32 = 3;
/// The same for a test whose loads may each be too high for the device.
pub const SILENT_LOADS: u32 = 20;
/// After so many checks at a low load without a received frame a device that forwarded before is gone.
pub const SILENT_CHECKS: u32 = 5;
/// A score of a flow logger that says nothing is made again, so many times in all.
pub const SCORES: u32 = 3;

/// Share of the most that the tester offered at which it is asked next: a core without a few percent to spare cannot make
/// up for a timer's tick.
pub const HEADROOM: f64 = 0.93;
/// A throughput whose confirmation loses frames is lowered at most so often, each time by the precision.
pub const STEPS_DOWN: u32 = 8;
/// A throughput that only the tester limits is lowered to this share when its confirmations fall short.
pub const TESTER_STEP: f64 = 0.9;

/// What follows from a trial.
#[derive(Debug, Clone, PartialEq)]
pub enum Ruling {
    /// It counts.
    Counts,
    /// It is discarded and made again.
    Repeat,
    /// The tester cannot offer the load.
    BeyondTester {
        /// The most it offered in a trial of this load; zero when that was not counted.
        most_offered: Fps,
        /// Only its own polling gaps say so: another time it may offer the load.
        disturbed: bool,
    },
    /// No more trials of this load are made.
    GiveUp(GivenUp),
}

/// Why something was given up.
#[derive(Debug, Clone, PartialEq)]
pub enum GivenUp {
    /// Every trial at a load was invalid.
    Invalid {
        /// Trials made.
        trials: u32,
        /// Their load.
        load: Fps,
        /// The first rule that the last of them broke, in words.
        last: String,
    },
    /// Somebody was away in nearly all of every trial at a load.
    Unclear {
        /// Trials made.
        trials: u32,
        /// Their load.
        load: Fps,
    },
    /// The tester was interrupted at every load.
    Disturbed,
    /// The tester fell short of a load that a test needs.
    NotOffered {
        /// The load.
        load: Fps,
        /// For how long it was asked for, seconds.
        duration_s: f64,
        /// The first rule that the last trial broke, in words.
        last: String,
    },
    /// The cores stayed in another placement than the first.
    Elsewhere,
    /// The cores were moved during every trial.
    Unplaced {
        /// Trials in a row.
        trials: u32,
        /// The first rule that the last of them broke, in words.
        last: String,
    },
    /// A confirmation had no valid trial in the placement of the throughput.
    Unconfirmed {
        /// Trials made.
        trials: u32,
        /// Seconds of each.
        duration_s: f64,
    },
    /// Too many trials in all.
    TooManyTrials {
        /// `search.max_trials`.
        most: u32,
    },
    /// Too much time in all.
    TooLong {
        /// The key that says how long: `search.timeout`, `test_timeout`.
        key: &'static str,
        /// Its value, seconds.
        most_s: f64,
    },
    /// No frame was received at the first load, nor at a low one.
    NoTraffic {
        /// The low load.
        low: Fps,
    },
    /// Trials in a row without a received frame.
    Silent {
        /// So many.
        trials: u32,
    },
    /// A device that forwarded before forwards no more.
    Gone {
        /// The first trial without a received frame.
        first: u32,
        /// The last one.
        last: u32,
    },
    /// A device that forwarded in the search forwards no more in its confirmation.
    GoneAfterSearch {
        /// Trials without a received frame.
        trials: u32,
        /// Seconds of each.
        duration_s: f64,
        /// Number of the last.
        last: u32,
    },
    /// Scores of a flow logger at one rate that say nothing.
    Unscored {
        /// What the last of them says.
        last: String,
    },
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { trials, load, last } => {
                write!(f, "all {trials} trials at {load} were invalid, the last: {last}")
            }
            Self::Unclear { trials, load } => write!(
                f,
                "{trials} trials at {load} had too little time in which nobody was away: keep other work off the cores"
            ),
            Self::Disturbed => write!(
                f,
                "the tester could not sustain {LOADS_IN_A_ROW} loads: it was interrupted each time; use shorter trials or \
                 isolate its core (isolcpus)"
            ),
            Self::NotOffered { load, duration_s, last } => {
                write!(f, "the tester could not offer {load} for {duration_s} s: {last}")
            }
            Self::Elsewhere => write!(
                f,
                "the host moved the cores: {ELSEWHERE} consecutive trials were made in another placement than the first"
            ),
            Self::Unplaced { trials, last } => {
                write!(f, "the host moved the cores during {trials} consecutive trials: {last}")
            }
            Self::Unconfirmed { trials, duration_s } => write!(
                f,
                "no latency: {trials} trials of {duration_s} s at the throughput were all invalid or in another placement \
                 of the cores"
            ),
            Self::TooManyTrials { most } => write!(f, "the search did not end within search.max_trials = {most}"),
            Self::TooLong { key, most_s } => write!(f, "it did not end within {key} = {most_s} s"),
            Self::NoTraffic { low } => write!(f, "nothing came back at the first load, nor at {low}"),
            Self::Silent { trials: 1 } => write!(f, "nothing came back in the trial"),
            Self::Silent { trials } => write!(f, "nothing came back in {trials} consecutive trials"),
            Self::Gone { first, last } => write!(
                f,
                "the device fell silent: nothing came back in trials {first} to {last}, although the last {SILENT_CHECKS} \
                 of them were at low loads and at a load that it forwarded before; check that it still runs"
            ),
            Self::GoneAfterSearch { trials, duration_s, last } => write!(
                f,
                "the device fell silent after the search: nothing came back in {trials} trials of {duration_s} s, the last \
                 is trial {last}; check that it still runs"
            ),
            Self::Unscored { last } => write!(f, "no valid score in {SCORES} trials at one rate: {last}"),
        }
    }
}

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

    /// What follows from a trial of the load, `home` being the placement that it has to be in.
    pub fn rule(&mut self, trial: &TrialRecord, home: Option<u32>) -> Ruling {
        if !trial.valid() {
            return self.invalid(trial);
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

    /// What follows from a valid trial by slices in nearly all of which somebody was away.
    pub fn unclear(&mut self, trial: &TrialRecord) -> Ruling {
        self.invalid += 1;
        match self.invalid > self.max_repeats {
            true => Ruling::GiveUp(GivenUp::Unclear { trials: self.invalid, load: trial.spec.load_fps }),
            false => Ruling::Repeat,
        }
    }

    fn invalid(&mut self, trial: &TrialRecord) -> Ruling {
        let broke = |rule| trial.violations.iter().any(|v| v.rule == rule);
        self.invalid += 1;
        if broke(Rule::TesterShort) {
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
    trial.violations.first().map(|v| v.text.clone()).unwrap_or_default()
}

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
}

impl Confirmation {
    /// Of a throughput found in this placement, with as many trials as an invalid one is repeated, or those of a placement
    /// that does not come back where these are more.
    pub fn new(max_repeats: u32, home: Option<u32>, tester_limited: bool) -> Self {
        Self { home, tester_limited, most: max_repeats.max(ELSEWHERE), made: 0, short: 0, silent: 0 }
    }

    /// Number of the next trial at this load, from 1.
    pub fn attempt(&self) -> u32 {
        self.made + 1
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

#[cfg(test)]
mod tests;
