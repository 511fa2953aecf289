//! The attempts to score a flow logger at one rate.

use units::Fps;

use super::{
    limits::SCORES,
    ruling::{GivenUp, Ruling},
};

/// How often it was tried.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScoreAttempts {
    made: u32,
}

impl ScoreAttempts {
    /// Number of the next trial at this rate, from 1.
    pub fn attempt(&self) -> u32 {
        self.made + 1
    }

    /// What follows from a trial. `unsure`: why its score says nothing about the logger, if so. `beyond_tester`: the tester
    /// did not offer the rate, so that the logger never saw it.
    pub fn rule(&mut self, unsure: Option<&str>, beyond_tester: bool) -> Ruling {
        self.made += 1;
        match unsure {
            None => Ruling::Counts,
            Some(_) if self.made < SCORES => Ruling::Repeat,
            Some(_) if beyond_tester => Ruling::BeyondTester { most_offered: Fps::ZERO, disturbed: false },
            Some(last) => Ruling::GiveUp(GivenUp::Unscored { last: last.to_owned() }),
        }
    }
}
