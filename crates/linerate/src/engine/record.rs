//! From what the loops counted to a trial record.

use dataplane::Snapshot;
use host::CpuSnapshot;
use measure::{
    metrics::{self, Distribution},
    trial::{DirectionCounts, DutReport, LcoreInterference, NodeReport},
};
use packet::Gaps;
use traffic::{checker::Checker, histogram::LogHistogram, worker::TxCounters};
use units::Nanos;

/// Counts of one direction.
pub fn direction(from: &str, to: &str, tx: &TxCounters, rx: &Checker, hz: u64) -> DirectionCounts {
    let counts = rx.counts();
    let received = counts.streams.received;
    let ipdv = metrics::ipdv(&distribution(rx.ipdv().negative()), &distribution(rx.ipdv().positive()), hz);
    DirectionCounts {
        from: from.to_owned(),
        to: to.to_owned(),
        intended: tx.intended,
        sent: tx.sent,
        refused: tx.refused,
        skipped: tx.skipped,
        received,
        duplicates: counts.streams.duplicates,
        reordered: counts.streams.reordered,
        late: counts.streams.late,
        lost: tx.sent.saturating_sub(received),
        foreign: counts.foreign,
        wrong_length: counts.wrong_length,
        misdirected: counts.misdirected,
        received_bytes: counts.received_bytes,
        tx_span_s: Nanos::from_ticks(tx.last_tick.saturating_sub(tx.first_tick), hz).seconds(),
        latency: metrics::latency(&distribution(rx.delays()), hz, ipdv),
        ..DirectionCounts::default()
    }
}

fn distribution(h: &LogHistogram) -> Distribution {
    Distribution {
        bins: h.bins().filter(|b| b.2 > 0).collect(),
        min: h.min().unwrap_or(0),
        max: h.max().unwrap_or(0),
        sum: h.sum(),
    }
}

/// One polling lcore, as its loop and the kernel saw it.
pub fn lcore(role: &str, lcore: u32, cpu: Option<u32>, gaps: Gaps, kernel: CpuSnapshot, hz: u64) -> LcoreInterference {
    let ns = |ticks| Nanos::from_ticks(ticks, hz).0;
    LcoreInterference {
        role: role.to_owned(),
        lcore,
        cpu,
        largest_gap_ns: ns(gaps.largest),
        largest_gap_at_ns: ns(gaps.largest_at),
        total_gap_ns: ns(gaps.total),
        gaps: gaps.count,
        gap_threshold_ns: ns(gaps.threshold),
        steal_ns: kernel.steal_ns,
        involuntary_switches: kernel.involuntary_switches,
        interrupts: kernel.interrupts,
        frequency_mhz: kernel.frequency_mhz,
        throttles: kernel.throttles,
    }
}

/// What the built-in DUT counted.
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
