//! Log-linear histograms that record every frame in a handful of instructions.

const SUB_BITS: u32 = 6;
/// Values from here on share the last bin: 2^48 ticks are more than a day.
const LIMIT: u64 = (1 << 48) - 1;
const BINS: usize = 1 + (48 << SUB_BITS);

/// Counts of values in bins whose width is at most 1/64 of their lowest value. Memory is fixed: 24 KiB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHistogram {
    bins: Box<[u64; BINS]>,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for LogHistogram {
    fn default() -> Self {
        Self { bins: Box::new([0; BINS]), sum: 0, min: u64::MAX, max: 0 }
    }
}

/// A value's bin. A double's exponent and leading mantissa bits are the bin's number already.
#[inline(always)]
fn bin(value: u64) -> usize {
    let bits = (value.min(LIMIT) as i64 as f64).to_bits() >> (52 - SUB_BITS);
    bits.saturating_sub((1023 << SUB_BITS) - 1) as usize
}

/// The lowest value of a bin: bin 0 holds 0, and bin 1 begins at 1.
fn lowest(bin: usize) -> u64 {
    let Some(index) = bin.checked_sub(1) else { return 0 };
    let (exponent, mantissa) = (index >> SUB_BITS, index & ((1 << SUB_BITS) - 1));
    let scaled = ((1 << SUB_BITS) + mantissa as u128) << exponent;
    scaled.div_ceil(1 << SUB_BITS) as u64
}

/// The highest value of a bin.
fn highest(bin: usize) -> u64 {
    if bin + 1 == BINS {
        u64::MAX
    } else {
        lowest(bin + 1) - 1
    }
}

/// The smallest rank that leaves this share, in thousandths of a percent, at or below.
fn rank(count: u64, milli_percent: u64) -> u64 {
    (u128::from(count) * u128::from(milli_percent)).div_ceil(100_000).max(1) as u64
}

impl LogHistogram {
    /// Counts one value.
    #[inline(always)]
    pub fn record(&mut self, value: u64) {
        if let Some(count) = self.bins.get_mut(bin(value)) {
            *count += 1;
        }
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds another histogram's counts.
    pub fn merge(&mut self, other: &Self) {
        for (to, from) in self.bins.iter_mut().zip(other.bins.iter()) {
            *to += from;
        }
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The bins between the smallest and the largest value.
    fn used(&self) -> std::ops::Range<usize> {
        self.min().map_or(0..0, |min| bin(min)..bin(self.max) + 1)
    }

    /// Adds its counts to another histogram's and is empty then. Takes no longer than its values are apart.
    pub fn drain_into(&mut self, other: &mut Self) {
        let used = self.used();
        if let (Some(from), Some(to)) = (self.bins.get_mut(used.clone()), other.bins.get_mut(used)) {
            for (from, to) in from.iter_mut().zip(to) {
                *to += std::mem::take(from);
            }
        }
        other.sum += self.sum;
        other.min = other.min.min(self.min);
        other.max = other.max.max(self.max);
        (self.sum, self.min, self.max) = (0, u64::MAX, 0);
    }

    /// The value at a percentile, given in thousandths of a percent, by nearest rank: the top of its bin, never outside
    /// what was seen. 0 when empty.
    pub fn percentile(&self, milli_percent: u64) -> u64 {
        self.at_rank(rank(self.count(), milli_percent))
    }

    /// The value at this rank, from 1.
    fn at_rank(&self, rank: u64) -> u64 {
        let (used, mut seen) = (self.used(), 0);
        for (i, count) in used.clone().zip(self.bins.get(used).unwrap_or_default()) {
            seen += count;
            if seen >= rank {
                return highest(i).min(self.max);
            }
        }
        self.max
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.bins.get(self.used()).unwrap_or_default().iter().sum()
    }

    /// Sum of the values, exact.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Smallest value, exact; `None` when empty.
    pub fn min(&self) -> Option<u64> {
        (self.min <= self.max).then_some(self.min)
    }

    /// Largest value, exact; `None` when empty.
    pub fn max(&self) -> Option<u64> {
        (self.min <= self.max).then_some(self.max)
    }

    /// Mean, from the exact sum; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        self.min().map(|_| self.sum as f64 / self.count() as f64)
    }

    /// The bins that hold anything, rising: lowest value, highest value, count.
    pub fn bins(&self) -> impl DoubleEndedIterator<Item = (u64, u64, u64)> + '_ {
        self.bins.iter().enumerate().filter(|(_, n)| **n > 0).map(move |(i, n)| (lowest(i), highest(i), *n))
    }
}

/// Signed values in two halves, each a [`LogHistogram`] of magnitudes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignedHistogram {
    /// Zero and above, then below zero.
    halves: [LogHistogram; 2],
}

impl SignedHistogram {
    /// Counts one value.
    #[inline(always)]
    pub fn record(&mut self, value: i64) {
        self.halves[usize::from(value < 0)].record(value.unsigned_abs());
    }

    /// Adds another histogram's counts.
    pub fn merge(&mut self, other: &Self) {
        self.halves.iter_mut().zip(&other.halves).for_each(|(to, from)| to.merge(from));
    }

    /// Adds its counts to another histogram's and is empty then.
    pub fn drain_into(&mut self, other: &mut Self) {
        self.halves.iter_mut().zip(&mut other.halves).for_each(|(from, to)| from.drain_into(to));
    }

    /// The value at a percentile, as [`LogHistogram::percentile`].
    pub fn percentile(&self, milli_percent: u64) -> i64 {
        let below = self.negative().count();
        let signed = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
        // Rank r from below is rank below + 1 - r among the magnitudes.
        match rank(self.count(), milli_percent) {
            r if r <= below => -signed(self.negative().at_rank(below + 1 - r)),
            r => signed(self.positive().at_rank(r - below)),
        }
    }

    /// The values of zero and above.
    pub fn positive(&self) -> &LogHistogram {
        &self.halves[0]
    }

    /// The magnitudes of the values below zero.
    pub fn negative(&self) -> &LogHistogram {
        &self.halves[1]
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.halves.iter().map(LogHistogram::count).sum()
    }

    /// Smallest value, exact; `None` when empty.
    pub fn min(&self) -> Option<i64> {
        let negative = self.negative().max().map(|m| 0i64.saturating_sub_unsigned(m));
        negative.or(self.positive().min().map(|m| m as i64))
    }

    /// Largest value, exact; `None` when empty.
    pub fn max(&self) -> Option<i64> {
        let negative = self.negative().min().map(|m| 0i64.saturating_sub_unsigned(m));
        self.positive().max().map(|m| m as i64).or(negative)
    }

    /// Mean of the absolute values; `None` when empty.
    pub fn mean_abs(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| (self.positive().sum() + self.negative().sum()) as f64 / count as f64)
    }

    /// The bins that hold anything, rising: lowest value, highest value, count.
    pub fn bins(&self) -> impl Iterator<Item = (i64, i64, u64)> + '_ {
        let signed = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
        let below = self.negative().bins().rev().map(move |(low, high, n)| (-signed(high), -signed(low), n));
        below.chain(self.positive().bins().map(move |(low, high, n)| (signed(low), signed(high), n)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bins_meet_and_are_narrow() {
        for i in 1..BINS - 1 {
            let (low, next) = (lowest(i), lowest(i + 1));
            assert!(low <= next);
            assert!(next - low <= low.div_ceil(64), "{low} {next}");
            if low < next {
                assert_eq!((bin(low), bin(next - 1)), (i, i));
            }
        }
    }

    #[test]
    fn an_empty_histogram_has_no_figures() {
        let h = SignedHistogram::default();
        assert_eq!((h.min(), h.max(), h.mean_abs(), h.bins().count()), (None, None, None, 0));
        assert_eq!(h.positive().mean(), None);
    }

    proptest! {
        #[test]
        fn every_value_is_counted_in_its_bin(values in proptest::collection::vec(prop_oneof![0u64..200, 0u64..1 << 47, any::<u64>()], 1..100)) {
            let (mut whole, mut halves) = (LogHistogram::default(), [LogHistogram::default(), LogHistogram::default()]);
            for (i, v) in values.iter().enumerate() {
                whole.record(*v);
                halves[i % 2].record(*v);
            }
            let [mut merged, other] = halves;
            merged.merge(&other);
            prop_assert_eq!(&merged, &whole);
            prop_assert_eq!(whole.count(), values.len() as u64);
            prop_assert_eq!((whole.min(), whole.max()), (values.iter().min().copied(), values.iter().max().copied()));
            prop_assert_eq!(whole.sum(), values.iter().map(|v| u128::from(*v)).sum::<u128>());
            for (low, high, n) in whole.bins() {
                prop_assert_eq!(n, values.iter().filter(|v| (low..=high).contains(*v)).count() as u64);
            }
            let mut drained = LogHistogram::default();
            merged.drain_into(&mut drained);
            prop_assert_eq!((drained, merged), (whole, LogHistogram::default()));
        }

        #[test]
        fn percentiles_are_the_sorted_values_within_a_bin(
            mut values in proptest::collection::vec(-(1i64 << 40)..1 << 40, 1..300),
            milli_percent in 0u64..=100_000,
        ) {
            let (mut signed, mut plain) = (SignedHistogram::default(), LogHistogram::default());
            values.iter().for_each(|v| {
                signed.record(*v);
                plain.record(v.unsigned_abs());
            });
            let near = |got: u64, want: u64| got >= want && got - want <= want / 64;
            values.sort_unstable();
            let at = |values: &[i64]| values[((values.len() as u64 * milli_percent).div_ceil(100_000).max(1) - 1) as usize];
            let (got, want) = (signed.percentile(milli_percent), at(&values));
            prop_assert!(got.signum() == want.signum() || want == 0, "{got} {want}");
            prop_assert!(near(got.unsigned_abs(), want.unsigned_abs()), "{got} {want}");
            values.iter_mut().for_each(|v| *v = v.abs());
            values.sort_unstable();
            let (got, want) = (plain.percentile(milli_percent), at(&values) as u64);
            prop_assert!(near(got, want) && got <= plain.max().unwrap(), "{got} {want}");
        }

        #[test]
        fn signed_values_keep_their_order(values in proptest::collection::vec(-(1i64 << 40)..1 << 40, 1..100)) {
            let mut h = SignedHistogram::default();
            values.iter().for_each(|v| h.record(*v));
            prop_assert_eq!((h.min(), h.max()), (values.iter().min().copied(), values.iter().max().copied()));
            let bins: Vec<_> = h.bins().collect();
            prop_assert!(bins.windows(2).all(|w| w[0].1 < w[1].0));
            for (low, high, n) in bins {
                prop_assert_eq!(n, values.iter().filter(|v| (low..=high).contains(*v)).count() as u64);
            }
        }
    }
}
