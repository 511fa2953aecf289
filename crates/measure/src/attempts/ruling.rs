//! What follows from a trial, and the sentences about giving up.

use std::fmt;

use units::Fps;

use super::limits::{ELSEWHERE, LOADS_IN_A_ROW, SCORES, SILENT_CHECKS};

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
    /// The slices of every trial at a load say nothing: the device sends in batches that are too long, or the clocks stepped apart.
    Untold {
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
            Self::Untold { trials, load } => write!(
                f,
                "the slices of {trials} trials at {load} say nothing: the device sends in batches of more than some milliseconds, or \
                 the clock stepped; --evidence whole-trial goes by whole trials"
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
            Self::TooLong { key, most_s } => write!(f, "the time was up: {key} = {most_s} s"),
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
