//! Polling gaps: how long a core was away from its loop.

/// The gaps between the polls of one loop. Ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GapMeter {
    start: u64,
    last: u64,
    threshold: u64,
    /// The least gap that changes anything: the poll is one comparison while gaps are small.
    notable: u64,
    gaps: Gaps,
}

/// What a [`GapMeter`] found. Ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gaps {
    /// The largest gap.
    pub largest: u64,
    /// When it began, since the start.
    pub largest_at: u64,
    /// Number of gaps of at least the threshold.
    pub count: u64,
    /// Their sum.
    pub total: u64,
    /// The shortest gap counted.
    pub threshold: u64,
}

impl GapMeter {
    /// A meter that counts gaps of at least `threshold` ticks, or of one. The first poll only starts the clock.
    pub fn new(threshold: u64) -> Self {
        let threshold = threshold.max(1);
        let gaps = Gaps { threshold, ..Gaps::default() };
        Self { start: 0, last: u64::MAX, threshold, notable: 1, gaps }
    }

    /// Forgets everything; the first gap is measured from here.
    pub fn start(&mut self, now: u64) {
        *self = Self { start: now, last: now, ..Self::new(self.threshold) };
    }

    /// To be called once a loop with the time.
    #[inline]
    pub fn poll(&mut self, now: u64) {
        let gap = now.saturating_sub(self.last);
        if gap >= self.notable {
            self.note(gap);
        }
        self.last = now;
    }

    /// Moves on to `now` without counting: what happens meanwhile does not matter.
    #[inline]
    pub fn skip(&mut self, now: u64) {
        self.last = now;
    }

    #[cold]
    fn note(&mut self, gap: u64) {
        if gap > self.gaps.largest {
            self.gaps.largest = gap;
            self.gaps.largest_at = self.last.saturating_sub(self.start);
        }
        if gap >= self.threshold {
            self.gaps.count += 1;
            self.gaps.total += gap;
        }
        self.notable = self.threshold.min(self.gaps.largest + 1);
    }

    /// What was found so far.
    pub fn gaps(&self) -> Gaps {
        self.gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_gap_and_those_over_the_threshold() {
        let mut meter = GapMeter::new(100);
        meter.start(1000);
        for now in [1010, 1030, 1035, 1135, 1234, 1434, 1440] {
            meter.poll(now);
        }
        let want = Gaps { largest: 200, largest_at: 234, count: 2, total: 300, threshold: 100 };
        assert_eq!(meter.gaps(), want);
        meter.start(5000);
        meter.poll(5007);
        assert_eq!(meter.gaps(), Gaps { largest: 7, largest_at: 0, count: 0, total: 0, threshold: 100 });
    }

    #[test]
    fn a_clock_that_steps_back_is_no_gap() {
        let mut meter = GapMeter::new(10);
        meter.start(100);
        meter.poll(90);
        meter.poll(95);
        assert_eq!((meter.gaps().largest, meter.gaps().count), (5, 0));
    }
}
