//! How long a polling loop was away: the evidence that an lcore was interrupted.

/// Polling gaps of one loop, in ticks of its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GapStats {
    /// The longest gap between two polls.
    pub largest: u64,
    /// The reading at which the longest gap ended.
    pub largest_at: u64,
    /// Sum of the gaps over the threshold.
    pub total: u64,
    /// Number of gaps over the threshold.
    pub count: u64,
}

/// Measures the time between one poll and the next; one subtraction and two compares a poll.
#[derive(Debug, Clone)]
pub struct GapMeter {
    last: Option<u64>,
    threshold: u64,
    stats: GapStats,
}

impl GapMeter {
    /// A meter that sums the gaps longer than `threshold` ticks.
    pub fn new(threshold: u64) -> Self {
        Self { last: None, threshold, stats: GapStats::default() }
    }

    /// Notes a poll at `now`. The first one only starts the clock.
    #[inline]
    pub fn poll(&mut self, now: u64) {
        if let Some(last) = self.last {
            let gap = now.saturating_sub(last);
            if gap > self.stats.largest {
                self.stats.largest = gap;
                self.stats.largest_at = now;
            }
            if gap > self.threshold {
                self.stats.total += gap;
                self.stats.count += 1;
            }
        }
        self.last = Some(now);
    }

    /// Forgets all gaps and starts again at `now`, as if polled then, with a new threshold in ticks.
    pub fn reset(&mut self, now: u64, threshold: u64) {
        *self = Self { last: Some(now), threshold, stats: GapStats::default() };
    }

    /// What was seen since the start or the last reset.
    pub fn stats(&self) -> GapStats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_over_the_threshold_are_summed_and_the_largest_kept() {
        let mut meter = GapMeter::new(100);
        for now in [1_000, 1_100, 1_201, 5_201, 5_210, 5_400] {
            meter.poll(now);
        }
        assert_eq!(meter.stats(), GapStats { largest: 4_000, largest_at: 5_201, total: 101 + 4_000 + 190, count: 3 });
        meter.reset(5_500, 10);
        meter.poll(5_511);
        assert_eq!(meter.stats(), GapStats { largest: 11, largest_at: 5_511, total: 11, count: 1 });
    }
}
