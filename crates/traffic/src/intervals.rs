//! Delays interval by interval of a trial (RFC 5481 §4.2: the minimum is that of the same interval).

use crate::histogram::{LogHistogram, SignedHistogram};

/// Delays and their variation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Delays {
    pub(crate) delays: LogHistogram,
    pub(crate) ipdv: SignedHistogram,
}

/// What came within one interval. Frames, and delays in ticks: percentiles by nearest rank, each the top of its bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interval {
    /// Frames received.
    pub received: u64,
    /// Frames that those received showed to be missing and that did not come later.
    pub missing: u64,
    /// Smallest delay.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p99_9: u64,
    /// Largest delay.
    pub max: u64,
    /// Pairs of frames whose variation is known.
    pub pairs: u64,
    /// Variation: smallest, 5th percentile, median, 95th percentile, largest.
    pub ipdv: [i64; 5],
    /// Sum of its absolute values.
    pub ipdv_abs: u128,
}

/// The intervals of a trial, all of them allocated before it.
#[derive(Debug, Clone)]
pub(crate) struct Intervals {
    width: u64,
    start: u64,
    at: usize,
    all: Box<[Interval]>,
    /// Of the intervals that are over.
    pub(crate) whole: Delays,
}

impl Intervals {
    /// `count` intervals of `width` ticks each. The last interval lasts until the end.
    pub(crate) fn new(width: u64, count: usize) -> Self {
        let all = vec![Interval::default(); count.max(1)].into_boxed_slice();
        Self { width: width.max(1), start: 0, at: 0, all, whole: Delays::default() }
    }

    /// Begins the first; when it ends.
    pub(crate) fn begin(&mut self, start: u64) -> u64 {
        (self.start, self.at) = (start, 0);
        self.end()
    }

    fn end(&self) -> u64 {
        if self.at + 1 >= self.all.len() {
            u64::MAX
        } else {
            self.start.saturating_add(self.width.saturating_mul(self.at as u64 + 1))
        }
    }

    fn index(&self, now: u64) -> usize {
        (now.saturating_sub(self.start) / self.width).min(self.all.len() as u64 - 1) as usize
    }

    /// Puts what came in the interval away and begins the one of `now`; when that ends.
    #[cold]
    #[inline(never)]
    pub(crate) fn roll(&mut self, now: u64, current: &mut Delays) -> u64 {
        if let Some(to) = self.all.get_mut(self.at) {
            to.sum_up(current);
        }
        current.delays.drain_into(&mut self.whole.delays);
        current.ipdv.drain_into(&mut self.whole.ipdv);
        self.at = self.index(now);
        self.end()
    }

    /// Frames found missing now.
    pub(crate) fn missed(&mut self, frames: u64) {
        if let Some(now) = self.all.get_mut(self.at) {
            now.missing += frames;
        }
    }

    /// A frame that was found missing at this tick has come.
    pub(crate) fn came(&mut self, behind: Option<u64>) {
        let at = behind.map_or(self.at, |behind| self.index(behind));
        if let Some(then) = self.all.get_mut(at) {
            then.missing = then.missing.saturating_sub(1);
        }
    }

    /// All of them, with what came since the last was put away.
    pub(crate) fn all(&self, current: &Delays) -> Vec<Interval> {
        let mut all = self.all.to_vec();
        if let Some(now) = all.get_mut(self.at) {
            now.sum_up(current);
        }
        all
    }
}

impl Interval {
    fn sum_up(&mut self, of: &Delays) {
        let (delays, ipdv) = (&of.delays, &of.ipdv);
        let (Some(min), Some(max)) = (delays.min(), delays.max()) else { return };
        self.received = delays.count();
        (self.min, self.max) = (min, max);
        [self.p50, self.p99, self.p99_9] = [50_000, 99_000, 99_900].map(|p| delays.percentile(p));
        if let (Some(min), Some(max)) = (ipdv.min(), ipdv.max()) {
            self.pairs = ipdv.count();
            let [p5, p50, p95] = [5_000, 50_000, 95_000].map(|p| ipdv.percentile(p));
            self.ipdv = [min, p5, p50, p95, max];
            self.ipdv_abs = ipdv.positive().sum() + ipdv.negative().sum();
        }
    }
}
