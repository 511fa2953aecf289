//! Sizes that are measured one after the other, and the line through their times.

use serde::{Deserialize, Serialize};

use super::frame::{LONGEST, SHORTEST};

/// Sizes of a range without a step.
const EVENLY: usize = 8;
/// The most sizes of one command.
const MOST: usize = 256;

/// Reads `60`, `60,128,1514`, `60..1514` (eight, evenly) or `60..1514/100`: bytes of frames without FCS, rising.
///
/// # Errors
///
/// What is legal.
pub fn frame_sizes(text: &str) -> Result<Vec<usize>, String> {
    let legal = || {
        format!("must be {SHORTEST} to {LONGEST} bytes without FCS, at most {MOST} sizes, such as 60, 60,128,1514, 60..1514 or 60..1514/100")
    };
    let size = |text: &str| {
        text.trim().parse::<usize>().ok().filter(|size| (SHORTEST..=LONGEST).contains(size)).ok_or_else(legal)
    };
    let mut sizes = Vec::new();
    for part in text.split(',') {
        let Some((from, to)) = part.split_once("..") else {
            sizes.push(size(part)?);
            continue;
        };
        let (to, step) = match to.split_once('/') {
            Some((to, step)) => {
                (to, Some(step.trim().parse::<usize>().ok().filter(|&step| step > 0).ok_or_else(legal)?))
            }
            None => (to, None),
        };
        let (from, to) = (size(from)?, size(to)?);
        match step {
            _ if from > to => return Err(legal()),
            Some(step) => sizes.extend((from..=to).step_by(step)),
            None => sizes.extend((0..EVENLY).map(|n| from + (to - from) * n / (EVENLY - 1))),
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() > MOST {
        return Err(legal());
    }
    Ok(sizes)
}

/// The straight line through medians of sizes, by least squares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Slope {
    /// What each byte adds, ns.
    pub ns_per_byte: f64,
    /// Where the line is at no bytes, ns.
    pub intercept_ns: f64,
    /// The farthest median from the line, ns.
    pub farthest_ns: f64,
}

impl Slope {
    /// Through sizes in bytes and their medians in ns; `None` of fewer than three sizes.
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        if points.len() < 3 {
            return None;
        }
        let n = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (x, y) = (mean(|p| p.0), mean(|p| p.1));
        let spread: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
        if spread <= 0.0 {
            return None;
        }
        let ns_per_byte = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / spread;
        let intercept_ns = y - ns_per_byte * x;
        let off = |p: &(f64, f64)| (p.1 - intercept_ns - ns_per_byte * p.0).abs();
        Some(Self { ns_per_byte, intercept_ns, farthest_ns: points.iter().map(off).fold(0.0, f64::max) })
    }
}

/// What a byte takes on a wire of this rate, ns: 0.8 at 10 Gbit/s.
pub fn wire_ns_per_byte(bps: f64) -> f64 {
    8e9 / bps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(frame_sizes("60"), Ok(vec![60]));
        assert_eq!(frame_sizes("1514, 60,128,60"), Ok(vec![60, 128, 1514]));
        assert_eq!(
            frame_sizes("60..1514").map(|sizes| (sizes.len(), sizes[0], sizes[1], sizes[7])),
            Ok((8, 60, 267, 1514))
        );
        assert_eq!(frame_sizes("60..260/100,9014"), Ok(vec![60, 160, 260, 9014]));
        assert_eq!(frame_sizes("60..60"), Ok(vec![60]));
        for wrong in [
            "",
            "59",
            "9015",
            "60..59",
            "100..60",
            "60..1514/0",
            "60..9014/1",
            "x",
            "60..",
            "-60",
            "60..99999999999999999999",
        ] {
            assert!(frame_sizes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_line_through_medians_is_by_least_squares() {
        let exact = Slope::through(&[(60.0, 148.0), (160.0, 228.0), (1060.0, 948.0)]).unwrap();
        assert!((exact.ns_per_byte - 0.8).abs() < 1e-9 && (exact.intercept_ns - 100.0).abs() < 1e-9);
        assert!(exact.farthest_ns < 1e-9);
        let rough = Slope::through(&[(0.0, 0.0), (1.0, 3.0), (2.0, 0.0)]).unwrap();
        assert_eq!((rough.ns_per_byte, rough.intercept_ns, rough.farthest_ns), (0.0, 1.0, 2.0));
        assert_eq!(Slope::through(&[(60.0, 1.0), (61.0, 2.0)]), None);
        assert_eq!(Slope::through(&[(60.0, 1.0); 3]), None);
        assert!((wire_ns_per_byte(10e9) - 0.8).abs() < 1e-12);
    }
}
