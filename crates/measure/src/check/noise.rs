//! The gaps of cores that polled the clock and did nothing else.

use crate::schema::check::{CoreNoise, TogetherNoise};

/// Shortest gap that counts, nanoseconds: a poll takes 10 to 50 ns, the shortest interrupt about 1 us.
pub const GAP_NS: u64 = 1_000;
/// Shortest gap that a trial at high load takes for an absence, nanoseconds: [`crate::validity::gap_threshold_ns`].
pub const ABSENCE_NS: u64 = 20_000;

/// One gap, nanoseconds since the first poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The last poll before it.
    pub from_ns: u64,
    /// The first poll after it.
    pub to_ns: u64,
}

impl Gap {
    fn ns(self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// What a core noted while it polled.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Polled {
    /// The CPU.
    pub cpu: u32,
    /// From the first poll to the last, nanoseconds.
    pub ns: u64,
    /// Gaps of at least [`GAP_NS`], in order.
    pub gaps: Vec<Gap>,
    /// More gaps came than could be noted: the last one lasts to the end of them all.
    pub overflowed: bool,
}

impl Polled {
    fn absences(&self) -> impl Iterator<Item = Gap> + '_ {
        self.gaps.iter().copied().filter(|gap| gap.ns() >= ABSENCE_NS)
    }
}

/// The noise of a core. Counters of the kernel and facts of the core are not filled in.
pub fn noise(polled: &Polled) -> CoreNoise {
    let mut lengths: Vec<u64> = polled.gaps.iter().map(|gap| gap.ns()).collect();
    if polled.overflowed {
        lengths.pop();
    }
    let total: u64 = lengths.iter().fold(0, |sum, ns| sum.saturating_add(*ns));
    // Shares and rates are of the time until the notes were full.
    let seen_ns = match polled.gaps.last() {
        Some(last) if polled.overflowed => last.from_ns,
        _ => polled.ns,
    };
    let absences: Vec<u64> = lengths.iter().copied().filter(|ns| *ns >= ABSENCE_NS).collect();
    let largest_ns = lengths.iter().copied().max();
    lengths.sort_unstable();
    let share = |ns: u64| if seen_ns > 0 { (ns as f64 / seen_ns as f64).clamp(0.0, 1.0) } else { 0.0 };
    CoreNoise {
        cpu: polled.cpu,
        seconds: seen_ns as f64 * 1e-9,
        gap_threshold_ns: GAP_NS,
        gaps: lengths.len() as u64,
        gaps_per_s: if seen_ns > 0 { lengths.len() as f64 / (seen_ns as f64 * 1e-9) } else { 0.0 },
        p50_ns: percentile(&lengths, 50),
        p99_ns: percentile(&lengths, 99),
        largest_ns,
        away_share: share(total),
        absence_threshold_ns: ABSENCE_NS,
        absences: absences.len() as u64,
        absence_share: share(absences.iter().fold(0, |sum, ns| sum.saturating_add(*ns))),
        longest_clean_s: longest_clean(&merged(std::slice::from_ref(polled)), polled.ns) as f64 * 1e-9,
        ..CoreNoise::default()
    }
}

/// Cores that polled at the same time, from the same moment on: what both have in common. `cores` are their own records.
pub fn both(polled: &[Polled], cores: Vec<CoreNoise>) -> TogetherNoise {
    let end = polled.iter().map(|p| p.ns).min().unwrap_or(0);
    let away = merged(polled);
    let clipped = |gap: &Gap| gap.to_ns.min(end).saturating_sub(gap.from_ns.min(end));
    let absent: u64 = away.iter().map(clipped).fold(0, u64::saturating_add);
    let there = if end > 0 { 1.0 - (absent as f64 / end as f64).clamp(0.0, 1.0) } else { 0.0 };
    TogetherNoise { cores, both_there_share: there, longest_clean_s: longest_clean(&away, end) as f64 * 1e-9 }
}

/// The times in which at least one was absent, in order, without overlap.
fn merged(polled: &[Polled]) -> Vec<Gap> {
    let mut all: Vec<Gap> = polled.iter().flat_map(Polled::absences).collect();
    all.sort_unstable_by_key(|gap| gap.from_ns);
    let mut out: Vec<Gap> = Vec::new();
    for gap in all {
        match out.last_mut() {
            Some(last) if gap.from_ns <= last.to_ns => last.to_ns = last.to_ns.max(gap.to_ns),
            _ => out.push(gap),
        }
    }
    out
}

/// The longest time between these, nanoseconds.
fn longest_clean(away: &[Gap], end: u64) -> u64 {
    let (mut longest, mut from) = (0, 0);
    for gap in away {
        longest = longest.max(gap.from_ns.min(end).saturating_sub(from));
        from = gap.to_ns;
    }
    longest.max(end.saturating_sub(from))
}

/// The nearest rank of sorted values; `None` of none.
fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}
