//! Statistics of a few independent passes: means with intervals.

use crate::student::{t_95, Z_95};

/// The confidence of the intervals here.
pub(super) const CONFIDENCE: f64 = 0.95;
/// Least half width of an interval over its mean: clocks, bursts and the ends of stretches are not known better.
const RESOLUTION: f64 = 5e-4;

/// A value with its own standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    pub value: f64,
    pub error: f64,
}

/// A mean, and how far the truth may be from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mean {
    pub mean: f64,
    pub half: f64,
}

/// The mean of samples and their variance, which is not a number of fewer than two.
fn spread(samples: &[Sample]) -> (f64, f64) {
    let n = samples.len() as f64;
    let mean = samples.iter().map(|s| s.value).sum::<f64>() / n;
    (mean, samples.iter().map(|s| (s.value - mean).powi(2)).sum::<f64>() / (n - 1.0))
}

/// The mean of independent samples. Its interval covers what differs between them, and the errors of each. `None` of none.
pub(crate) fn mean(samples: &[Sample]) -> Option<Mean> {
    let n = samples.len() as f64;
    if samples.is_empty() {
        return None;
    }
    let (mean, variance) = spread(samples);
    let own = (samples.iter().map(|s| s.error.powi(2)).sum::<f64>() / n).sqrt() / n.sqrt();
    let between = match samples.len() {
        1 => 0.0,
        len => t_95(len - 1) * (variance / n).sqrt(),
    };
    Some(Mean { mean, half: between.max(Z_95 * own).max(RESOLUTION * mean) })
}

/// Whether a further value is none of these samples: outside of the interval that holds the next one with a confidence of 95 %.
/// One sample does not tell how much they differ.
pub(crate) fn is_outside(value: f64, samples: &[Sample]) -> bool {
    let n = samples.len() as f64;
    let (mean, variance) = spread(samples);
    samples.len() > 1 && (value - mean).abs() > t_95(samples.len() - 1) * (variance * (1.0 + 1.0 / n)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64], error: f64) -> Mean {
        mean(&values.iter().map(|&value| Sample { value, error }).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_further_value_is_outside_where_the_others_do_not_differ_as_much() {
        let outside = |value: f64, others: &[f64]| {
            is_outside(value, &others.iter().map(|&value| Sample { value, error: 0.0 }).collect::<Vec<_>>())
        };
        // One standard deviation of 1: 12.706 times the root of 1.5 for two, 4.303 times that of 4/3 for three.
        let two = [10.0 - 0.5f64.sqrt(), 10.0 + 0.5f64.sqrt()];
        assert_eq!([25.55, 25.57, -5.55, -5.57].map(|value| outside(value, &two)), [false, true, false, true]);
        assert_eq!([14.96, 14.98].map(|value| outside(value, &[9.0, 10.0, 11.0])), [false, true]);
        assert!(!outside(99.0, &[10.0]) && !outside(99.0, &[]), "they do not tell how much they differ");
    }

    #[test]
    fn the_interval_is_that_of_student() {
        let m = of(&[100.0, 101.0, 102.0], 0.0);
        assert_eq!(m.mean, 101.0);
        assert!((m.half - 4.303 / 3f64.sqrt()).abs() < 1e-9, "{m:?}");
        let many = of(&[[99.0, 101.0]; 50].concat(), 0.0);
        assert!((many.half - t_95(99) * (100.0f64 / 99.0 / 100.0).sqrt()).abs() < 1e-9, "{many:?}");
    }

    #[test]
    fn own_errors_and_the_resolution_bound_it_from_below() {
        assert!((of(&[100.0; 4], 2.0).half - 1.96).abs() < 1e-9);
        assert!((of(&[100.0; 4], 0.0).half - 0.05).abs() < 1e-9);
        assert!((of(&[100.0], 3.0).half - 5.88).abs() < 1e-9);
        assert_eq!(mean(&[]), None);
    }
}
