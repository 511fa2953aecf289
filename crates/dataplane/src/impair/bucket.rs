//! The token bucket of a policer.

use units::{FCS_BYTES, WIRE_OVERHEAD_BYTES};

use super::spec::{Limit, Policer};

/// Largest standard frame, FCS included: what a burst depth in frames means to a bit rate.
const FULL_FRAME: u32 = 1518;

/// A token bucket in frames or bits. Starts full; refilled once a burst from the clock.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    level: f64,
    depth: f64,
    /// Tokens a tick.
    fill: f64,
    /// Tokens a frame costs whatever its length, and tokens a byte of it costs.
    per_frame: f64,
    per_byte: f64,
    /// How far the level may go below zero: what waits.
    debt: f64,
    last: Option<u64>,
}

impl Bucket {
    /// A bucket for a clock of `hz` ticks a second.
    pub(crate) fn new(policer: &Policer, hz: u64) -> Self {
        let (rate, per_frame, per_byte) = match policer.limit {
            Limit::Frames(fps) => (fps, 1.0, 0.0),
            Limit::L2(bps) => (bps, f64::from(FCS_BYTES) * 8.0, 8.0),
            Limit::L1(bps) => (bps, f64::from(FCS_BYTES + WIRE_OVERHEAD_BYTES) * 8.0, 8.0),
        };
        let frame = per_frame + per_byte * f64::from(FULL_FRAME - FCS_BYTES);
        let depth = policer.burst_frames.map_or((64.0 * frame).max(rate * 500e-6), |n| f64::from(n) * frame);
        let debt = rate * policer.queue.seconds();
        Self { level: depth, depth, fill: rate / hz.max(1) as f64, per_frame, per_byte, debt, last: None }
    }

    #[inline]
    pub(crate) fn refill(&mut self, now: u64) {
        let ticks = now.saturating_sub(self.last.unwrap_or(now));
        self.level = (self.level + ticks as f64 * self.fill).min(self.depth);
        self.last = Some(now.max(self.last.unwrap_or(now)));
    }

    /// Takes the tokens of a frame of `len` bytes without FCS. `false`, and nothing taken, when there are too few even with
    /// those that come while it waits.
    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> bool {
        let cost = self.per_frame + self.per_byte * len as f64;
        let pays = cost <= self.level + self.debt;
        if pays {
            self.level -= cost;
        }
        pays
    }

    /// Ticks that the frame taken last waits for its tokens.
    #[inline]
    pub(crate) fn wait(&self) -> u64 {
        (-self.level / self.fill).max(0.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use super::*;

    fn passed(limit: Limit, burst: Option<u32>, len: usize) -> usize {
        // A second of a 1 GHz clock; a thousand times a millisecond all tokens are taken.
        let mut bucket = Bucket::new(&Policer { limit, burst_frames: burst, queue: Nanos(0) }, 1_000_000_000);
        bucket.refill(0);
        while bucket.take(len) {}
        let mut frames = 0;
        for us in 1..=1_000_000 {
            bucket.refill(us * 1_000);
            while bucket.take(len) {
                frames += 1;
            }
        }
        frames
    }

    #[test]
    fn a_second_holds_the_rate_in_each_unit() {
        for (limit, len, want) in [
            (Limit::Frames(1_234_567.0), 60, 1_234_567),
            (Limit::L2(512e6), 60, 1_000_000),
            (Limit::L1(672e6), 60, 1_000_000),
            (Limit::L1(1e9), 1514, 81_274),
        ] {
            let got = passed(limit, None, len);
            assert!(got.abs_diff(want) <= 1, "{limit:?} {len}: {got} not {want}");
        }
    }

    #[test]
    fn no_more_than_the_depth_is_saved_up() {
        for (burst, want) in [(Some(10), 10), (None, 500)] {
            let mut bucket =
                Bucket::new(&Policer { limit: Limit::Frames(1e6), burst_frames: burst, queue: Nanos(0) }, 1_000);
            bucket.refill(0);
            bucket.refill(3_600_000);
            assert_eq!((0..10_000).filter(|_| bucket.take(60)).count(), want);
        }
    }

    #[test]
    fn a_frame_over_the_rate_waits_for_its_turn() {
        let policer = Policer { limit: Limit::Frames(1e6), burst_frames: Some(2), queue: Nanos(3_000) };
        let mut bucket = Bucket::new(&policer, 1_000_000_000);
        bucket.refill(0);
        let waits: Vec<u64> = std::iter::from_fn(|| bucket.take(60).then(|| bucket.wait())).collect();
        assert_eq!(waits, [0, 0, 1_000, 2_000, 3_000]);
        bucket.refill(1_500);
        assert!(bucket.take(60));
        assert_eq!(bucket.wait(), 2_500);
        assert!(!bucket.take(60));
    }

    #[test]
    fn a_clock_that_steps_back_gives_nothing() {
        let mut bucket =
            Bucket::new(&Policer { limit: Limit::Frames(1e3), burst_frames: Some(1), queue: Nanos(0) }, 1_000);
        bucket.refill(100);
        assert!(bucket.take(60));
        bucket.refill(50);
        bucket.refill(100);
        assert!(!bucket.take(60));
    }
}
