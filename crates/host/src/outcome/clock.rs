//! How fast a core's clock is, without counters of the processor: by how long a chain of multiplications takes.

use std::{hint::black_box, time::Instant};

use serde::Serialize;

/// Steps of a chain: some 3 us.
const STEPS: u32 = 2048;
/// Clocks of a step: a 32-bit multiplication (3) and an addition (1), each waiting for the one before. So on every x86-64 core
/// since 2008, Intel's small ones included (Agner Fog, Instruction tables).
const CLOCKS: f64 = 4.0;
/// Chains of a sample. The shortest counts: an interrupt only makes one longer.
const CHAINS: u32 = 24;

/// The clock of a core, over samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CoreClock {
    /// The slowest sample, MHz.
    pub least_mhz: f64,
    /// Half of the samples are slower.
    pub median_mhz: f64,
    /// The fastest sample.
    pub most_mhz: f64,
}

impl CoreClock {
    /// Of samples in MHz; `None` if there are none.
    pub(super) fn of(mut samples: Vec<f64>) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        Some(Self {
            least_mhz: *samples.first()?,
            median_mhz: *samples.get(samples.len() / 2)?,
            most_mhz: *samples.last()?,
        })
    }
}

/// One sample, MHz: some 70 us.
pub(super) fn sample() -> f64 {
    let shortest = (0..CHAINS).map(|_| chain()).min().unwrap_or(u64::MAX);
    f64::from(STEPS) * CLOCKS / shortest.max(1) as f64 * 1e3
}

/// Nanoseconds of a chain.
fn chain() -> u64 {
    // Unknown to the compiler, or it would make two steps one.
    let (factor, add) = black_box((1_664_525_u32, 1_013_904_223_u32));
    let mut x = black_box(1_u32);
    let start = Instant::now();
    for _ in 0..STEPS {
        x = x.wrapping_mul(factor).wrapping_add(add);
    }
    black_box(x);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_sorted() {
        let clock = CoreClock::of(vec![3000.0, 1000.0, 2000.0]).unwrap();
        assert_eq!((clock.least_mhz, clock.median_mhz, clock.most_mhz), (1000.0, 2000.0, 3000.0));
        assert_eq!(CoreClock::of(Vec::new()), None);
    }

    #[test]
    fn a_core_of_today_has_some_gigahertz() {
        let mhz = (0..50).map(|_| sample()).fold(0.0, f64::max);
        assert!((400.0..8_000.0).contains(&mhz), "{mhz}");
    }
}
