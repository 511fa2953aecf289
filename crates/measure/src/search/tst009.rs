//! Binary search with loss verification (ETSI GS NFV-TST 009).

use units::Fps;

use super::{
    config::SearchConfig,
    gave::Gave,
    retrying::Retrying,
    strategy::{Bounds, Strategy, Want},
};
use crate::{result::Outcome, trial::Purpose};

/// Binary search with loss verification (ETSI GS NFV-TST 009 §12.3.2, §12.3.3; `methods` §3).
///
/// The array of loads is `S[i] = (i + 1) * step`; its last entry is at most the highest load. The search tries
/// `m = (L + R) / 2`. If the trial passes, `L = m + 1`, otherwise `R = max(m - 1, L)`, until `L = R`. The published loop
/// stops there without a trial at S\[L\], so its answer may be one step low. This search makes a last trial at S\[L\].
///
/// The step is a share of the highest load. Where the tester cannot offer that, and no load has passed or failed, the highest
/// load is what it offers, and the step is that share of it.
pub type Tst009Search = Retrying<LossVerification>;

impl Tst009Search {
    /// A new search.
    pub fn new(config: SearchConfig) -> Self {
        let upper = config.upper.get();
        let step = (upper * config.precision.get()).max(f64::MIN_POSITIVE);
        let count = ((upper / step) - 1e-9).ceil().clamp(1.0, 10_000_000.0) as u64;
        let first = first(config.lower, step, count);
        let strategy = LossVerification {
            top: config.upper,
            top_is_tester: config.upper_is_tester,
            left: first,
            first,
            lowest: Some(config.lower),
            ..LossVerification::over(step, count, config.retries, config.retry_max_lost)
        };
        Self::with(config, strategy)
    }
}

/// The index of the lowest load of the array that is not below this one.
fn first(lowest: Fps, step: f64, count: u64) -> u64 {
    ((lowest.get() / step - 1e-9).ceil() as u64).clamp(1, count) - 1
}

/// The array, L and R of the search, and the retries left at the current load.
#[derive(Debug, Clone)]
pub struct LossVerification {
    step: f64,
    top: Fps,
    top_is_tester: bool,
    left: u64,
    right: u64,
    /// First and last index of the search.
    first: u64,
    last: u64,
    /// The lowest load of the plan, where the step is a share of the highest load.
    lowest: Option<Fps>,
    /// Whether it is one of what the tester offers.
    scaled: bool,
    /// The most that was offered and passed while it is not, and the number of the trial.
    offered: Option<(Fps, u32)>,
    /// Whether S[L] was tried with L = R, or the bounds crossed.
    settled: bool,
    retries: u32,
    retries_left: u32,
    max_lost: u64,
    best: Option<(u64, u32)>,
    failed: Option<u64>,
    retried: Vec<(Fps, u32)>,
}

impl LossVerification {
    /// Searches `step, 2 * step, ... count * step`: loads, or lengths of bursts.
    pub(crate) fn over(step: f64, count: u64, retries: u32, max_lost: Option<u64>) -> Self {
        let last = count.saturating_sub(1);
        Self {
            step,
            top: Fps::from_raw(count as f64 * step),
            top_is_tester: false,
            left: 0,
            right: last,
            first: 0,
            last,
            lowest: None,
            scaled: false,
            offered: None,
            settled: false,
            retries,
            retries_left: retries,
            max_lost: max_lost.unwrap_or(u64::MAX),
            best: None,
            failed: None,
            retried: Vec::new(),
        }
    }

    /// The highest load that passed.
    pub(crate) fn best(&self) -> Option<Fps> {
        self.best.map(|(index, _)| self.load(index))
    }

    fn load(&self, index: u64) -> Fps {
        Fps::from_raw(((index + 1) as f64 * self.step).min(self.top.get()))
    }

    /// The highest load of the search that is not above this one.
    fn below(&self, load: Fps) -> Option<u64> {
        let steps = (load.get() / self.step + 1e-9).floor() as u64;
        steps.checked_sub(1).map(|index| index.min(self.last)).filter(|index| *index >= self.first)
    }

    fn middle(&self) -> u64 {
        self.left + (self.right - self.left) / 2
    }

    /// Moves L or R after the verdict on S[m].
    fn step_from(&mut self, m: u64, passed: bool) {
        let at_end = self.left == self.right;
        if passed {
            self.left = (m + 1).min(self.right);
        } else {
            self.right = m.saturating_sub(1).max(self.left);
        }
        // If L = R and its load is already known, a last trial is not needed.
        let known = |i: u64| self.best.is_some_and(|(b, _)| i <= b) || self.failed.is_some_and(|f| i >= f);
        self.settled = at_end || (self.left == self.right && known(self.left));
    }

    /// The same number of steps up to a lower highest load.
    fn scale_to(&mut self, top: Fps, lowest: Fps) {
        let count = self.last + 1;
        self.scaled = true;
        self.step = top.get() / count as f64;
        self.top = top;
        self.first = first(lowest, self.step, count);
        (self.left, self.right) = (self.first, self.last);
    }

    /// No load has passed or failed.
    fn is_untold(&self) -> bool {
        self.best.is_none() && self.failed.is_none()
    }

    fn outcome(&self) -> Outcome {
        match (self.best, self.failed) {
            // No load failed: the last one passed, or as much as the tester offered of it.
            (Some((best, _)), failed) if failed.is_none() || best == self.last && failed != Some(best + 1) => {
                if self.top_is_tester || best < self.last {
                    Outcome::TesterLimited
                } else {
                    Outcome::AtMaximum
                }
            }
            (Some(_), _) => Outcome::Found,
            // The tester offered no load in full: no statement about the DUT.
            (None, None) => Outcome::Inconclusive,
            (None, Some(_)) => Outcome::BelowMinimum,
        }
    }
}

impl Strategy for LossVerification {
    fn next(&mut self) -> Want {
        if self.settled {
            return Want::End(self.outcome());
        }
        let fresh = self.retries_left == self.retries;
        let purpose = if fresh { Purpose::Search } else { Purpose::Verification };
        Want::Load(self.load(self.middle()), purpose)
    }

    fn verdict(&mut self, load: Fps, passed: bool, gave: &Gave) {
        let m = self.middle();
        if !passed && self.retries_left > 0 && gave.lost <= self.max_lost {
            self.retries_left -= 1;
            match self.retried.last_mut() {
                Some((last, times)) if *last == load => *times += 1,
                _ => self.retried.push((load, 1)),
            }
            return;
        }
        self.retries_left = self.retries;
        if passed {
            // Of bursts it is a length that counts.
            let less = self.lowest.is_some() && gave.load < load;
            let shown = if less { self.below(gave.load).map(|i| i.min(m)) } else { Some(m) };
            self.best = self.best.max(shown.map(|index| (index, gave.number)));
        } else {
            self.failed = Some(self.failed.map_or(m, |f| f.min(m)));
        }
        self.step_from(m, passed);
    }

    fn passed_less(&mut self, gave: &Gave) {
        // Steps that are shares of a load which the tester does not reach are about to become smaller.
        let about = self.is_untold() && self.lowest.is_some() && !self.scaled;
        if about && self.offered.is_none_or(|(most, _)| most < gave.load) {
            self.offered = Some((gave.load, gave.number));
        }
        // A load that failed may pass in a better moment: it stays failed.
        let failed = self.failed.unwrap_or(u64::MAX);
        if let Some(index) = self.below(gave.load).filter(|i| !about && *i < failed) {
            self.best = self.best.max(Some((index, gave.number)));
            self.left = self.left.max((index + 1).min(self.right));
        }
    }

    fn cap(&mut self, top: Fps) {
        self.retries_left = self.retries;
        self.top_is_tester = true;
        if let Some(lowest) = self.lowest.filter(|lowest| self.is_untold() && *lowest < top && Fps::ZERO < top) {
            return self.scale_to(top, lowest);
        }
        let reach = (top.get() / self.step + 1e-9).floor();
        // No load is left between the best passed load and the maximum of the tester.
        let floor = self.best.map_or(self.first, |(b, _)| b + 1);
        if reach < (floor + 1) as f64 {
            self.last = self.best.map_or(self.first, |(b, _)| b);
            self.right = self.left;
            self.settled = true;
        } else {
            self.last = self.last.min(reach as u64 - 1);
            self.right = self.right.min(self.last);
            self.left = self.left.min(self.right);
        }
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            lower: self
                .best
                .map(|(i, number)| (self.load(i), number))
                .or(self.offered.filter(|_| self.failed.is_none())),
            upper: self.failed.map(|i| self.load(i)),
            retries: self.retried.clone(),
            step: Some(Fps::from_raw(self.step)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loads of 10 to 1,000 fps.
    fn search() -> LossVerification {
        let lowest = Some(Fps::from_raw(10.0));
        LossVerification { lowest, ..LossVerification::over(10.0, 100, 0, None) }
    }

    fn gave(load: f64, number: u32) -> Gave {
        let load = Fps::from_raw(load);
        Gave { number, purpose: Purpose::Search, duration_s: 1.0, effective_s: 1.0, load, lost: 0, loss_ratio: 0.0 }
    }

    fn best(search: &LossVerification) -> Option<(f64, u32)> {
        search.bounds().lower.map(|(load, number)| (load.get(), number))
    }

    #[test]
    fn a_load_that_passed_counts_at_what_was_offered() {
        let mut search = search();
        search.verdict(Fps::from_raw(500.0), true, &gave(487.0, 1));
        assert_eq!(best(&search), Some((480.0, 1)));
        assert!(matches!(search.next(), Want::Load(load, _) if load.get() > 500.0), "it goes on above it");
        search.verdict(Fps::from_raw(750.0), true, &gave(4.0, 2));
        assert_eq!(best(&search), Some((480.0, 1)));
        // Of a burst it is the length.
        let mut bursts = LossVerification::over(10.0, 100, 0, None);
        bursts.verdict(Fps::from_raw(500.0), true, &gave(3.0, 1));
        assert_eq!(best(&bursts), Some((500.0, 1)));
    }

    #[test]
    fn a_load_that_was_not_offered_shows_the_loads_below() {
        let mut unscaled = search();
        unscaled.passed_less(&gave(487.0, 1));
        unscaled.passed_less(&gave(399.0, 5));
        assert_eq!(best(&unscaled), Some((487.0, 1)), "its steps are about to become smaller");
        assert_eq!(unscaled.outcome(), Outcome::Inconclusive);
        unscaled.cap(Fps::from_raw(400.0));
        unscaled.passed_less(&gave(3.0, 2));
        assert_eq!(best(&unscaled), Some((487.0, 1)), "below the lowest");
        unscaled.passed_less(&gave(203.0, 3));
        assert_eq!(best(&unscaled), Some((200.0, 3)));
        assert!(matches!(unscaled.next(), Want::Load(load, _) if load.get() > 200.0));
        unscaled.passed_less(&gave(103.0, 4));
        assert_eq!(best(&unscaled), Some((200.0, 3)), "no less than before");
        let mut dead = search();
        dead.passed_less(&gave(487.0, 1));
        dead.cap(Fps::from_raw(400.0));
        dead.verdict(Fps::from_raw(200.0), false, &gave(200.0, 2));
        assert_eq!(best(&dead), None, "no bound above a load that failed");
        let mut failed = search();
        failed.verdict(Fps::from_raw(500.0), false, &gave(500.0, 1));
        failed.passed_less(&gave(500.0, 2));
        assert_eq!(best(&failed), None, "what failed stays failed");
        failed.passed_less(&gave(499.0, 3));
        assert_eq!(best(&failed), Some((490.0, 3)));
    }

    #[test]
    fn without_a_load_that_failed_the_tester_is_the_limit() {
        let all_pass = |mut search: LossVerification, offered: f64| {
            while let Want::Load(load, _) = search.next() {
                search.verdict(load, true, &gave(load.get() * offered, 1));
            }
            search.outcome()
        };
        assert_eq!(all_pass(search(), 1.0), Outcome::AtMaximum);
        // The highest load is less than a step above the one below it.
        let uneven = LossVerification { top: Fps::from_raw(995.0), ..search() };
        assert_eq!(all_pass(uneven, 1.0), Outcome::AtMaximum);
        assert_eq!(all_pass(search(), 0.98), Outcome::TesterLimited);
        assert_eq!(all_pass(LossVerification { top_is_tester: true, ..search() }, 1.0), Outcome::TesterLimited);
    }
}
