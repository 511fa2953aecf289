//! What the tester's own ports could not take in.

use units::{Fps, Nanos};

use super::{CapacitySearch, Phase};
use crate::schema::trial::{LcoreRole, TrialRecord};

/// Frames that the tester's port missed matter from this share of the lost ones on.
const MATTER: f64 = 0.1;
/// And from this share of those that came on.
const LEAST: f64 = 1e-4;
/// So many times more than can have come while the tester was away.
const UNEXPLAINED: f64 = 2.0;
/// What the tester is asked for then, of what it took.
const LESS: f64 = 0.99;

/// Frames a second and direction that the tester takes in at most, if its own port missed frames while its loop was there: a loss
/// that is none of the device.
pub(super) fn takes_at_most(trial: &TrialRecord) -> Option<f64> {
    let sum =
        |of: fn(&crate::schema::trial::DirectionCounts) -> u64| trial.directions.iter().map(of).sum::<u64>() as f64;
    let (missed, lost, received) = (sum(|d| d.port_missed.unwrap_or(0)), sum(|d| d.lost), sum(|d| d.received));
    let testers = trial.interference.lcores.iter().filter(|lcore| lcore.role == LcoreRole::Tester);
    let away_s: f64 = testers.map(|lcore| Nanos(lcore.total_gap_ns).seconds()).sum();
    let directions = trial.directions.len().max(1) as f64;
    let meanwhile = trial.spec.load_fps.get() * away_s * directions;
    let matters = missed > lost * MATTER && missed > received * LEAST && missed > meanwhile * UNEXPLAINED;
    matters.then(|| received / trial.real_duration_s / directions)
}

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
