//! How times are distributed, in few steps: for pictures.

use serde::{Deserialize, Serialize};

use crate::summary::Samples;

/// Steps an octave.
const AN_OCTAVE: f64 = 4.0;

/// Times from one value to the next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// From this time on, ns.
    pub from_ns: f64,
    /// To below this one, ns.
    pub to_ns: f64,
    /// How many samples.
    pub samples: u64,
}

/// Samples in steps that grow with the times, four an octave: from the least sample to the greatest, the empty ones between as
/// well.
pub fn steps(samples: &Samples) -> Vec<Step> {
    let edge = |n: i32| 2f64.powf(f64::from(n) / AN_OCTAVE);
    let place = |ns: u64| ((ns.max(1) as f64).log2() * AN_OCTAVE).floor() as i32;
    let mut steps: Vec<(i32, u64)> = Vec::new();
    for (ns, count) in samples.steps() {
        let n = place(ns);
        match steps.last_mut() {
            Some((last, sum)) if *last == n => *sum += count,
            Some((last, _)) => {
                let next = *last + 1;
                steps.extend((next..n).map(|empty| (empty, 0)));
                steps.push((n, count));
            }
            None => steps.push((n, count)),
        }
    }
    steps.iter().map(|&(n, samples)| Step { from_ns: edge(n), to_ns: edge(n + 1), samples }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_hold_all_samples_without_gaps() {
        let mut samples = Samples::new().unwrap();
        for ns in [0, 100, 100, 105, 1000] {
            samples.add(ns);
        }
        let steps = steps(&samples);
        assert_eq!(steps.iter().map(|step| step.samples).sum::<u64>(), 5);
        assert!(steps.windows(2).all(|pair| (pair[0].to_ns - pair[1].from_ns).abs() < 1e-9), "{steps:?}");
        let of = |ns: f64| steps.iter().find(|step| step.from_ns <= ns && ns < step.to_ns).unwrap().samples;
        assert_eq!((of(1.0), of(100.0), of(500.0), of(1000.0)), (1, 3, 0, 1));
        assert_eq!(steps.len(), 40, "{steps:?}");
        assert!(super::steps(&Samples::new().unwrap()).is_empty());
    }
}
