//! A highest load that the tester's own ports can take in.

use units::Fps;

use super::{CapacitySearch, Phase};

/// What the tester is asked for, of what it took.
const LESS: f64 = 0.99;

impl CapacitySearch {
    /// Begins anew with a highest load that the tester can take in: what is found there is its limit, not the device's.
    pub(super) fn offer_no_more_than(&mut self, most: f64) {
        let most = (most * LESS).max(self.config.floor().get());
        (self.config.upper, self.config.upper_is_tester) = (Fps::from_raw(most.round()), true);
        self.attempts.restart();
        (self.phase, self.passes, self.unclear) = (Phase::Top, 0, 0);
        self.rates.clear();
        self.rough.clear();
        self.measured.clear();
        self.failed.clear();
        self.at_top = None;
        self.expected = most;
    }
}
