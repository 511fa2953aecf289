//! What repeating a test gives: mean, standard deviation and extremes.

use serde::{Deserialize, Serialize};

/// The values of repeated tests summed up, in the unit of the field that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many there were.
    pub n: u32,
    /// Their mean.
    pub mean: f64,
    /// Their sample standard deviation; zero of one value.
    pub stddev: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of these values; `None` when there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Some(Self {
            n: values.len() as u32,
            mean,
            stddev: if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 },
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

/// A straight line through points by least squares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// Points it goes through.
    pub points: u32,
    /// Change of the value an hour.
    pub per_hour: f64,
    /// Standard error of that: a change of less than twice as much is none that can be told.
    pub per_hour_error: f64,
    /// Mean of the values.
    pub mean: f64,
}

impl Trend {
    /// Through `(seconds, value)`; `None` of fewer than three points, or when all are at one time.
    pub fn of(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len() as f64;
        if points.len() < 3 {
            return None;
        }
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (x0, y0) = (mean(|p| p.0), mean(|p| p.1));
        let sxx: f64 = points.iter().map(|p| (p.0 - x0).powi(2)).sum();
        let sxy: f64 = points.iter().map(|p| (p.0 - x0) * (p.1 - y0)).sum();
        if sxx <= 0.0 {
            return None;
        }
        let slope = sxy / sxx;
        let left: f64 = points.iter().map(|p| (p.1 - y0 - slope * (p.0 - x0)).powi(2)).sum();
        let error = (left / (n - 2.0) / sxx).sqrt();
        let hour = 3600.0;
        Some(Self { points: points.len() as u32, per_hour: slope * hour, per_hour_error: error * hour, mean: y0 })
    }

    /// Whether the change is more than its own uncertainty (two standard errors) explains.
    pub fn drifts(&self) -> bool {
        self.per_hour.abs() > 2.0 * self.per_hour_error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_sample_deviation() {
        let s = Spread::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((s.n, s.mean, s.min, s.max), (8, 5.0, 2.0, 9.0));
        assert!((s.stddev - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(Spread::of(&[3.0]).unwrap().stddev, 0.0);
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn a_line_is_found_and_noise_is_no_drift() {
        let line: Vec<_> = (0..10).map(|i| (f64::from(i) * 60.0, 100.0 + f64::from(i))).collect();
        let t = Trend::of(&line).unwrap();
        assert!((t.per_hour - 60.0).abs() < 1e-9 && t.per_hour_error < 1e-9 && t.drifts());
        let noise: Vec<_> = (0..10).map(|i| (f64::from(i), 100.0 + f64::from(i % 2))).collect();
        assert!(!Trend::of(&noise).unwrap().drifts());
        assert_eq!(Trend::of(&line[..2]), None);
        assert_eq!(Trend::of(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }
}
