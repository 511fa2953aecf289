//! What a measurement found, as it is kept.

use serde::{Deserialize, Serialize};

use crate::{
    pingpong::{Ended, Measured},
    socket::{Transport, Wait},
    summary::{Percentile, Samples},
    tally::Counts,
};

/// Schema of a [`LatencyResult`].
pub const LATENCY_SCHEMA: &str = "linerate-latency-1";

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
}

/// Stretches of time in which the measuring thread ran, by whether something took its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stretches {
    /// All.
    pub all: u64,
    /// Those in which the thread was ready for more than 50 us and did not run.
    pub disturbed: u64,
}

/// A measurement of round trips in a closed loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyResult {
    /// Of this program.
    pub schema: String,
    /// Version of the program.
    pub linerate_version: String,
    /// UDP or TCP.
    pub transport: Transport,
    /// How replies were waited for.
    pub wait: Wait,
    /// The server.
    pub server: String,
    /// This end.
    pub local: String,
    /// The least and the most bytes of a message.
    pub bytes: (usize, usize),
    /// Messages that went out before their replies were awaited.
    pub burst: u32,
    /// When it began.
    pub started_at: String,
    /// Name of this machine.
    pub hostname: String,
    /// Model of its CPU.
    pub cpu_model: String,
    /// Release of its kernel.
    pub kernel: String,
    /// The CPU that the measuring thread was pinned to.
    pub cpu: Option<u32>,
    /// How long it measured, seconds, without the warm-up.
    pub seconds: f64,
    /// Why it ended.
    pub ended: Ended,
    /// What became of the messages.
    pub counts: Counts,
    /// From before the call that sent to after the call that received.
    pub round_trip: Times,
    /// The same of undisturbed stretches; `None` if the kernel does not say.
    pub undisturbed: Option<Times>,
    /// Stretches.
    pub stretches: Stretches,
    /// What a reading of the clock takes, ns: one is in each sample.
    pub clock_ns: f64,
}

impl LatencyResult {
    /// Takes over what was measured.
    pub fn take(&mut self, measured: &Measured) {
        let (all, disturbed) = measured.times.stretches;
        self.seconds = measured.seconds;
        self.ended = measured.ended.clone();
        self.counts = measured.counts;
        self.round_trip = Times::of(&measured.times.all);
        self.undisturbed = measured.times.undisturbed.as_ref().map(Times::of);
        self.stretches = Stretches { all, disturbed };
    }
}

/// What a reading of the clock takes, ns: the fastest of several rows of readings.
pub fn clock_ns() -> f64 {
    const READINGS: u32 = 1000;
    let row = |_| {
        let begun = std::time::Instant::now();
        (0..READINGS).for_each(|_| {
            std::hint::black_box(std::time::Instant::now());
        });
        begun.elapsed().as_secs_f64() * 1e9 / f64::from(READINGS)
    };
    (0..20).map(row).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_hold_every_percentile_and_a_clock_has_its_price() {
        let mut samples = Samples::new().unwrap();
        (1..=500).for_each(|ns| samples.add(ns));
        let times = Times::of(&samples);
        assert_eq!((times.samples, times.percentiles.len()), (500, crate::summary::PERCENTILES.len()));
        assert!((times.mean_ns.unwrap() - 250.5).abs() < 1.0, "{times:?}");
        let ns = clock_ns();
        assert!((1.0..100_000.0).contains(&ns), "{ns}");
    }
}
