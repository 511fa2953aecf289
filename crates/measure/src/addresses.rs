//! Address caching capacity and address learning rate of a bridge (RFC 2889 §5.7, §5.8): rounds between three ports, asked
//! for one by one. No I/O and no clock.
//!
//! In a round the learning port sends a frame from each of N addresses, the test port one to each of them, and a
//! monitoring port listens. The bridge holds all N when every frame of the second kind came to the learning port and none to
//! the monitoring port.

use units::Fps;

pub use crate::schema::found::addresses::{Addresses, Round, RoundCounts, RoundRecord, RoundVerdict};
use crate::{
    attempts::{Streak, ROUNDS},
    bisection::{is_narrow, middle, Bracket},
};

impl RoundRecord {
    /// Judges a round. `disturbed` says what disturbed the tester, if something did: a loss is then no evidence.
    pub fn judge(round: Round, counts: RoundCounts, disturbed: Option<String>) -> Self {
        let (sent, asked) = (counts.learned.min(counts.tested), round.addresses);
        let held = counts.flooded == 0 && counts.forwarded >= counts.tested;
        let (verdict, why) = if sent < asked {
            (RoundVerdict::Invalid, Some(format!("{sent} of {asked} frames left the tester: choose a lower rate")))
        } else if held {
            (RoundVerdict::Held, None)
        } else if let Some(why) = disturbed {
            // What was late came faster than asked for behind it.
            (RoundVerdict::Invalid, Some(why))
        } else {
            (RoundVerdict::Overflowed, None)
        };
        Self { round, counts, verdict, why }
    }
}

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// The most addresses held, up to `most`; the first round offers `initial` (§5.7).
    Capacity {
        /// Most addresses tried.
        most: u64,
        /// Addresses of the first round.
        initial: u64,
        /// Rate at which they are offered.
        learning_fps: Fps,
    },
    /// The highest rate at which so many addresses are learned (§5.8).
    Rate {
        /// Addresses offered in every round.
        addresses: u64,
        /// Highest rate tried.
        most_fps: Fps,
        /// Rate of the first round.
        initial_fps: Fps,
        /// Relative width at which the search ends.
        precision: f64,
    },
}

/// How the search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Both bounds stand.
    Found,
    /// Even the most that was to be tried was held.
    AtMaximum,
    /// Not even the least was held.
    BelowMinimum,
    /// Too many rounds could not be trusted.
    Inconclusive,
}

/// The least rate of a learning-rate search: RFC 2889 §5.7.2 calls for as low as 50 frames/s "or even less".
const LEAST_FPS: f64 = 1.0;

/// The binary search of RFC 2889 §5.7.3, over addresses or over rates.
///
/// The standard's loop takes its maximum for a failure without trying it; here it is tried, once the first round was held.
#[derive(Debug, Clone)]
pub struct AddressSearch {
    goal: Goal,
    /// Of addresses, or of frames/s.
    bounds: Bracket,
    at: f64,
    /// Rounds in a row that could not be trusted, and rounds in all.
    invalid: Streak,
    rounds: Streak,
    end: Option<End>,
    found: Addresses,
}

impl AddressSearch {
    /// A search that repeats an invalid round at most so often. `None` where the goal allows no round at all.
    pub fn new(goal: Goal, max_repeats: u32) -> Option<Self> {
        let (least, most, initial) = match goal {
            Goal::Capacity { most, initial, .. } => (1.0, most as f64, initial as f64),
            Goal::Rate { most_fps, initial_fps, addresses, precision } => {
                if addresses == 0 || precision.is_nan() || precision <= 0.0 {
                    return None;
                }
                (LEAST_FPS, most_fps.get(), initial_fps.get())
            }
        };
        if !(most >= least && most.is_finite()) {
            return None;
        }
        let at = initial.clamp(least, most);
        let found = Addresses::default();
        let (invalid, rounds) = (Streak::new(max_repeats.saturating_add(1)), Streak::new(ROUNDS));
        Some(Self { goal, bounds: Bracket::default(), at, invalid, rounds, end: None, found })
    }

    /// The round wanted now; `None` when the search has ended.
    pub fn wanted(&mut self) -> Option<Round> {
        if self.end.is_some() {
            return None;
        }
        Some(match self.goal {
            Goal::Capacity { learning_fps, .. } => Round { addresses: self.at as u64, learning_fps },
            Goal::Rate { addresses, .. } => Round { addresses, learning_fps: Fps::from_raw(self.at) },
        })
    }

    /// Tells what the round gave.
    pub fn report(&mut self, record: RoundRecord) {
        let verdict = record.verdict;
        self.found.rounds.push(record);
        match verdict {
            RoundVerdict::Invalid => {}
            RoundVerdict::Held => self.bounds.report(self.at, true),
            RoundVerdict::Overflowed => self.bounds.report(self.at, false),
        }
        let untrusted = self.invalid.see(verdict == RoundVerdict::Invalid);
        if verdict != RoundVerdict::Invalid {
            self.settle();
        }
        let over = self.rounds.see(true);
        if self.end.is_none() && (untrusted || over) {
            self.end = Some(End::Inconclusive);
        }
    }

    /// Where the next round is, or how it ends.
    fn settle(&mut self) {
        let (low, high) = (self.bounds.passed().unwrap_or(0.0), self.bounds.failed());
        let (most, close) = match self.goal {
            Goal::Capacity { most, .. } => (most as f64, high.is_some_and(|high| high - low < 2.0)),
            Goal::Rate { most_fps, precision, .. } => {
                let close = high.is_some_and(|high| is_narrow(low, high, precision) || high <= LEAST_FPS);
                (most_fps.get(), close)
            }
        };
        self.end = match high {
            None if low >= most => Some(End::AtMaximum),
            Some(_) if close && low == 0.0 => Some(End::BelowMinimum),
            Some(_) if close => Some(End::Found),
            _ => None,
        };
        let whole = matches!(self.goal, Goal::Capacity { .. });
        self.at = match high {
            // With all of them held there is nothing to search.
            None if whole => most,
            None => {
                if most / low <= 2.0 {
                    most
                } else {
                    low * 2.0
                }
            }
            Some(high) if whole => middle(low, high).floor(),
            Some(high) => middle(low, high).max(LEAST_FPS),
        };
    }

    /// How it ended; `None` while it has not.
    pub fn ended(&self) -> Option<End> {
        self.end
    }

    /// What stands so far.
    pub fn found(&self) -> Addresses {
        let (low, high) = (self.bounds.passed(), self.bounds.failed());
        let mut found = self.found.clone();
        match self.goal {
            Goal::Capacity { learning_fps, .. } => {
                found.addresses = low.map(|n| n as u64);
                found.overflow_addresses = high.map(|n| n as u64);
                found.learning_fps = Some(learning_fps);
            }
            Goal::Rate { addresses, .. } => {
                found.addresses = Some(addresses);
                found.learning_fps = low.map(Fps::from_raw);
                found.overflow_fps = high.map(Fps::from_raw);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
