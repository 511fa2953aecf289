//! What trials at one load say together: single ones may be luck.

use super::{CapacitySearch, DEGRADED};
use crate::search::interval;

/// Loads that differ by less than this share are one load: what a tester offers of a load differs by as much from trial to
/// trial, and no trial tells them apart.
const ALIKE: f64 = 1e-3;
/// Chance that a load which passes as often as it fails is taken for one that does either, on each side of an interval of 95 %.
const BY_CHANCE: f64 = 0.025;

/// Whether so many trials that say one thing, and so many that say the contrary, leave little doubt of which happens more often:
/// the sign test. Six are enough if none contradicts.
fn decides(yes: usize, no: usize) -> bool {
    let trials = yes + no;
    // The chance of so few contradictions, or fewer, in as many tosses of a coin.
    let mut one = 0.5f64.powi(i32::try_from(trials).unwrap_or(i32::MAX));
    let mut chance = one;
    for contrary in 1..=no.min(trials) {
        one *= (trials + 1 - contrary) as f64 / contrary as f64;
        chance += one;
    }
    chance <= BY_CHANCE
}

impl CapacitySearch {
    /// Failures at this load or below, and passes at it or above.
    pub(super) fn votes(&self, load: f64) -> (usize, usize) {
        let failed = self.failed.iter().filter(|failed| **failed <= load * (1.0 + ALIKE)).count();
        (failed, self.passed.iter().filter(|pass| pass.load >= load * (1.0 - ALIKE)).count())
    }

    /// Whether trials at this load or above passed, and so few failed at it or below that luck is unlikely.
    pub(super) fn passes_at(&self, load: f64) -> bool {
        let (failed, passed) = self.votes(load);
        self.stands(passed, failed)
    }

    /// Whether trials at this load or below failed, and so few passed at it or above that luck is unlikely.
    fn fails_at(&self, load: f64) -> bool {
        let (failed, passed) = self.votes(load);
        self.stands(failed, passed)
    }

    fn stands(&self, yes: usize, no: usize) -> bool {
        match self.is_moody() {
            true => decides(yes, no),
            false => yes > 0 && no == 0,
        }
    }

    /// The highest load that passed, where failures below it do not say otherwise: a device that loses a few frames now and
    /// then passes at a load and fails at a lower one. The lowest load that passed where all are disputed.
    pub(super) fn best(&self) -> Option<f64> {
        let stands = |load: &f64| self.passes_at(*load);
        let loads = || self.passed.iter().map(|p| p.load);
        loads().filter(stands).max_by(f64::total_cmp).or_else(|| loads().min_by(f64::total_cmp))
    }

    /// The lowest load that failed above another and is not the same load, where passes above it do not say otherwise. The highest
    /// one where all are disputed.
    pub(super) fn lowest_failed(&self, above: f64) -> Option<f64> {
        let above = || self.failed.iter().copied().filter(|failed| *failed > above * (1.0 + ALIKE));
        above().filter(|load| self.fails_at(*load)).min_by(f64::total_cmp).or_else(|| above().max_by(f64::total_cmp))
    }

    /// The lowest load above another that failed in so many trials that luck is unlikely.
    pub(super) fn surely_failed(&self, above: f64) -> Option<f64> {
        let sure = |load: &f64| {
            let (failed, passed) = self.votes(*load);
            decides(failed, passed)
        };
        let above = self.failed.iter().copied().filter(|failed| *failed > above * (1.0 + ALIKE));
        above.filter(sure).min_by(f64::total_cmp)
    }

    /// Whether a load below the rate failed: the device loses frames now and then before it is kept busy.
    pub(super) fn loses_below(&self) -> bool {
        // Few passes tell the rate roughly.
        let rate = self.rate().map_or(0.0, |rate| rate.mean - rate.half.min(rate.mean * DEGRADED));
        self.failed.iter().any(|failed| *failed < rate)
    }

    /// Whether it forwards clearly less in a high overload than in a low one: what it forwards in overload is not its capacity.
    pub(super) fn degrades(&self) -> bool {
        self.differs_at_top().is_some_and(|top| top < 0.0)
    }

    /// How much more it forwards at the highest load than in a low overload, where that is clear: it differs by more than the rates
    /// in low ones do from trial to trial.
    pub(super) fn differs_at_top(&self) -> Option<f64> {
        let (top, rate) = self.at_top.zip(interval::mean(&self.rates))?;
        let more = top.value - rate.mean;
        let clear = more.abs() > (DEGRADED * rate.mean).max(rate.half + 2.0 * top.error);
        (clear && interval::is_outside(top.value, &self.rates)).then_some(more)
    }

    /// Whether single trials are luck: whether a load passes differs from trial to trial.
    pub(super) fn is_moody(&self) -> bool {
        (self.loses_below() || self.passes_above()) && !self.degrades() || self.contradicts()
    }

    /// Whether a load above the rate passed.
    pub(super) fn passes_above(&self) -> bool {
        let rate = self.rate().map_or(f64::INFINITY, |rate| rate.mean + rate.half.max(rate.mean * DEGRADED));
        self.passed.iter().any(|pass| pass.load > rate)
    }

    /// Whether a load passed at which, or below which, another trial failed.
    fn contradicts(&self) -> bool {
        let highest = self.passed.iter().map(|pass| pass.load).fold(0.0, f64::max);
        self.failed.iter().any(|failed| *failed <= highest * (1.0 + ALIKE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        plan::Method,
        search::{capacity::Pass, gave::Sending, interval::Sample, reason::Reason, world::World},
    };

    /// A search with these loads passed and failed, of a device of this rate.
    fn with(passed: &[f64], failed: &[f64], rate: f64, at_top: f64) -> CapacitySearch {
        let mut search = CapacitySearch::new(World::new(1e6, 0.0, 1).config(Method::Rfc2544));
        let sample = |value| Sample { value, error: rate * 1e-5 };
        let sending = Sending { load: rate, clean_s: 0.1, aside_s: 0.0 };
        search.passed = passed.iter().map(|load| Pass { load: *load, trial: 1, sending }).collect();
        search.failed = failed.to_vec();
        search.rates = vec![sample(rate); 3];
        search.at_top = Some(sample(at_top));
        search
    }

    #[test]
    fn loads_that_no_trial_tells_apart_are_one() {
        // As Open vSwitch gave them: a load failed often, and one lower by 592 frames/s passed once.
        let passed = [15_003_303.0, 14.01e6, 14e6, 14e6, 14e6, 14e6, 14e6];
        let search = with(&passed, &[15_003_895.0; 8], 16e6, 17e6);
        assert_eq!(search.votes(15_003_303.0), (8, 1));
        assert_eq!(search.votes(15_003_895.0), (8, 1));
        assert_eq!((search.passes_at(15_003_303.0), search.passes_at(14e6)), (false, true));
        assert_eq!((search.best(), search.lowest_failed(14e6)), (Some(14.01e6), Some(15_003_895.0)));
        assert_eq!(search.interval().upper_fps.unwrap().get(), 15_003_895.0);
        // The same load is nothing above it.
        assert_eq!(search.lowest_failed(15_003_303.0), None);
        assert_eq!(search.lowest_failed(15_003_895.0 / 1.002), Some(15_003_895.0));
        assert_eq!(with(&[15e6], &[15e6 * (1.0 + ALIKE)], 14e6, 12e6).lowest_failed(15e6), None, "the border is alike");
    }

    #[test]
    fn one_failure_at_a_load_that_passed_often_is_no_upper_end() {
        let search = with(&[15e6; 8], &[&[15_000_600.0][..], &[15.5e6; 7]].concat(), 16e6, 17e6);
        assert_eq!((search.best(), search.lowest_failed(15e6)), (Some(15e6), Some(15.5e6)));
        assert_eq!(search.interval().upper_fps.unwrap().get(), 15.5e6);
    }

    #[test]
    fn one_failure_just_below_the_rate_does_not_pull_the_upper_end_under_it() {
        let search = with(&[0.996e6; 3], &[0.998e6], 1e6, 1e6);
        assert!(search.interval().upper_fps.unwrap().get() >= 1e6);
        let search = with(&[0.996e6; 3], &[0.998e6; 6], 1e6, 1e6);
        assert_eq!(search.interval().upper_fps.unwrap().get(), 0.998e6);
        assert_eq!((search.surely_failed(0.996e6), search.surely_failed(0.998e6)), (Some(0.998e6), None));
        assert_eq!(search.surely_failed(0.9975e6), None, "loads that no trial tells apart");
        // A load that passes within the interval of the rate does not move it.
        let search = with(&[14e6, 15.995e6], &[17e6], 16e6, 16e6);
        let found = search.interval();
        assert_eq!([found.lower_fps, found.upper_fps].map(|fps| fps.unwrap().get()), [15.992e6, 16.008e6]);
    }

    #[test]
    fn a_device_that_was_faster_at_first_does_not_degrade() {
        let of = |at_top| with(&[14e6], &[15e6], 16e6, at_top).degradation();
        assert!(matches!(of(14e6), Some(Reason::Degrades { .. })) && matches!(of(18e6), Some(Reason::Slower { .. })));
        assert_eq!(of(16e6), None);
    }

    #[test]
    fn a_rate_at_the_highest_load_differs_by_more_than_all_that_is_not_known() {
        let more = |top: f64| with(&[], &[], 16e6, top).differs_at_top().map(|more| more.round());
        assert_eq!([15.7e6, 16.3e6].map(more), [None, None], "by less than 2 %");
        assert_eq!([15.6e6, 16.4e6].map(more), [Some(-4e5), Some(4e5)]);
        // Two standard errors of 1 Mpps, and the half of the interval of the rate, 0.05 % here.
        let vague = |top: f64| {
            let search = with(&[], &[], 16e6, top);
            let at_top = search.at_top.map(|sample| Sample { error: 1e6, ..sample });
            CapacitySearch { at_top, ..search }.differs_at_top().is_some()
        };
        assert_eq!([18.007e6, 18.009e6].map(vague), [false, true]);
        // The next of samples that differ by 1 Mpps is within 4.97 Mpps of their mean.
        let rates = [15e6, 16e6, 17e6].map(|value| Sample { value, error: 0.0 }).to_vec();
        let scattered = |top| CapacitySearch { rates: rates.clone(), ..with(&[], &[], 16e6, top) }.degrades();
        assert_eq!([10.9e6, 11.1e6, 99e6].map(scattered), [true, false, false]);
    }

    #[test]
    fn a_load_passes_above_the_rate_by_more_than_that_is_known() {
        let above = |load: f64| with(&[load], &[], 16e6, 16e6).passes_above();
        assert_eq!([16.31e6, 16.33e6].map(above), [false, true]);
        let rates = [15e6, 16e6, 17e6].map(|value| Sample { value, error: 0.0 }).to_vec();
        let above = |load| CapacitySearch { rates: rates.clone(), ..with(&[load], &[], 16e6, 16e6) }.passes_above();
        assert_eq!([18.4e6, 18.6e6].map(above), [false, true], "4.303 / sqrt(3) Mpps");
        let unrated = CapacitySearch { rates: vec![], ..with(&[15e6], &[], 16e6, 16e6) };
        assert!(!unrated.passes_above(), "without a rate nothing is above it");
        // Then single trials are luck, and the upper end is where loads fail beyond dispute.
        let search = with(&[15e6, 18e6], &[17e6, 19e6], 16e6, 16e6);
        assert!(search.is_moody());
        assert_eq!(search.interval().upper_fps.unwrap().get(), 19e6);
    }

    #[test]
    fn single_trials_count_where_nothing_contradicts_them() {
        let search = with(&[15e6], &[16e6], 14e6, 12e6);
        assert_eq!((search.contradicts(), search.loses_below(), search.is_moody()), (false, false, false));
        assert_eq!((search.best(), search.lowest_failed(15e6)), (Some(15e6), Some(16e6)));
        // Nothing passed there, so one failure stands, and the lower one is the end.
        assert_eq!(with(&[15e6], &[16e6, 17e6], 14e6, 12e6).lowest_failed(15e6), Some(16e6));
        // A failure at the same load contradicts, one above it does not.
        let contradicts = |failed: f64| with(&[14e6, 15e6], &[failed], 14e6, 12e6).contradicts();
        assert_eq!([1.0005, 1.0015].map(|factor| contradicts(15e6 * factor)), [true, false]);
        // A failure below a pass: six have to say either.
        let search = with(&[15e6, 15.5e6], &[15.2e6, 16e6], 14e6, 12e6);
        assert_eq!((search.contradicts(), search.is_moody()), (true, true));
        assert_eq!(search.best(), Some(15e6), "all are disputed: the lowest");
        assert_eq!(search.lowest_failed(15e6), Some(16e6), "all are disputed: the highest");
        let (mut passed, failed) = (vec![15e6], [15.2e6, 16e6]);
        passed.resize(9, 15.5e6);
        assert_eq!(with(&passed, &failed, 14e6, 12e6).best(), Some(15.5e6), "eight passes above one failure");
        assert_eq!(with(&passed[1..8], &failed, 14e6, 12e6).best(), Some(15.5e6), "the only load that passed");
        assert_eq!(with(&passed[..8], &failed, 14e6, 12e6).best(), Some(15e6), "seven above one failure");
        let search =
            with(&[15e6, 15.5e6], &[15.2e6, 15.2e6, 15.2e6, 15.2e6, 15.2e6, 15.2e6, 15.3e6, 15.4e6], 14e6, 12e6);
        assert_eq!(search.lowest_failed(15e6), Some(15.4e6), "eight failures below one pass");
    }

    #[test]
    fn the_sign_test_decides_at_one_in_forty_on_each_side() {
        // The tail of the binomial distribution: 1/64, 9/512, 79/4096.
        for (least, no) in [(6, 0), (8, 1), (10, 2), (12, 3)] {
            assert_eq!((decides(least, no), decides(least - 1, no)), (true, false), "{least} to {no}");
        }
        assert!(!decides(0, 0) && !decides(0, 6) && !decides(9, 9) && decides(300, 240) && !decides(300, 260));
    }

    #[test]
    fn a_failure_below_the_rate_asks_for_more_unless_the_device_degrades() {
        // 16 Mpps in overload, and a loss at 15: now and then.
        let search = with(&[14e6], &[15e6], 16e6, 16e6);
        assert_eq!((search.degrades(), search.loses_below(), search.is_moody()), (false, true, true));
        let search = with(&[14e6], &[15e6], 16e6, 12e6);
        assert_eq!((search.degrades(), search.loses_below(), search.is_moody()), (true, true, false));
        assert!(!with(&[14e6], &[16e6], 16e6, 16e6).loses_below(), "at the rate, not below it");
        let mut border = with(&[14e6], &[], 16e6, 16e6);
        border.failed = border.rate().map(|rate| rate.mean - rate.half).into_iter().collect();
        assert!(!border.loses_below(), "{:?} is at the end of the rate", border.failed);
        // Passes that differ this much tell the rate by a few percent all the same.
        let rates = [12e6, 16e6, 20e6].map(|value| Sample { value, error: 0.0 }).to_vec();
        assert!(CapacitySearch { rates, ..with(&[14e6], &[15e6], 16e6, 16e6) }.loses_below());
        let unrated = CapacitySearch { rates: vec![], ..with(&[], &[15e6], 16e6, 16e6) };
        assert!(unrated.rate().is_none() && !unrated.loses_below(), "without a rate nothing is below it");
    }
}
