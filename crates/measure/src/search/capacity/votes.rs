//! What trials at one load say together: single ones may be luck.

use super::{CapacitySearch, DEGRADED};

/// Loads that differ by less than this share are one load: what a tester offers of a load differs by as much from trial to
/// trial, and no trial tells them apart.
const ALIKE: f64 = 1e-3;
/// So many times more trials have to say that a load passes, or fails, than the contrary.
const DISPUTED: usize = 3;

impl CapacitySearch {
    /// Failures at this load or below, and passes at it or above.
    pub(super) fn votes(&self, load: f64) -> (usize, usize) {
        let failed = self.failed.iter().filter(|failed| **failed <= load * (1.0 + ALIKE)).count();
        (failed, self.passed.iter().filter(|pass| pass.load >= load * (1.0 - ALIKE)).count())
    }

    /// Whether so many trials at this load or above passed that failures at it or below do not count.
    pub(super) fn passes_at(&self, load: f64) -> bool {
        let (failed, passed) = self.votes(load);
        failed * DISPUTED <= passed && passed >= self.least_votes()
    }

    /// The highest load that passed, where failures below it do not say otherwise: a device that loses a few frames now and
    /// then passes at a load and fails at a lower one. The lowest load that passed where all are disputed.
    pub(super) fn best(&self) -> Option<f64> {
        let stands = |load: &f64| self.passes_at(*load);
        let loads = || self.passed.iter().map(|p| p.load);
        loads().filter(stands).max_by(f64::total_cmp).or_else(|| loads().min_by(f64::total_cmp))
    }

    /// The lowest load that failed above another, where passes above it do not say otherwise.
    pub(super) fn lowest_failed(&self, above: f64) -> Option<f64> {
        let least = self.least_votes();
        let stands = |load: &f64| {
            let (failed, passed) = self.votes(*load);
            passed * DISPUTED <= failed && failed >= least
        };
        let above = || self.failed.iter().copied().filter(|failed| *failed > above);
        above().filter(stands).min_by(f64::total_cmp).or_else(|| above().max_by(f64::total_cmp))
    }

    /// Whether a load below the rate failed: the device loses frames now and then before it is kept busy.
    pub(super) fn loses_below(&self) -> bool {
        // Few passes tell the rate roughly.
        let rate = self.rate().map_or(0.0, |rate| rate.mean - rate.half.min(rate.mean * DEGRADED));
        self.failed.iter().any(|failed| *failed < rate)
    }

    /// Trials that have to say that a load passes, or fails.
    pub(super) fn least_votes(&self) -> usize {
        match self.loses_below() && !self.degrades() || self.contradicts() {
            true => DISPUTED,
            false => 1,
        }
    }

    /// Whether a load passed at which, or below which, another trial failed: single trials are luck then.
    pub(super) fn contradicts(&self) -> bool {
        let highest = self.passed.iter().map(|pass| pass.load).fold(0.0, f64::max);
        self.failed.iter().any(|failed| *failed <= highest * (1.0 + ALIKE))
    }
}
