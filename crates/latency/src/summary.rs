//! Percentiles of times, each with its interval.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The percentiles that are looked at: the low-latency document's, and those beyond it.
pub const PERCENTILES: [f64; 14] =
    [0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 100.0];
/// Fewest samples beyond a percentile for it to be a figure.
pub const FEWEST_BEYOND: f64 = 100.0;
/// Longest time that is kept: a minute. Longer ones count as that.
const MOST_NS: u64 = 60_000_000_000;
/// Significant digits of a time.
const DIGITS: u8 = 3;
/// Standard deviations of a normal distribution within which 95 % are.
const Z: f64 = 1.96;

/// Percentiles that must be known for samples to be precise.
const PRECISE: [f64; 2] = [50.0, 99.0];

/// Whether median and 99th percentile are known to this share of themselves.
pub fn is_precise(samples: &Samples, share: f64) -> bool {
    uncertainty(samples).is_some_and(|known| known <= share)
}

/// To which share of themselves median and 99th percentile are known, the worse of both; `None` where one is not known.
pub fn uncertainty(samples: &Samples) -> Option<f64> {
    PRECISE.iter().try_fold(0.0, |worst: f64, &percent| Some(worst.max(samples.percentile(percent).uncertainty()?)))
}

/// How precisely median and 99th percentile are known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// What was asked for, as a share of the figures.
    pub asked: f64,
    /// What came of it; `None` where one of them is not known.
    pub reached: Option<f64>,
}

impl Precision {
    /// Whether less came of it than was asked for.
    pub fn is_missed(&self) -> bool {
        self.reached.is_none_or(|reached| reached > self.asked)
    }
}

/// A percentile of samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// 0 to 100.
    pub percent: f64,
    /// Its time, ns; `None` where fewer than 100 samples are beyond it.
    pub ns: Option<u64>,
    /// The ends of its 95 % interval, ns, by order statistics: no distribution is assumed.
    pub interval_ns: Option<(u64, u64)>,
}

impl Percentile {
    /// The wider side of the interval as a share of the figure; `None` without a figure.
    pub fn uncertainty(&self) -> Option<f64> {
        let (ns, (low, high)) = (self.ns? as f64, self.interval_ns?);
        (ns > 0.0).then(|| (ns - low as f64).max(high as f64 - ns) / ns)
    }
}

/// Times. The least and the greatest are exact, the others are kept to three digits.
#[derive(Debug, Clone)]
pub struct Samples {
    histogram: Histogram<u64>,
    ends: Option<(u64, u64)>,
}

impl Samples {
    /// An empty collection, whose memory is there; `None` if there is too little.
    pub fn new() -> Option<Self> {
        let mut histogram = Histogram::new_with_max(MOST_NS, DIGITS).ok()?;
        // Each page is written to now, and not by the first slow sample, which the kernel would make slower.
        std::hint::black_box(&mut histogram).clear();
        Some(Self { histogram, ends: None })
    }

    /// Adds a time, ns.
    pub fn add(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
        let ns = ns.min(MOST_NS);
        self.ends = Some(self.ends.map_or((ns, ns), |(least, most)| (least.min(ns), most.max(ns))));
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Self) {
        // Both have the same bounds.
        let _ = self.histogram.add(&other.histogram);
        self.ends = match (self.ends, other.ends) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Their mean, ns; `None` of none.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.histogram.mean())
    }

    /// Their standard deviation, ns; `None` of none.
    pub fn deviation_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.histogram.stdev())
    }

    /// A percentile. The least and the greatest are figures of any number of samples, without an interval.
    pub fn percentile(&self, percent: f64) -> Percentile {
        let count = self.count();
        let none = Percentile { percent, ns: None, interval_ns: None };
        let Some((least, greatest)) = self.ends else { return none };
        if percent <= 0.0 {
            return Percentile { ns: Some(least), ..none };
        }
        if percent >= 100.0 {
            return Percentile { ns: Some(greatest), ..none };
        }
        let (n, q) = (count as f64, percent / 100.0);
        // A tenth less: shares of numbers in binary are not exact.
        if n * q.min(1.0 - q) < FEWEST_BEYOND - 0.1 {
            return none;
        }
        // The rank of a quantile is binomial: so many samples are below it, more or less.
        let spread = Z * (n * q * (1.0 - q)).sqrt();
        let at = |rank: f64| self.histogram.value_at_quantile((rank / n).clamp(0.0, 1.0)).clamp(least, greatest);
        Percentile { percent, ns: Some(at(n * q)), interval_ns: Some((at(n * q - spread), at(n * q + spread))) }
    }

    /// All of [`PERCENTILES`].
    pub fn percentiles(&self) -> Vec<Percentile> {
        PERCENTILES.iter().map(|&percent| self.percentile(percent)).collect()
    }

    /// Values and how many samples each has, rising: for a picture.
    pub fn steps(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }
}

/// Times of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// How many samples.
    pub samples: u64,
    /// Their mean, ns.
    pub mean_ns: Option<f64>,
    /// Their standard deviation, ns.
    pub deviation_ns: Option<f64>,
    /// Percentiles, rising.
    pub percentiles: Vec<Percentile>,
}

impl Times {
    /// Of these samples.
    pub fn of(samples: &Samples) -> Self {
        Self {
            samples: samples.count(),
            mean_ns: samples.mean_ns(),
            deviation_ns: samples.deviation_ns(),
            percentiles: samples.percentiles(),
        }
    }

    /// Without the intervals of percentiles: they are of samples that do not depend on each other.
    pub fn leave_out_intervals(&mut self) {
        self.percentiles.iter_mut().for_each(|percentile| percentile.interval_ns = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 to n, each once, in ns.
    fn rising(n: u64) -> Samples {
        let mut samples = Samples::new().unwrap();
        (1..=n).for_each(|ns| samples.add(ns));
        samples
    }

    #[test]
    fn a_percentile_is_a_figure_of_enough_samples_only() {
        let samples = rising(1000);
        let of = |percent| samples.percentile(percent).ns;
        assert_eq!((of(0.0), of(50.0), of(100.0)), (Some(1), Some(500), Some(1000)));
        assert_eq!(of(90.0), Some(900), "a hundred samples beyond it");
        assert_eq!((of(90.1), of(99.0), of(9.9)), (None, None, None));
        assert_eq!(of(10.0), Some(100));
        assert_eq!(Samples::new().unwrap().percentile(50.0).ns, None);
        assert_eq!(rising(1).percentile(100.0).ns, Some(1));
    }

    #[test]
    fn an_interval_has_the_ranks_of_a_binomial() {
        let median = rising(10_000).percentile(50.0);
        // 5000 more or less 1.96 times 50.
        let (low, high) = median.interval_ns.unwrap();
        assert!((4899..=4906).contains(&low) && (5096..=5103).contains(&high), "{median:?}");
        let wider = median.uncertainty().unwrap();
        assert!((0.018..0.022).contains(&wider), "{wider}");
        assert_eq!(rising(10_000).percentile(100.0).uncertainty(), None);
    }

    #[test]
    fn times_are_kept_to_three_digits_and_long_ones_count() {
        let mut samples = Samples::new().unwrap();
        samples.add(0);
        samples.add(u64::MAX);
        samples.add(1_234_567);
        assert_eq!(samples.count(), 3);
        let most = samples.percentile(100.0).ns.unwrap();
        assert_eq!(most, MOST_NS);
        let mut one = Samples::new().unwrap();
        one.add(1_871_234);
        assert_eq!((one.percentile(0.0).ns, one.percentile(100.0).ns), (Some(1_871_234), Some(1_871_234)));
        let mut other = rising(10);
        other.merge(&samples);
        assert_eq!(other.count(), 13);
        assert_eq!(other.steps().map(|(_, count)| count).sum::<u64>(), 13);
        assert!(other.mean_ns().is_some() && other.deviation_ns().is_some());
        assert_eq!(Samples::new().unwrap().mean_ns(), None);
        assert_eq!(PERCENTILES.len(), other.percentiles().len());
    }
}
