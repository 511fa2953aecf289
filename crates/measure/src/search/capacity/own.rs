//! Loads that the tester's own ports set: what they can take in, and what the kernel forwards in the tester's own calls.

use units::Fps;

use super::{CapacitySearch, Phase, PASSES};
use crate::search::interval::{self, Mean, Sample};

/// What the tester is asked for, of what it took.
const LESS: f64 = 0.99;

impl CapacitySearch {
    /// Begins anew with a highest load that the tester can take in: what is found there is its limit, not the device's.
    pub(super) fn offer_no_more_than(&mut self, most: f64) {
        let most = (most * LESS).max(self.config.floor().get());
        (self.config.upper, self.config.upper_is_tester) = (Fps::from_raw(most.round()), true);
        self.attempts.restart();
        self.begin_at_top();
    }

    /// Begins anew with the highest load.
    pub(super) fn begin_at_top(&mut self) {
        (self.phase, self.passes, self.unclear, self.tries) = (Phase::Top, 0, 0, 0);
        self.rates.clear();
        self.rough.clear();
        self.measured.clear();
        self.failed.clear();
        self.at_top = None;
        self.expected = self.top();
    }

    /// Whether the device forwards in the tester's own calls, and so sets the load that the tester offers.
    pub(super) fn is_in_calls(&self) -> bool {
        self.offered_most().is_some_and(|most| self.config.is_in_calls(Fps::from_raw(most.mean.max(self.most_offered))))
    }

    /// The load that the tester offers at most, of the passes that it did not offer in full.
    pub(super) fn offered_most(&self) -> Option<Mean> {
        let samples: Vec<Sample> = self.passed.iter().map(|p| Sample { value: p.load, error: 0.0 }).collect();
        interval::mean(samples.get(samples.len().checked_sub(PASSES)?..)?)
    }
}
