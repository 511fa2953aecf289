//! Polling gaps: how long a core was away from its loop.

/// The gaps between the polls of one loop. Ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GapMeter {
    start: u64,
    last: u64,
    threshold: u64,
    /// The least gap that changes anything: the poll is one comparison while gaps are small.
    notable: u64,
    gaps: Gaps,
    log: Log,
    /// Gaps below this one are counted and not remembered.
    logged_from: u64,
}

/// One gap of at least the threshold. Ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Absence {
    /// The last poll before it.
    pub from: u64,
    /// The first poll after it.
    pub to: u64,
}

/// The gaps of at least the threshold, in order, in memory that was allocated before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Log {
    all: Box<[Absence]>,
    used: usize,
}

impl Log {
    fn add(&mut self, gap: Absence) {
        if let Some(free) = self.all.get_mut(self.used) {
            *free = gap;
            self.used += 1;
        } else if let Some(last) = self.all.last_mut() {
            // A full log never claims that the loop was there when it was not.
            last.to = gap.to;
        }
    }
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
        Self { start: 0, last: u64::MAX, threshold, notable: 1, gaps, log: Log::default(), logged_from: 0 }
    }

    /// Also remembers when each gap of at least the threshold was: so many of them. When there are more, the last
    /// one remembered lasts to the end of them all.
    #[must_use]
    pub fn with_log(mut self, most: usize) -> Self {
        self.log = Log { all: vec![Absence::default(); most].into_boxed_slice(), used: 0 };
        self
    }

    /// Remembers only gaps of at least so many ticks, where those of the threshold are many and say nothing one by one: a log
    /// that is full of them has no room for what matters.
    #[must_use]
    pub fn logging_from(mut self, ticks: u64) -> Self {
        self.logged_from = ticks;
        self
    }

    /// Forgets everything; the first gap is measured from here.
    pub fn start(&mut self, now: u64) {
        let Log { all, .. } = std::mem::take(&mut self.log);
        let log = Log { all, used: 0 };
        *self = Self { start: now, last: now, log, logged_from: self.logged_from, ..Self::new(self.threshold) };
    }

    /// The same, with another threshold.
    pub fn start_with(&mut self, threshold: u64, now: u64) {
        self.threshold = threshold.max(1);
        self.start(now);
    }

    /// The gaps remembered, in order.
    pub fn absences(&self) -> &[Absence] {
        self.log.all.get(..self.log.used).unwrap_or_default()
    }

    /// To be called once a loop with the time.
    #[inline]
    pub fn poll(&mut self, now: u64) {
        self.poll_but(now, || 0);
    }

    /// The same of a loop whose own work may last: a gap shorter than `work` says is none. It is asked only about a gap that
    /// would change anything.
    #[inline]
    pub fn poll_but(&mut self, now: u64, work: impl FnOnce() -> u64) {
        let gap = now.saturating_sub(self.last);
        if gap >= self.notable && gap >= work() {
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
            if gap >= self.logged_from {
                self.log.add(Absence { from: self.last, to: self.last + gap });
            }
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
    fn the_work_of_a_loop_is_no_gap() {
        let mut meter = GapMeter::new(100);
        meter.start(0);
        for (now, work) in [(150, 200), (350, 200), (549, 200), (560, u64::MAX)] {
            meter.poll_but(now, || work);
        }
        let gaps = meter.gaps();
        assert_eq!((gaps.count, gaps.total, gaps.largest), (1, 200, 200));
    }

    #[test]
    fn a_log_of_long_gaps_is_not_filled_by_short_ones() {
        let mut meter = GapMeter::new(100).with_log(2).logging_from(1000);
        meter.start(0);
        (1..=50).for_each(|n| meter.poll(n * 200));
        meter.poll(11_000);
        meter.poll(11_999);
        assert_eq!((meter.gaps().count, meter.gaps().total), (52, 11_999));
        assert_eq!(meter.absences(), [Absence { from: 10_000, to: 11_000 }]);
        meter.start(20_000);
        meter.poll(20_200);
        assert!(meter.absences().is_empty(), "it is the same after another start");
    }

    #[test]
    fn gaps_are_remembered_and_a_full_log_loses_none() {
        let mut meter = GapMeter::new(100).with_log(2);
        let absences = |meter: &GapMeter| meter.absences().iter().map(|a| (a.from, a.to)).collect::<Vec<_>>();
        meter.start(1000);
        for now in [1010, 1110, 1200] {
            meter.poll(now);
        }
        assert_eq!(absences(&meter), [(1010, 1110)]);
        for now in [1300, 1310, 1500] {
            meter.poll(now);
        }
        assert_eq!(absences(&meter), [(1010, 1110), (1200, 1500)]);
        assert_eq!((meter.gaps().count, meter.gaps().total), (3, 390));
        meter.start_with(50, 2000);
        for now in [2010, 2060] {
            meter.poll(now);
        }
        assert_eq!(absences(&meter), [(2010, 2060)]);
        assert_eq!(GapMeter::new(1).absences(), []);
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
