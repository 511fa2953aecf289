//! Where the hypervisor has put the cores: classes of core-to-core latency.

use crate::{
    plan::Placements,
    result::{CoreToCore, Placement},
    trial::Interference,
};

/// Latencies within this factor of a class's median belong to it. Cache lines take 50 to 80 ns in one placement of a
/// two-core guest and 325 to 365 ns in the other.
const FACTOR: f64 = 2.5;
/// More classes than this are noise: what is new then joins the nearest.
const MAX_CLASSES: usize = 8;
/// Latencies remembered for a running median.
const MEMORY: usize = 63;

/// Whether two core-to-core latencies, such as those of two runs, are of one kind of placement.
pub fn same_place(a_ns: f64, b_ns: f64) -> bool {
    (a_ns.max(1.0) / b_ns.max(1.0)).ln().abs() <= FACTOR.ln()
}

/// The way of a cache line from core to core in what was seen of these trials; `None` where none was probed.
pub fn core_to_core<'a>(seen: impl Iterator<Item = &'a Interference>) -> Option<CoreToCore> {
    let probes = |seen: &Interference| [seen.core_to_core_before_ns, seen.core_to_core_after_ns];
    let mut all: Vec<f64> = seen.flat_map(probes).flatten().filter(|ns| ns.is_finite()).collect();
    all.sort_by(f64::total_cmp);
    Some(CoreToCore { median_ns: *all.get(all.len() / 2)?, min_ns: *all.first()?, max_ns: *all.last()? })
}

/// Assigns classes to core-to-core latencies as they are seen.
#[derive(Debug, Clone, Default)]
pub struct PlacementClassifier {
    classes: Vec<Class>,
    /// Every latency is of one class.
    combined: bool,
}

#[derive(Debug, Clone, Default)]
struct Class {
    /// The latest latencies, ns, oldest overwritten first.
    recent: Vec<f64>,
    next: usize,
}

impl Class {
    fn add(&mut self, ns: f64) {
        match self.recent.get_mut(self.next) {
            Some(slot) => *slot = ns,
            None => self.recent.push(ns),
        }
        self.next = (self.next + 1) % MEMORY;
    }

    fn median(&self) -> f64 {
        let mut sorted = self.recent.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(1.0)
    }

    /// Distance as a factor, in logarithms.
    fn distance(&self, ns: f64) -> f64 {
        (ns / self.median()).ln().abs()
    }
}

impl PlacementClassifier {
    /// One that takes what it sees as the plan says.
    pub fn new(placements: Placements) -> Self {
        Self { classes: Vec::new(), combined: placements == Placements::Combined }
    }

    /// Class of a trial probed before and after, one way, nanoseconds; `None` when the two are of different classes
    /// (the cores moved) or when nothing was probed.
    pub fn classify(&mut self, before_ns: Option<f64>, after_ns: Option<f64>) -> Option<u32> {
        let before = before_ns.map(|ns| self.class_of(ns));
        let after = after_ns.map(|ns| self.class_of(ns));
        match (before, after) {
            (Some(before), Some(after)) => (before == after).then_some(before),
            (one, other) => one.or(other),
        }
    }

    /// Class number and median latency of a class; `None` when no such class was seen, or when all are one.
    pub fn placement(&self, class: u32) -> Option<Placement> {
        if self.combined {
            return None;
        }
        let found = self.classes.get(class as usize)?;
        Some(Placement { class, core_to_core_ns: found.median() })
    }

    /// Number of classes seen.
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    fn class_of(&mut self, ns: f64) -> u32 {
        // A probe that could not be taken well still is somewhere.
        let ns = if ns.is_finite() { ns.max(1.0) } else { 1e9 };
        let most = if self.combined { 1 } else { MAX_CLASSES };
        let nearest = self
            .classes
            .iter()
            .map(|c| c.distance(ns))
            .enumerate()
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .filter(|&(_, distance)| distance <= FACTOR.ln() || self.classes.len() >= most);
        let index = match nearest {
            Some((index, _)) => index,
            None => {
                self.classes.push(Class::default());
                self.classes.len() - 1
            }
        };
        if let Some(class) = self.classes.get_mut(index) {
            class.add(ns);
        }
        index as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_placements_of_a_two_core_guest_are_told_apart() {
        let mut c = PlacementClassifier::default();
        let seen: Vec<_> =
            [(60., 55.), (330., 365.), (80., 50.), (340., 325.)].map(|(b, a)| c.classify(Some(b), Some(a))).into();
        assert_eq!(seen, [Some(0), Some(1), Some(0), Some(1)]);
        assert_eq!(c.classify(Some(60.), Some(340.)), None, "moved during the trial");
        assert_eq!(c.placement(0).unwrap().core_to_core_ns, 60.0);
        assert!((325.0..=365.0).contains(&c.placement(1).unwrap().core_to_core_ns));
        assert_eq!(c.placement(2), None);
    }

    #[test]
    fn combined_they_are_one() {
        let mut c = PlacementClassifier::new(Placements::Combined);
        for (before, after) in [(60., 55.), (330., 365.), (60., 340.), (f64::NAN, 1e12)] {
            assert_eq!(c.classify(Some(before), Some(after)), Some(0));
        }
        assert_eq!((c.classes(), c.placement(0)), (1, None));
        assert_eq!(PlacementClassifier::new(Placements::Separate).classify(Some(60.0), Some(340.0)), None);
    }

    #[test]
    fn the_factor_is_the_border() {
        let mut c = PlacementClassifier::default();
        c.classify(Some(100.0), None);
        assert_eq!(c.clone().classify(None, Some(249.0)), Some(0));
        assert_eq!(c.clone().classify(None, Some(251.0)), Some(1));
        assert_eq!(c.clone().classify(None, Some(40.5)), Some(0));
        assert_eq!(c.clone().classify(None, Some(39.5)), Some(1));
        assert_eq!(c.classify(None, None), None);
    }

    #[test]
    fn two_runs_are_compared_by_the_same_factor() {
        assert!(same_place(60.0, 149.0) && same_place(149.0, 60.0));
        assert!(!same_place(60.0, 151.0) && !same_place(151.0, 60.0));
    }

    #[test]
    fn the_way_from_core_to_core_is_that_of_all_trials() {
        let seen = |core_to_core_before_ns, core_to_core_after_ns| Interference {
            core_to_core_before_ns,
            core_to_core_after_ns,
            ..Interference::default()
        };
        let trials = [seen(Some(180.0), Some(25.0)), seen(None, Some(f64::NAN)), seen(Some(22.0), None)];
        let expected = CoreToCore { median_ns: 25.0, min_ns: 22.0, max_ns: 180.0 };
        assert_eq!(core_to_core(trials.iter()), Some(expected));
        assert_eq!(core_to_core([seen(None, None)].iter()), None);
    }

    #[test]
    fn a_class_has_the_median_of_its_latest_latencies() {
        let mut c = PlacementClassifier::default();
        let mut median_after = |ns: f64, times: usize| {
            for _ in 0..times {
                c.classify(Some(ns), None);
            }
            c.placement(0).map(|placement| placement.core_to_core_ns)
        };
        let medians = [60.0, 90.0, 80.0, 70.0, 100.0].map(|ns| median_after(ns, 1));
        assert_eq!(medians, [60.0, 90.0, 80.0, 80.0, 80.0].map(Some));
        assert_eq!(median_after(60.0, MEMORY), Some(60.0));
        assert_eq!(median_after(100.0, MEMORY / 2 + 1), Some(100.0), "the oldest are forgotten");
    }

    #[test]
    fn a_wild_probe_never_panics_and_classes_stay_few() {
        let mut c = PlacementClassifier::default();
        for ns in [f64::NAN, -5.0, 0.0, f64::INFINITY] {
            c.classify(Some(ns), Some(ns));
        }
        for i in 0..60 {
            c.classify(Some(1.5_f64.powi(i)), None);
        }
        assert_eq!(c.classes(), MAX_CLASSES);
    }

    #[test]
    fn a_class_follows_a_slow_drift() {
        let mut c = PlacementClassifier::default();
        let classes: Vec<_> = (0..400).map(|i| c.classify(Some(60.0 + f64::from(i) / 4.0), None)).collect();
        assert!(classes.iter().all(|&k| k == Some(0)));
    }
}
