//! Makes a trial record of what the loops counted.

use dataplane::Snapshot;
use host::CpuSnapshot;
use measure::{
    metrics::{self, Distribution},
    shape::{LastLost, Outage, WindowSummary},
    timeline::{Absence, Party, Slice},
    trial::{DirectionCounts, DutReport, IpdvSummary, LcoreInterference, LcoreRole, NodeReport, Scheduling},
};
use packet::{Absence as Gap, Gaps};
use traffic::{
    checker::{CameSlice, CheckedSlice, Checker, Interval, Losses},
    histogram::LogHistogram,
    worker::{SentSlice, TxCounters},
};
use units::Nanos;

/// The clock of a trial: its rate, and the tick at which sending began.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Ticks a second.
    pub hz: u64,
    /// Tick of the start.
    pub started: u64,
}

impl Times {
    fn seconds(self, tick: u64) -> f64 {
        Nanos::from_ticks(tick.saturating_sub(self.started), self.hz).seconds()
    }
}

/// Counts of the direction that carries this stream, without the names of its ports.
pub fn direction(stream: u16, tx: &TxCounters, rx: &Checker, times: Times) -> DirectionCounts {
    let hz = times.hz;
    let losses = rx.losses(stream, tx.sent);
    let counts = rx.counts();
    let received = counts.streams.received;
    let ipdv = {
        let both = rx.ipdv();
        metrics::ipdv(&distribution(both.negative()), &distribution(both.positive()), hz)
    };
    DirectionCounts {
        received,
        duplicates: counts.streams.duplicates,
        reordered: counts.streams.reordered,
        late: counts.streams.late,
        lost: tx.sent.saturating_sub(received),
        foreign: counts.foreign,
        wrong_length: counts.wrong_length,
        misdirected: counts.misdirected,
        received_bytes: counts.received_bytes,
        latency: metrics::latency(&distribution(&rx.delays()), hz, ipdv),
        last_lost: last_lost(tx, &losses, times),
        outage: outage(tx, &losses, times),
        ..sent(tx, hz)
    }
}

/// Counts of what was sent in a direction; nothing about what was received.
pub fn sent(tx: &TxCounters, hz: u64) -> DirectionCounts {
    DirectionCounts {
        intended: tx.intended,
        sent: tx.sent,
        refused: tx.refused,
        skipped: tx.skipped,
        tx_span_s: Nanos::from_ticks(tx.last_tick.saturating_sub(tx.first_tick), hz).seconds(),
        ..DirectionCounts::default()
    }
}

/// The last frame that was lost or refused.
fn last_lost(tx: &TxCounters, losses: &Losses, times: Times) -> Option<LastLost> {
    let lost = losses.last.map(|run| (run.departed.unwrap_or(tx.last_tick), run.first + run.frames - 1));
    let refused = Some(tx.last_refused).filter(|run| run.frames > 0).map(|run| (run.to, run.sequence));
    let (departed, sequence) = lost.max(refused)?;
    Some(LastLost { sequence, departed_s: times.seconds(departed) })
}

/// The longest run of lost or refused frames. Refused frames within or next to lost ones are one run with them.
fn outage(tx: &TxCounters, losses: &Losses, times: Times) -> Option<Outage> {
    let seconds = |tick: Option<u64>| tick.map(|tick| times.seconds(tick));
    let lost = losses.longest.map(|run| {
        let outage = Outage { lost: run.frames, from_s: seconds(run.before).unwrap_or(0.0), to_s: seconds(run.behind) };
        (run.first..=run.first + run.frames, outage)
    });
    let run = tx.longest_refused;
    let refused = (run.frames > 0).then(|| Outage {
        lost: run.frames,
        from_s: seconds(run.from).unwrap_or(0.0),
        to_s: (run.sequence < tx.sent).then(|| times.seconds(run.to)),
    });
    match (lost, refused) {
        (Some((at, lost)), Some(refused)) if at.contains(&run.sequence) => {
            Some(Outage { lost: lost.lost + refused.lost, ..lost })
        }
        (Some((_, lost)), Some(refused)) => Some(if refused.lost > lost.lost { refused } else { lost }),
        (lost, refused) => lost.map(|l| l.1).or(refused),
    }
}

/// The windows of a direction, each `width_s` long. The last ends with the trial and has the `tail`: the frames missing after
/// the last one received.
pub fn windows(rx: &Checker, width_s: f64, duration_s: f64, tail: u64, hz: u64) -> Vec<WindowSummary> {
    let all = rx.intervals();
    let last = all.len().saturating_sub(1);
    let one = |(i, interval): (usize, &Interval)| {
        let to_s = if i == last { duration_s } else { (i + 1) as f64 * width_s };
        let more = if i == last { tail } else { 0 };
        WindowSummary { from_s: i as f64 * width_s, to_s, missing: interval.missing + more, ..window(interval, hz) }
    };
    all.iter().enumerate().map(one).collect()
}

fn window(of: &Interval, hz: u64) -> WindowSummary {
    let ns = |ticks: u64| Nanos::from_ticks(ticks, hz).0;
    let signed = |ticks: i64| i64::try_from(ns(ticks.unsigned_abs())).unwrap_or(i64::MAX) * ticks.signum();
    let [min_ns, p5_ns, p50_ns, p95_ns, max_ns] = of.ipdv.map(signed);
    let mean_abs_ns = of.ipdv_abs as f64 / of.pairs.max(1) as f64 * 1e9 / hz.max(1) as f64;
    let pairs = of.pairs;
    WindowSummary {
        received: of.received,
        missing: of.missing,
        min_ns: ns(of.min),
        p50_ns: ns(of.p50),
        p99_ns: ns(of.p99),
        max_ns: ns(of.max),
        pdv_p99_9_ns: ns(of.p99_9).saturating_sub(ns(of.min)),
        ipdv: (pairs > 0).then_some(IpdvSummary { pairs, min_ns, p5_ns, p50_ns, p95_ns, max_ns, mean_abs_ns }),
        ..WindowSummary::default()
    }
}

/// The slices of a direction: what its sender and its checker counted.
///
/// The checker counts up to a burst one slice early where a reordered frame ends it. More than was sent in a slice cannot
/// have come of it, so that the rest belongs to the next: otherwise that one would have lost it.
pub fn slices(sent: &[SentSlice], checked: &[CheckedSlice], hz: u64) -> Vec<Slice> {
    let ns = |ticks: u64| u32::try_from(Nanos::from_ticks(ticks, hz).0).unwrap_or(u32::MAX);
    let mut early = 0;
    let one = |(sent, checked): (&SentSlice, &CheckedSlice)| {
        let CheckedSlice { departed, arrived, duplicates } = *checked;
        let came = departed.frames.saturating_add(early);
        early = came.saturating_sub(sent.sent);
        let min = |came: CameSlice| if came.frames > 0 { ns(came.min.into()) } else { 0 };
        Slice {
            sent: sent.sent,
            refused: sent.refused,
            received: came - early,
            min_delay_ns: min(departed),
            mean_delay_ns: ns(departed.sum / u64::from(departed.frames).max(1)),
            arrived: arrived.frames,
            arrival_min_delay_ns: min(arrived),
            duplicates,
        }
    };
    sent.iter().zip(checked).map(one).collect()
}

/// When a lcore was away for at least so many seconds, of what it remembers: what lies within the trial.
pub fn absences(who: Party, gaps: &[Gap], times: Times, end_s: f64, least_s: f64) -> Vec<Absence> {
    let one = |gap: &Gap| Absence { who, from_s: times.seconds(gap.from), to_s: times.seconds(gap.to) };
    let counts = |gap: &Absence| gap.from_s < end_s && gap.to_s - gap.from_s >= least_s;
    gaps.iter().filter(|gap| gap.to > times.started).map(one).filter(counts).collect()
}

fn distribution(h: &LogHistogram) -> Distribution {
    Distribution {
        bins: h.bins().filter(|b| b.2 > 0).collect(),
        min: h.min().unwrap_or(0),
        max: h.max().unwrap_or(0),
        sum: h.sum(),
    }
}

/// The interference on one polling lcore, by its loop and by the kernel.
pub fn lcore(
    role: LcoreRole,
    lcore: u32,
    cpu: Option<u32>,
    realtime: bool,
    gaps: Gaps,
    kernel: CpuSnapshot,
    hz: u64,
) -> LcoreInterference {
    let ns = |ticks| Nanos::from_ticks(ticks, hz).0;
    LcoreInterference {
        role,
        lcore,
        cpu,
        scheduling: Some(if realtime { Scheduling::Realtime } else { Scheduling::Ordinary }),
        busy_ns: None,
        largest_gap_ns: ns(gaps.largest),
        largest_gap_at_ns: ns(gaps.largest_at),
        total_gap_ns: ns(gaps.total),
        gaps: gaps.count,
        gap_threshold_ns: ns(gaps.threshold),
        steal_ns: kernel.steal_ns,
        waited_ns: kernel.waited_ns,
        involuntary_switches: kernel.involuntary_switches,
        interrupts: kernel.interrupts,
        frequency_mhz: kernel.frequency_mhz,
        throttles: kernel.throttles,
    }
}

/// What the built-in device counted.
pub fn dut(snapshot: &Snapshot) -> DutReport {
    let node = |n: &dataplane::node::NodeStats| NodeReport {
        name: n.name.to_owned(),
        calls: n.calls,
        vectors: n.vectors,
        clocks: n.clocks,
    };
    DutReport {
        rx_frames: snapshot.received(),
        tx_frames: snapshot.sent(),
        held_frames: snapshot.held,
        punted_frames: snapshot.punted,
        originated_frames: snapshot.originated,
        drops: snapshot.drops.iter().filter(|d| d.1 > 0).map(|(r, n)| (r.name().to_owned(), n)).collect(),
        counters: snapshot.counters.iter().map(|&(name, n)| (name.to_owned(), n)).collect(),
        nodes: snapshot.nodes.iter().map(node).collect(),
        busy_polls: snapshot.busy_polls,
        idle_polls: snapshot.idle_polls,
        busy_clocks: snapshot.busy_clocks,
        idle_clocks: snapshot.idle_clocks,
    }
}

#[cfg(test)]
mod tests {
    use traffic::{checker::LostRun, worker::RefusedRun};

    use super::*;

    /// A tick is a millisecond, and sending began at tick 1000.
    const TIMES: Times = Times { hz: 1000, started: 1000 };

    fn run(first: u64, frames: u64, ticks: Option<(u64, u64)>) -> Option<LostRun> {
        let departed = ticks.map(|t| t.1 - 1);
        Some(LostRun { first, frames, before: ticks.map(|t| t.0), behind: ticks.map(|t| t.1), departed })
    }

    #[test]
    fn what_was_counted_a_slice_early_is_not_lost_in_the_next() {
        let received = |came: &[u32]| {
            let sent: Vec<SentSlice> = came.iter().map(|_| SentSlice { sent: 10, refused: 0 }).collect();
            let of = |frames: u32| CheckedSlice {
                departed: CameSlice { frames, min: 1, sum: 0 },
                ..CheckedSlice::default()
            };
            let checked: Vec<CheckedSlice> = came.iter().map(|frames| of(*frames)).collect();
            slices(&sent, &checked, 1_000_000_000).iter().map(|slice| slice.received).collect::<Vec<_>>()
        };
        assert_eq!(received(&[10, 13, 7, 10]), [10, 10, 10, 10]);
        assert_eq!(received(&[25, 0, 4, 10]), [10, 10, 9, 10], "over more than one, and one that was lost");
        assert_eq!(received(&[7, 10, 13]), [7, 10, 10], "what was lost before stays lost");
    }

    fn refused(sequence: u64, frames: u64, ticks: (u64, u64)) -> TxCounters {
        let run = RefusedRun { sequence, frames, from: Some(ticks.0), to: ticks.1 };
        TxCounters { sent: 100, last_tick: 9000, longest_refused: run, last_refused: run, ..TxCounters::default() }
    }

    #[test]
    fn the_later_of_lost_and_refused_is_the_last() {
        let last = |tx: &TxCounters, losses: &Losses| last_lost(tx, losses, TIMES).map(|l| (l.sequence, l.departed_s));
        let lost = Losses { last: run(10, 5, Some((2000, 3000))), longest: None };
        let tail = Losses { last: Some(LostRun { first: 98, frames: 2, ..LostRun::default() }), longest: None };
        let none = TxCounters { last_tick: 9000, ..TxCounters::default() };
        assert_eq!(last(&none, &Losses::default()), None);
        assert_eq!(last(&none, &lost), Some((14, 1.999)));
        assert_eq!(last(&none, &tail), Some((99, 8.0)));
        assert_eq!(last(&refused(50, 9, (4000, 5000)), &lost), Some((50, 4.0)));
        assert_eq!(last(&refused(3, 9, (1500, 1600)), &lost), Some((14, 1.999)));
    }

    #[test]
    fn the_longest_outage_is_of_both_kinds_together() {
        let outage = |tx: &TxCounters, longest| {
            outage(tx, &Losses { last: None, longest }, TIMES).map(|o| (o.lost, o.from_s, o.to_s))
        };
        let none = TxCounters::default();
        let lost = run(10, 5, Some((2000, 3000)));
        assert_eq!(outage(&none, None), None);
        assert_eq!(outage(&none, lost), Some((5, 1.0, Some(2.0))));
        assert_eq!(outage(&none, run(0, 5, None)), Some((5, 0.0, None)));
        // A queue that stopped: what was in it is lost, what followed is refused.
        assert_eq!(outage(&refused(15, 9, (2100, 2900)), lost), Some((14, 1.0, Some(2.0))));
        assert_eq!(outage(&refused(50, 9, (4000, 5000)), lost), Some((9, 3.0, Some(4.0))));
        assert_eq!(outage(&refused(50, 4, (4000, 5000)), lost), Some((5, 1.0, Some(2.0))));
        assert_eq!(outage(&refused(100, 9, (4000, 5000)), None), Some((9, 3.0, None)), "none was sent any more");
    }
}
