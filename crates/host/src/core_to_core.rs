//! Times the way of a cache line between two cores.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

/// A cache line thrown to and fro between two cores to time the way between them.
///
/// One core calls [`PingPong::ping`], the other [`PingPong::pong`]. A virtual machine's cores are moved without a
/// word, and every two-core rate follows this latency: some 40 to 80 ns where they share a cache, 300 ns where not.
/// Both ends give up after their time limit, so a core that never comes costs a moment and no more.
#[derive(Debug, Default)]
pub struct PingPong {
    ball: Line<AtomicU32>,
}

/// Alone on its cache lines (two, since neighbours are fetched in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

const ROUNDS: u32 = 400;
/// Trips timed as one sample; the median over samples forgets an interrupt.
const SAMPLE: u32 = 20;
const LOST: u32 = u32::MAX;

impl PingPong {
    /// A court for one match.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves, and times each return. Nanoseconds one way (the median of samples of 20 round trips), or `None` when
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
        self.ball.0.store(2 * round + 1, Ordering::Release);
        self.await_ball(2 * round + 2, deadline)
    }

    /// Returns every serve until the match is over or `limit` has passed.
    pub fn pong(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        for round in 0..=ROUNDS {
            if self.await_ball(2 * round + 1, deadline).is_none() {
                return;
            }
            self.ball.0.store(2 * round + 2, Ordering::Release);
        }
    }

    fn await_ball(&self, want: u32, deadline: Instant) -> Option<()> {
        let mut spins = 0u32;
        loop {
            let seen = self.ball.0.load(Ordering::Acquire);
            if seen == want {
                return Some(());
            }
            spins += 1;
            if seen == LOST || (spins.is_multiple_of(1024) && Instant::now() > deadline) {
                self.ball.0.store(LOST, Ordering::Release);
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
        let court = PingPong::new();
        let ns = std::thread::scope(|s| {
            s.spawn(|| court.pong(Duration::from_secs(10)));
            court.ping(Duration::from_secs(10))
        });
        assert!(ns.is_some_and(|ns| ns > 1.0), "{ns:?}");
    }

    #[test]
    fn a_partner_that_never_comes_ends_the_match() {
        assert_eq!(PingPong::new().ping(Duration::from_millis(5)), None);
        PingPong::new().pong(Duration::from_millis(5));
    }
}
