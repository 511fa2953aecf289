//! The loads that an MLRsearch can try.

use units::Fps;

/// Rungs in the smallest goal width.
const STEPS: f64 = 4.0;
/// Share by which rungs are closer, so that loads rounded to whole frames stay within the width.
const SLACK: f64 = 1e-3;
/// Largest number of rungs.
const MAX_RUNGS: f64 = 200_000.0;

/// The loads that a search may try: a fixed ladder from the highest load to the lowest, with equal ratios between rungs.
///
/// Two runs with slightly different trials still try the same loads, so they give the same answers.
#[derive(Debug, Clone)]
pub(super) struct Ladder {
    bottom: f64,
    top: f64,
    /// Natural logarithm of the ratio of two rungs.
    step: f64,
    last: usize,
    width: f64,
}

impl Ladder {
    /// From `bottom` to `top`, both above zero, with rungs close enough for bounds of this relative width.
    pub fn new(bottom: f64, top: f64, width: f64) -> Self {
        let bottom = bottom.min(top).max(f64::MIN_POSITIVE);
        let span = (top / bottom).ln();
        let step = (-(1.0 - width).ln() / STEPS * (1.0 - SLACK)).max(span / MAX_RUNGS);
        Self { bottom, top, step, last: (span / step - 1e-9).ceil().max(0.0) as usize, width }
    }

    /// The load of a rung; rung 0 is the lowest load.
    pub fn load(&self, rung: usize) -> Fps {
        if rung == 0 {
            return Fps::from_raw(self.bottom);
        }
        let exact = self.top * (-(self.last.saturating_sub(rung) as f64) * self.step).exp();
        // Round to whole frames per second where rounding is far finer than the width. The lowest load may be nearer than that.
        let fine = rung < self.last && exact * self.width * SLACK > 1.0 && exact.round() > self.bottom;
        Fps::from_raw(if fine { exact.round() } else { exact })
    }

    /// Number of the highest rung.
    pub fn last(&self) -> usize {
        self.last
    }

    /// The highest rung at or below this load; `None` when every rung is above it.
    pub fn below(&self, load: f64) -> Option<usize> {
        let near = self.position(load).floor().clamp(0.0, self.last as f64) as usize;
        (0..=(near + 1).min(self.last)).rev().take(3).find(|&rung| self.load(rung).get() <= load)
    }

    /// The position of a load between the rungs.
    pub fn position(&self, load: f64) -> f64 {
        self.last as f64 - (self.top / load.max(f64::MIN_POSITIVE)).ln() / self.step
    }

    /// The rung nearest to a load.
    pub fn rung(&self, load: Fps) -> usize {
        self.position(load.get()).round().clamp(0.0, self.last as f64) as usize
    }

    /// How many rungs fit in this relative width.
    pub fn rungs(&self, width: f64) -> usize {
        (-(1.0 - width).ln() / self.step).floor().max(1.0) as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::search::mlr::SearchGoal;

    #[test]
    fn a_rung_just_above_the_lowest_load_is_not_rounded_below_it() {
        let (top, share, width) = (19_476_922.086_348_727, 0.008_819_671_699_818_687, 0.058_541_392_833_426_03);
        let ladder = Ladder::new(top * share, top, width);
        let [lowest, next] = [0, 1].map(|rung| ladder.load(rung).get());
        assert!(lowest < next && next.fract() != 0.0 && ladder.load(2).get().fract() == 0.0, "{lowest} {next}");
    }

    proptest! {
        #[test]
        fn rungs_rise_and_a_width_holds(top in 10.0f64..1e9, share in 1e-4f64..0.9, width in 0.0005f64..0.2) {
            let ladder = Ladder::new(top * share, top, width);
            let goal = SearchGoal { width: width.try_into().unwrap(), ..SearchGoal::default() };
            let loads: Vec<f64> = (0..=ladder.last()).map(|r| ladder.load(r).get()).collect();
            prop_assert_eq!((loads[0], loads[ladder.last()]), (top * share, top));
            prop_assert!(loads.windows(2).all(|w| w[0] < w[1]));
            let wide = ladder.rungs(width);
            prop_assert!((1..=8).contains(&wide));
            prop_assert!(loads.windows(wide + 1).all(|w| goal.narrow(w[0], w[wide])), "{}", wide);
            for (rung, &load) in loads.iter().enumerate() {
                prop_assert_eq!(ladder.below(load), Some(rung));
            }
            prop_assert_eq!(ladder.below(top * share * 0.99), None);
        }
    }
}
