//! The tick counter of the packet path, and pairs of readings that tie it to the clocks of the system.

use std::{
    cell::Cell,
    rc::Rc,
    time::{Duration, Instant, SystemTime},
};

/// Readings that [`ClockPair::monotonic`] and [`ClockPair::wall`] choose from. One would do but for interrupts.
const READINGS: usize = 5;

/// A monotonic tick counter read on the packet path: the TSC, or a fake one in tests.
pub trait Clock {
    /// Ticks since some fixed moment.
    fn now(&self) -> u64;
    /// Ticks per second; never zero.
    fn hz(&self) -> u64;
}

/// A clock for tests: it stands still until [`FakeClock::advance`]. Clones show the same time.
#[derive(Debug, Clone)]
pub struct FakeClock {
    ticks: Rc<Cell<u64>>,
    hz: u64,
}

impl FakeClock {
    /// A clock at tick zero that counts `hz` ticks a second.
    pub fn new(hz: u64) -> Self {
        Self { ticks: Rc::new(Cell::new(0)), hz: hz.max(1) }
    }

    /// Moves time forward.
    pub fn advance(&self, ticks: u64) {
        self.ticks.set(self.ticks.get() + ticks);
    }
}

impl Clock for FakeClock {
    fn now(&self) -> u64 {
        self.ticks.get()
    }
    fn hz(&self) -> u64 {
        self.hz
    }
}

/// A tick counter and another clock, read at the same moment as nearly as possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockPair<T> {
    /// The tick counter, half way between its readings before and after the other clock.
    pub ticks: u64,
    /// The other clock.
    pub time: T,
    /// Ticks between those two readings: `ticks` is off by at most half of this.
    pub width: u64,
}

impl ClockPair<Instant> {
    /// Ticks and `CLOCK_MONOTONIC`, the best of five readings.
    pub fn monotonic(clock: &impl Clock) -> Self {
        Self::best_of(READINGS, clock, Instant::now)
    }
}

impl ClockPair<Duration> {
    /// Ticks and the time since 1970 ([`since_1970`]), the best of five readings.
    pub fn wall(clock: &impl Clock) -> Self {
        Self::best_of(READINGS, clock, since_1970)
    }
}

impl<T> ClockPair<T> {
    /// Reads both clocks `readings` times (at least once) and keeps the pair with the smallest `width`, since an interrupt
    /// may fall between two readings. `read` reads the other clock.
    pub fn best_of(readings: usize, clock: &impl Clock, mut read: impl FnMut() -> T) -> Self {
        let mut read = || {
            let before = clock.now();
            let time = read();
            let width = clock.now().saturating_sub(before);
            Self { ticks: before + width / 2, time, width }
        };
        let first = read();
        (1..readings).fold(first, |best, _| {
            let next = read();
            if next.width < best.width {
                next
            } else {
                best
            }
        })
    }
}

/// The time since 1970-01-01 00:00 UTC by the system's clock; zero if that clock is set to an earlier time.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads of the other clock that take these ticks, one after another.
    fn pair(readings: usize, took: &[u64]) -> (ClockPair<usize>, usize) {
        let clock = FakeClock::new(1_000);
        clock.advance(100);
        let mut reads = 0;
        let pair = ClockPair::best_of(readings, &clock, || {
            clock.advance(took[reads]);
            reads += 1;
            reads
        });
        (pair, reads)
    }

    #[test]
    fn the_tightest_reading_is_kept() {
        let (pair, reads) = pair(5, &[30, 9, 4, 80, 5]);
        assert_eq!(pair, ClockPair { ticks: 100 + 30 + 9 + 2, time: 3, width: 4 });
        assert_eq!(reads, 5);
    }

    #[test]
    fn of_equally_tight_readings_the_first_is_kept() {
        assert_eq!(pair(3, &[8, 6, 6]).0.time, 2);
    }

    #[test]
    fn at_least_one_reading_is_made() {
        let (pair, reads) = pair(0, &[7]);
        assert_eq!((pair.ticks, pair.width, reads), (103, 7, 1));
    }

    #[test]
    fn a_clock_that_stands_still_gives_a_pair_of_no_width() {
        let clock = FakeClock::new(1_000);
        clock.advance(41);
        let before = Instant::now();
        let pair = ClockPair::monotonic(&clock);
        assert_eq!((pair.ticks, pair.width), (41, 0));
        assert!(pair.time >= before && pair.time <= Instant::now());
    }

    #[test]
    fn the_wall_clock_counts_from_1970() {
        let pair = ClockPair::wall(&FakeClock::new(1_000));
        // 2020-01-01, before this was written.
        assert!(pair.time > Duration::from_secs(1_577_836_800), "{pair:?}");
        assert!(pair.time <= since_1970());
    }
}
