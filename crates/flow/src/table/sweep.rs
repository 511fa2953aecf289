//! How much of the table to look at: all of it in a round of fixed length, in steps as large as the time since the last.

/// Steps of a round.
#[derive(Debug)]
pub(crate) struct Sweep {
    /// Buckets in all.
    buckets: u32,
    /// The next one.
    at: u32,
    /// Ticks of a round.
    round: u64,
    /// Buckets that are due each tick, times 2^64.
    rate: u128,
    /// Buckets that are due, times 2^64.
    credit: u128,
    seen: Option<u64>,
}

impl Sweep {
    /// Rounds through `buckets` buckets. Each round takes `round` ticks.
    pub(crate) fn new(buckets: u32, round: u64) -> Self {
        let round = round.max(1);
        let rate = (u128::from(buckets) << 64).div_ceil(u128::from(round));
        Self { buckets, at: 0, round, rate, credit: 0, seen: None }
    }

    /// How many buckets are due now; at most one round.
    #[inline]
    pub(crate) fn due(&mut self, now: u64) -> u32 {
        let seen = self.seen.replace(now).unwrap_or(now);
        let passed = now.saturating_sub(seen).min(self.round);
        self.credit = (self.credit + self.rate * u128::from(passed)).min(u128::from(self.buckets) << 64);
        (self.credit >> 64) as u32
    }

    /// Goes on by one bucket.
    #[inline]
    pub(crate) fn step(&mut self) -> u32 {
        let at = self.at;
        self.at = if at + 1 < self.buckets { at + 1 } else { 0 };
        self.credit = self.credit.saturating_sub(1 << 64);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_takes_its_time_however_often_it_goes_on() {
        for every in [1, 7, 100, 999] {
            let mut sweep = Sweep::new(640, 1000);
            assert_eq!(sweep.due(5), 0);
            let mut looked = 0;
            for now in (5..=10_005).step_by(every) {
                for _ in 0..sweep.due(now) {
                    assert_eq!(sweep.step(), looked % 640);
                    looked += 1;
                }
            }
            assert!((6300..=6400).contains(&looked), "{looked} buckets in ten rounds, every {every} ticks");
        }
    }

    #[test]
    fn what_was_put_off_is_at_most_a_round() {
        let mut sweep = Sweep::new(64, 1000);
        sweep.due(0);
        assert_eq!(sweep.due(1_000_000), 64);
        sweep.step();
        assert_eq!(sweep.due(1_000_000), 63);
        assert_eq!(sweep.due(0), 63);
        assert_eq!(Sweep::new(0, 0).due(9), 0);
    }
}
