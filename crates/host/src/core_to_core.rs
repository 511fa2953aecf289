//! Core-to-core latency.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

/// Times the way of a cache line between two cores.
///
/// One core calls [`CoreToCoreProbe::ping`], the other [`CoreToCoreProbe::pong`]. The host can move the cores of a virtual
/// machine without notice, and every rate over two cores follows this latency: 40 to 80 ns where the cores share a cache,
/// about 300 ns where they do not. Both ends give up after their time limit.
#[derive(Debug, Default)]
pub struct CoreToCoreProbe {
    line: Line<AtomicU32>,
}

/// Alone on its cache lines (two, since neighbours are fetched in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

const ROUNDS: u32 = 400;
/// Trips timed as one sample; the median over samples forgets an interrupt.
const SAMPLE: u32 = 20;
const LOST: u32 = u32::MAX;

impl CoreToCoreProbe {
    /// A probe for one measurement.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes the cache line, and times each answer. Nanoseconds one way (the median of samples of 20 round trips), or `None` when
    /// the other side did not answer within `limit`.
    pub fn ping(&self, limit: Duration) -> Option<f64> {
        let deadline = Instant::now() + limit;
        let mut samples = [0u64; (ROUNDS / SAMPLE) as usize];
        // The first exchange waits for the other core to arrive and is not timed.
        self.exchange(0, deadline)?;
        for (s, slot) in samples.iter_mut().enumerate() {
            let start = Instant::now();
            for i in 0..SAMPLE {
                self.exchange(1 + s as u32 * SAMPLE + i, deadline)?;
            }
            *slot = u64::try_from(start.elapsed().as_nanos()).ok()?;
        }
        samples.sort_unstable();
        Some(samples[samples.len() / 2] as f64 / f64::from(SAMPLE) / 2.0)
    }

    fn exchange(&self, round: u32, deadline: Instant) -> Option<()> {
        self.line.0.store(2 * round + 1, Ordering::Release);
        self.wait_for(2 * round + 2, deadline)
    }

    /// Answers every write until the probe ends or `limit` has passed.
    pub fn pong(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        for round in 0..=ROUNDS {
            if self.wait_for(2 * round + 1, deadline).is_none() {
                return;
            }
            self.line.0.store(2 * round + 2, Ordering::Release);
        }
    }

    fn wait_for(&self, want: u32, deadline: Instant) -> Option<()> {
        let mut spins = 0u32;
        loop {
            let seen = self.line.0.load(Ordering::Acquire);
            if seen == want {
                return Some(());
            }
            spins += 1;
            if seen == LOST || (spins.is_multiple_of(1024) && Instant::now() > deadline) {
                self.line.0.store(LOST, Ordering::Release);
                return None;
            }
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_time_the_way_between_them() {
        let probe = CoreToCoreProbe::new();
        let ns = std::thread::scope(|s| {
            s.spawn(|| probe.pong(Duration::from_secs(10)));
            probe.ping(Duration::from_secs(10))
        });
        assert!(ns.is_some_and(|ns| ns > 1.0), "{ns:?}");
    }

    #[test]
    fn a_partner_that_never_comes_ends_the_match() {
        assert_eq!(CoreToCoreProbe::new().ping(Duration::from_millis(5)), None);
        CoreToCoreProbe::new().pong(Duration::from_millis(5));
    }
}
