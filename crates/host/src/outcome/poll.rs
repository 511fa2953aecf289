//! A thread that does nothing but read the clock, and how long it was away.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::clock::{self, CoreClock};

/// Shorter gaps are the loop's own: two readings of the clock.
const GAP: Duration = Duration::from_micros(2);
/// Gaps are counted from each of these on.
const FROM: [Duration; 4] =
    [Duration::from_micros(10), Duration::from_micros(50), Duration::from_micros(100), Duration::from_millis(1)];
/// How often the frequency is looked at.
const FREQUENCY: Duration = Duration::from_millis(100);
/// Readings of the clock between two looks whether to end.
const LOOK: u32 = 4096;

/// When a thread that polls was away.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Gaps {
    /// How long it polled, seconds.
    pub seconds: f64,
    /// Gaps of 2 us and more.
    pub count: u64,
    /// Those of 10, 50, 100 and 1000 us and more.
    pub from_10_50_100_1000_us: [u64; 4],
    /// The longest, nanoseconds.
    pub longest_ns: u64,
    /// All of them, seconds.
    pub away_seconds: f64,
}

impl Gaps {
    fn add(&mut self, gap: Duration) {
        self.count += 1;
        for (count, from) in self.from_10_50_100_1000_us.iter_mut().zip(FROM) {
            *count += u64::from(gap >= from);
        }
        self.longest_ns = self.longest_ns.max(u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX));
        self.away_seconds += gap.as_secs_f64();
    }
}

/// What a thread that polled has seen.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Polled {
    pub gaps: Gaps,
    pub clock: Option<CoreClock>,
}

/// Polls until then.
pub(super) fn until(end: Instant, go_on: &(dyn Fn() -> bool + Sync)) -> Polled {
    let mut gaps = Gaps::default();
    let mut samples = Vec::new();
    let begun = Instant::now();
    let (mut last, mut next_sample, mut reads) = (begun, begun, 0u32);
    loop {
        let now = Instant::now();
        let gap = now - last;
        if gap >= GAP {
            gaps.add(gap);
        }
        last = now;
        if now >= end {
            break;
        }
        reads = reads.wrapping_add(1);
        if reads.is_multiple_of(LOOK) && !go_on() {
            break;
        }
        if now >= next_sample {
            samples.push(clock::sample());
            next_sample = now + FREQUENCY;
            // The time of the sample does not count as a gap.
            last = Instant::now();
        }
    }
    gaps.seconds = begun.elapsed().as_secs_f64();
    gaps.longest_ns = gaps.longest_ns.max(1);
    Polled { gaps, clock: CoreClock::of(samples) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_counted_by_length() {
        let mut gaps = Gaps::default();
        [3, 12, 60, 100, 2_000].map(Duration::from_micros).into_iter().for_each(|gap| gaps.add(gap));
        assert_eq!((gaps.count, gaps.from_10_50_100_1000_us), (5, [4, 3, 2, 1]));
        assert_eq!(gaps.longest_ns, 2_000_000);
        assert!((gaps.away_seconds - 2.175e-3).abs() < 1e-9);
    }

    #[test]
    fn a_thread_that_sleeps_is_away() {
        // It looks whether to go on after some thousand readings: away until then.
        let asked = std::sync::atomic::AtomicU32::new(0);
        let go_on = || {
            std::thread::sleep(Duration::from_millis(3));
            asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 3
        };
        let polled = until(Instant::now() + Duration::from_secs(20), &go_on);
        assert!(polled.gaps.from_10_50_100_1000_us[3] >= 3, "{polled:?}");
        assert!(polled.gaps.seconds < 15.0 && polled.clock.is_some());
    }
}
