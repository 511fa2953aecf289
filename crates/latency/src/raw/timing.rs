//! The clock of the times: its rate with an error bar, and what a time costs by itself.

use std::time::Instant;

use packet::{Clock, ClockPair};
use serde::{Deserialize, Serialize};

use super::{
    frame::Frame,
    run::{send_to_receive, RawOptions, RxMode, TxMode},
    way::Way,
};

/// Readings that the step of a clock is found from.
const READINGS: usize = 4096;
/// Frames whose own cost is looked at.
const OWN: u64 = 20_000;

/// The clock of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Timing {
    /// Clocks a second, over the whole measurement by `CLOCK_MONOTONIC`.
    pub hz: f64,
    /// How far that may be off, parts per million: the readings of both clocks have a width.
    pub error_ppm: f64,
    /// The steps in which it moves, ns: times are multiples of them.
    pub step_ns: f64,
    /// What is in each time that is not the way's: two readings of the clock and our own work between them, ns (median).
    pub own_ns: f64,
}

impl Timing {
    /// By readings of both clocks before and after the measurement, and the step of the clock ([`step`]).
    pub fn between(before: &ClockPair<Instant>, after: &ClockPair<Instant>, step: u64, own_ns: f64) -> Self {
        let seconds = after.time.saturating_duration_since(before.time).as_secs_f64();
        let clocks = after.ticks.saturating_sub(before.ticks) as f64;
        if seconds <= 0.0 || clocks <= 0.0 {
            return Self { own_ns, ..Self::default() };
        }
        let width = (before.width + after.width) as f64 / 2.0;
        let hz = clocks / seconds;
        Self { hz, error_ppm: width / clocks * 1e6, step_ns: step as f64 / hz * 1e9, own_ns }
    }
}

/// The step in which a clock moves, in its own unit: what all differences between its readings are multiples of. Some processors
/// count a hundred million times a second, and in larger numbers.
pub fn step(clock: &impl Clock) -> u64 {
    let readings: Vec<u64> = (0..READINGS).map(|_| clock.now()).collect();
    let differences = readings.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).filter(|&ticks| ticks > 0);
    differences.fold(0, gcd).max(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

/// A way without a length: what is handed over is there.
struct Nowhere {
    frame: Vec<u8>,
    there: bool,
}

impl Way for Nowhere {
    fn load(&mut self, frame: &[u8]) -> bool {
        self.frame.clear();
        self.frame.extend_from_slice(frame);
        true
    }
    #[inline]
    fn fire(&mut self) -> bool {
        self.there = true;
        true
    }
    #[inline]
    fn poll(&mut self) -> usize {
        usize::from(self.there)
    }
    #[inline]
    fn frame(&self, _n: usize) -> &[u8] {
        &self.frame
    }
    fn pass(&mut self) -> usize {
        usize::from(std::mem::take(&mut self.there))
    }
    fn release(&mut self) {
        self.there = false;
    }
}

/// What is in each time of a short frame beside the way, ns: the median of times over a way without a length. 0 if it cannot be
/// measured.
pub fn own_ns(clock: &impl Clock) -> f64 {
    let ends = [packet::MacAddr::default(); 2];
    let mut frame = Frame::new(super::frame::SHORTEST, ends[0], ends[1], 0);
    let options = RawOptions {
        tx: TxMode::Preloaded,
        rx: RxMode::InPlace,
        warm_ups: OWN / 10,
        samples: OWN,
        ..RawOptions::default()
    };
    let mut way = Nowhere { frame: Vec::new(), there: false };
    let measured = send_to_receive(&mut way, clock, &mut frame, &options, &|| true);
    measured.ok().and_then(|measured| measured.times.all.percentile(50.0).ns).map_or(0.0, |ns| ns as f64)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_rate_has_the_error_of_its_readings() {
        let now = Instant::now();
        let before = ClockPair { ticks: 1000, time: now, width: 40 };
        let after = ClockPair { ticks: 1000 + 3_000_000_000, time: now + Duration::from_secs(1), width: 60 };
        let timing = Timing::between(&before, &after, 30, 20.0);
        assert_eq!((timing.hz, timing.own_ns, timing.step_ns), (3e9, 20.0, 10.0));
        assert!((timing.error_ppm - 50.0 / 3e9 * 1e6).abs() < 1e-9);
        assert_eq!(Timing::between(&after, &before, 1, 1.0).hz, 0.0, "a clock that steps back has no rate");
    }

    #[test]
    fn the_step_of_a_clock_is_what_its_readings_have_in_common() {
        struct Coarse(std::cell::Cell<u64>);
        impl Clock for Coarse {
            fn now(&self) -> u64 {
                self.0.set(self.0.get() * 5 % 7919 + self.0.get() + 1);
                self.0.get() / 26 * 26
            }
            fn hz(&self) -> u64 {
                1
            }
        }
        assert_eq!(step(&Coarse(std::cell::Cell::new(1))), 26);
        let still = packet::FakeClock::new(1);
        assert_eq!(step(&still), 1);
    }

    #[test]
    fn a_time_costs_little_by_itself() {
        let own = own_ns(&crate::testing::Wall(Instant::now()));
        assert!(own > 0.0 && own < 50_000.0, "{own}");
    }
}
