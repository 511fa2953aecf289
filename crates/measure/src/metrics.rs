//! From raw delay bins to the figures of a result: percentiles by nearest rank, PDV and IPDV (RFC 5481).

use units::Nanos;

use crate::trial::{IpdvSummary, LatencySummary};

/// Most bins a result keeps of a distribution.
pub const MAX_HISTOGRAM_BINS: usize = 200;

/// One bin of a histogram: its lowest and highest value, both within it, in ticks, and how often they were seen.
pub type Bin = (u64, u64, u64);

/// A distribution of values in ticks: bins in rising order, and what is known exactly beside them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Distribution {
    /// Bins in rising order; empty ones may be left out.
    pub bins: Vec<Bin>,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
    /// Sum of all values.
    pub sum: u128,
}

impl Distribution {
    /// Number of values.
    pub fn count(&self) -> u64 {
        self.bins.iter().map(|b| b.2).sum()
    }

    /// The value at a nearest rank (from 1): the top of the bin that holds it, never outside `min..=max`.
    fn at_rank(&self, rank: u64) -> u64 {
        let mut seen = 0;
        for &(_, high, count) in &self.bins {
            seen += count;
            if seen >= rank {
                return high.min(self.max).max(self.min);
            }
        }
        self.max
    }
}

/// Nearest rank of a percentile given in thousandths of a percent: the smallest rank that leaves that share at or below.
fn rank(count: u64, milli_percent: u64) -> u64 {
    let rank = (u128::from(count) * u128::from(milli_percent)).div_ceil(100_000);
    u64::try_from(rank).unwrap_or(u64::MAX).max(1)
}

/// One-way delay of a trial from its delays in ticks of a clock of `hz`. `None` when there are none.
///
/// PDV p99.9 is D(p99.9) - D_min over the same interval (RFC 5481 §4.2).
pub fn latency(delays: &Distribution, hz: u64, ipdv: Option<IpdvSummary>) -> Option<LatencySummary> {
    let frames = delays.count();
    if frames == 0 {
        return None;
    }
    let ns = |ticks: u64| Nanos::from_ticks(ticks, hz).0;
    let percentile = |p: u64| ns(delays.at_rank(rank(frames, p)));
    let min_ns = ns(delays.min);
    let p99_9_ns = percentile(99_900);
    Some(LatencySummary {
        frames,
        min_ns,
        avg_ns: delays.sum as f64 / frames as f64 * 1e9 / hz.max(1) as f64,
        max_ns: ns(delays.max),
        p50_ns: percentile(50_000),
        p90_ns: percentile(90_000),
        p99_ns: percentile(99_000),
        p99_9_ns,
        p99_99_ns: percentile(99_990),
        p99_999_ns: percentile(99_999),
        pdv_p99_9_ns: p99_9_ns.saturating_sub(min_ns),
        ipdv,
        histogram: condense(delays, ns),
    })
}

/// IPDV of a trial (RFC 5481 §4.1) from two halves in ticks: the sizes of the negative differences, and those that are
/// zero or positive. `None` when there are no pairs.
pub fn ipdv(negative: &Distribution, positive: &Distribution, hz: u64) -> Option<IpdvSummary> {
    let (below, above) = (negative.count(), positive.count());
    let pairs = below + above;
    if pairs == 0 {
        return None;
    }
    let ns = |ticks: u64| i64::try_from(Nanos::from_ticks(ticks, hz).0).unwrap_or(i64::MAX);
    // The smallest value is the largest of the negative sizes: rank r from below is rank below + 1 - r among them.
    let percentile = |p: u64| match rank(pairs, p) {
        r if r <= below => -ns(negative.at_rank(below + 1 - r)),
        r => ns(positive.at_rank(r - below)),
    };
    Some(IpdvSummary {
        pairs,
        min_ns: if below > 0 { -ns(negative.max) } else { ns(positive.min) },
        p5_ns: percentile(5_000),
        p50_ns: percentile(50_000),
        p95_ns: percentile(95_000),
        max_ns: if above > 0 { ns(positive.max) } else { -ns(negative.min) },
        mean_abs_ns: (negative.sum + positive.sum) as f64 / pairs as f64 * 1e9 / hz.max(1) as f64,
    })
}

/// At most [`MAX_HISTOGRAM_BINS`] bins `(upper edge in ns, frames)`, finer where delays are short.
fn condense(delays: &Distribution, ns: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
    let full = || delays.bins.iter().filter(|b| b.2 > 0).map(|&(_, high, count)| (ns(high.min(delays.max)), count));
    let low = full().next().map_or(1, |(edge, _)| edge.max(1)) as f64;
    let high = ns(delays.max).max(1) as f64;
    let scale = MAX_HISTOGRAM_BINS as f64 / (high / low).ln().max(f64::MIN_POSITIVE);
    let merge = full().count() > MAX_HISTOGRAM_BINS;
    let group = |edge: u64| ((edge.max(1) as f64 / low).ln() * scale).min(MAX_HISTOGRAM_BINS as f64 - 1.0) as usize;
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (edge, count) in full() {
        match out.last_mut() {
            Some(last) if last.0 == edge || (merge && group(last.0) == group(edge)) => {
                *last = (edge, last.1 + count);
            }
            _ => out.push((edge, count)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exact(values: &[u64]) -> Distribution {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        Distribution {
            bins: sorted.iter().map(|&v| (v, v, 1)).collect(),
            min: sorted.first().copied().unwrap_or(0),
            max: sorted.last().copied().unwrap_or(0),
            sum: sorted.iter().map(|&v| u128::from(v)).sum(),
        }
    }

    const GHZ: u64 = 1_000_000_000;

    #[test]
    fn percentiles_of_a_small_set_are_exact() {
        let values: Vec<u64> = (1..=10).map(|v| v * 100).collect();
        let l = latency(&exact(&values), GHZ, None).unwrap();
        assert_eq!((l.frames, l.min_ns, l.max_ns, l.avg_ns), (10, 100, 1000, 550.0));
        assert_eq!((l.p50_ns, l.p90_ns, l.p99_ns, l.p99_999_ns), (500, 900, 1000, 1000));
        assert_eq!(l.pdv_p99_9_ns, 900);
        assert_eq!(l.histogram.len(), 10);
    }

    #[test]
    fn the_nearest_rank_of_a_thousand_is_the_999th() {
        let values: Vec<u64> = (1..=1000).collect();
        let l = latency(&exact(&values), GHZ, None).unwrap();
        assert_eq!((l.p50_ns, l.p99_ns, l.p99_9_ns, l.p99_99_ns, l.pdv_p99_9_ns), (500, 990, 999, 1000, 998));
    }

    #[test]
    fn ticks_become_nanoseconds() {
        let l = latency(&exact(&[26, 52]), 2_600_000_000, None).unwrap();
        assert_eq!((l.min_ns, l.avg_ns, l.max_ns), (10, 15.0, 20));
        assert_eq!(latency(&exact(&[]), GHZ, None), None);
    }

    #[test]
    fn wide_bins_never_reach_past_what_was_seen() {
        let one = Distribution { bins: vec![(64, 127, 3)], min: 70, max: 90, sum: 240 };
        let l = latency(&one, GHZ, None).unwrap();
        assert_eq!((l.p50_ns, l.p99_999_ns, l.histogram), (90, 90, vec![(90, 3)]));
    }

    #[test]
    fn ipdv_halves_join_in_order() {
        // -30 -20 -10 0 0 10 20 30 40 50
        let i = ipdv(&exact(&[10, 20, 30]), &exact(&[0, 0, 10, 20, 30, 40, 50]), GHZ).unwrap();
        assert_eq!((i.pairs, i.min_ns, i.p5_ns, i.p50_ns, i.p95_ns, i.max_ns), (10, -30, -30, 0, 50, 50));
        assert_eq!(i.mean_abs_ns, 21.0);
        let only = ipdv(&exact(&[5, 9]), &exact(&[]), GHZ).unwrap();
        assert_eq!((only.min_ns, only.p50_ns, only.max_ns), (-9, -9, -5));
        assert_eq!(ipdv(&exact(&[]), &exact(&[]), GHZ), None);
    }

    proptest! {
        #[test]
        fn percentiles_are_the_sorted_values(mut values in prop::collection::vec(0u64..1_000_000, 1..400)) {
            let l = latency(&exact(&values), GHZ, None).unwrap();
            values.sort_unstable();
            let at = |share: f64| values[((values.len() as f64 * share).ceil() as usize).max(1) - 1];
            prop_assert_eq!(l.p50_ns, at(0.5));
            prop_assert_eq!(l.p90_ns, at(0.9));
            prop_assert!(l.min_ns <= l.p50_ns && l.p99_999_ns <= l.max_ns);
            prop_assert!(l.histogram.len() <= MAX_HISTOGRAM_BINS);
            prop_assert_eq!(l.histogram.iter().map(|b| b.1).sum::<u64>(), l.frames);
            prop_assert!(l.histogram.windows(2).all(|w| w[0].0 < w[1].0));
            prop_assert_eq!(l.histogram.last().unwrap().0, l.max_ns);
        }
    }
}
