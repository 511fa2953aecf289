//! The counters of a loop at one moment.

use std::iter;

use packet::{Gaps, BURST};
use serde::Serialize;

use crate::{node::NodeStats, DropCounters};

/// Everything one lcore counted up to one moment between two polls. Counts are frames unless stated otherwise.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// When its first poll began, in ticks of the lcore's clock.
    pub started_at: u64,
    /// When this was taken, in ticks: `started_at + busy_clocks + idle_clocks + rested_clocks`.
    pub taken_at: u64,
    /// Polls that received or sent frames.
    pub busy_polls: u64,
    /// Polls that did neither.
    pub idle_polls: u64,
    /// Ticks spent in busy polls and, in idle ones, in nodes: the clocks of all nodes and `loop_clocks`.
    pub busy_clocks: u64,
    /// Ticks spent looking for frames in vain.
    pub idle_clocks: u64,
    /// Ticks spent in no node: the loop's own work.
    pub loop_clocks: u64,
    /// Ticks between the end of one run and the start of the next.
    pub rested_clocks: u64,
    /// How often the loop has rested between two runs.
    pub suspends: u64,
    /// Frames inside at that moment: with the function, or pending at an egress port.
    pub held: u64,
    /// Polling gaps since the last reset.
    pub gaps: Gaps,
    /// Received, for each receive queue.
    pub rx: Vec<InputStats>,
    /// Sent, for each egress port.
    pub tx: Vec<OutputStats>,
    /// Dropped, by reason.
    pub drops: DropCounters,
    /// Taken in for ourselves.
    pub punted: u64,
    /// Made here: `received + originated = sent + drops + punted + held`.
    pub originated: u64,
    /// The nodes, in the order frames meet them.
    pub nodes: Vec<NodeStats>,
    /// The function's own counters.
    pub counters: Vec<(&'static str, u64)>,
}

/// Classes of burst sizes: 1, 2 to 3, 4 to 7, ..., 64.
pub const BURST_SIZES: usize = BURST.ilog2() as usize + 1;

/// What came in by one receive queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct InputStats {
    /// The port.
    pub port: usize,
    /// Its receive queue.
    pub queue: u16,
    /// Frames received.
    pub frames: u64,
    /// Polls that found frames, by how many: `bursts[i]` found at least `2^i` and fewer than `2^(i + 1)`.
    pub bursts: [u64; BURST_SIZES],
}

impl InputStats {
    /// Polls that found frames.
    pub fn polls(&self) -> u64 {
        self.bursts.iter().sum()
    }

    /// Counts a burst of `n` frames, 1 to 64.
    #[inline]
    pub(crate) fn count(&mut self, n: usize) {
        self.frames += n as u64;
        if let Some(polls) = n.checked_ilog2().and_then(|size| self.bursts.get_mut(size as usize)) {
            *polls += 1;
        }
    }

    fn since(&self, earlier: &Self) -> Self {
        let mut diff = Self { frames: minus(self.frames, earlier.frames), ..*self };
        diff.bursts.iter_mut().zip(earlier.bursts).for_each(|(n, before)| *n = minus(*n, before));
        diff
    }
}

/// What left by one egress port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct OutputStats {
    /// Frames sent.
    pub frames: u64,
    /// Times the transmit queue was given frames, retries included.
    pub calls: u64,
    /// Frames that the queue refused to the last; dropped as [`DropReason::TxFull`](crate::DropReason::TxFull).
    pub refused: u64,
}

impl OutputStats {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            frames: minus(self.frames, earlier.frames),
            calls: minus(self.calls, earlier.calls),
            refused: minus(self.refused, earlier.refused),
        }
    }
}

/// A ledger of frames that does not add up: a fault of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "frames do not add up: received {received} + originated {originated}, but sent {sent} + dropped {dropped} \
     + punted {punted} + held {held}"
)]
#[allow(missing_docs)]
pub struct Imbalance {
    pub received: u64,
    pub originated: u64,
    pub sent: u64,
    pub dropped: u64,
    pub punted: u64,
    pub held: u64,
}

impl Snapshot {
    /// Frames received by all queues.
    pub fn received(&self) -> u64 {
        self.rx.iter().map(|input| input.frames).sum()
    }

    /// Frames sent by all ports.
    pub fn sent(&self) -> u64 {
        self.tx.iter().map(|output| output.frames).sum()
    }

    /// Ticks spent in all nodes.
    pub fn node_clocks(&self) -> u64 {
        self.nodes.iter().map(|node| node.clocks).sum()
    }

    /// A counter of the function by name; zero when it has no such counter.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.iter().find(|(known, _)| *known == name).map_or(0, |&(_, count)| count)
    }

    /// Whether every frame is accounted for: `received + originated = sent + drops + punted + held`. Of counters
    /// since the start, not of differences, where what was held before is not known.
    pub fn balance(&self) -> Result<(), Imbalance> {
        let ledger = Imbalance {
            received: self.received(),
            originated: self.originated,
            sent: self.sent(),
            dropped: self.drops.total(),
            punted: self.punted,
            held: self.held,
        };
        let came = ledger.received + ledger.originated;
        if came == ledger.sent + ledger.dropped + ledger.punted + ledger.held {
            Ok(())
        } else {
            Err(ledger)
        }
    }

    /// What was counted after `earlier` was taken from the same lcore; `started_at`, `taken_at`, `held` and `gaps`
    /// stay as they are. What `earlier` does not have counts from zero.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            busy_polls: minus(self.busy_polls, earlier.busy_polls),
            idle_polls: minus(self.idle_polls, earlier.idle_polls),
            busy_clocks: minus(self.busy_clocks, earlier.busy_clocks),
            idle_clocks: minus(self.idle_clocks, earlier.idle_clocks),
            loop_clocks: minus(self.loop_clocks, earlier.loop_clocks),
            rested_clocks: minus(self.rested_clocks, earlier.rested_clocks),
            suspends: minus(self.suspends, earlier.suspends),
            rx: pairs(&self.rx, &earlier.rx).map(|(a, b)| a.since(&b)).collect(),
            tx: pairs(&self.tx, &earlier.tx).map(|(a, b)| a.since(&b)).collect(),
            drops: self.drops.since(&earlier.drops),
            punted: minus(self.punted, earlier.punted),
            originated: minus(self.originated, earlier.originated),
            nodes: pairs(&self.nodes, &earlier.nodes).map(|(a, b)| a.since(&b)).collect(),
            counters: pairs(&self.counters, &earlier.counters).map(|(a, b)| (a.0, minus(a.1, b.1))).collect(),
            ..self.clone()
        }
    }

    /// Visits all numbers in a fixed order: how a snapshot is sent to another thread, one number at a time, and
    /// put together there.
    pub(crate) fn each(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        for number in [
            &mut self.started_at,
            &mut self.taken_at,
            &mut self.busy_polls,
            &mut self.idle_polls,
            &mut self.busy_clocks,
            &mut self.idle_clocks,
            &mut self.loop_clocks,
            &mut self.rested_clocks,
            &mut self.suspends,
            &mut self.held,
            &mut self.punted,
            &mut self.originated,
        ] {
            visit(number);
        }
        let Gaps { largest, largest_at, count, total, threshold } = &mut self.gaps;
        [largest, largest_at, count, total, threshold].into_iter().for_each(&mut *visit);
        for input in &mut self.rx {
            visit(&mut input.frames);
            input.bursts.iter_mut().for_each(&mut *visit);
        }
        for output in &mut self.tx {
            [&mut output.frames, &mut output.calls, &mut output.refused].into_iter().for_each(&mut *visit);
        }
        let visited = |(_, mut count)| {
            visit(&mut count);
            count
        };
        self.drops = DropCounters::from_counts(self.drops.clone().iter().map(visited));
        for node in &mut self.nodes {
            [&mut node.calls, &mut node.vectors, &mut node.clocks].into_iter().for_each(&mut *visit);
        }
        self.counters.iter_mut().for_each(|(_, count)| visit(count));
    }
}

fn minus(a: u64, b: u64) -> u64 {
    a.saturating_sub(b)
}

/// Each of `now` with its earlier self, or with zero.
fn pairs<'a, T: Copy + Default>(now: &'a [T], earlier: &'a [T]) -> impl Iterator<Item = (&'a T, T)> {
    now.iter().zip(earlier.iter().copied().chain(iter::repeat(T::default())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_counted_by_size() {
        let mut input = InputStats::default();
        for n in [1, 2, 3, 4, 7, 8, 31, 32, 63, 64] {
            input.count(n);
        }
        assert_eq!((input.bursts, input.frames, input.polls()), ([1, 2, 2, 1, 1, 2, 1], 215, 10));
        input.count(0);
        input.count(128);
        assert_eq!(input.polls(), 10, "impossible counts of frames are not polls");
    }

    #[test]
    fn differences_from_nothing_are_all_there_is() {
        let snapshot = Snapshot {
            busy_polls: 3,
            rx: vec![InputStats { frames: 7, ..InputStats::default() }],
            tx: vec![OutputStats { frames: 5, calls: 2, refused: 1 }],
            nodes: vec![NodeStats { calls: 2, ..NodeStats::new("a") }],
            counters: vec![("c", 4)],
            ..Snapshot::default()
        };
        assert_eq!(snapshot.since(&Snapshot::default()), snapshot);
        let none = snapshot.since(&snapshot);
        assert_eq!((none.received(), none.sent(), none.busy_polls, none.counter("c")), (0, 0, 0, 0));
        assert_eq!(none.nodes, [NodeStats::new("a")]);
    }

    #[test]
    fn an_imbalance_names_its_sums() {
        let mut snapshot = Snapshot { punted: 2, originated: 1, ..Snapshot::default() };
        let error = snapshot.balance().unwrap_err();
        assert_eq!(error, Imbalance { received: 0, originated: 1, sent: 0, dropped: 0, punted: 2, held: 0 });
        insta::assert_snapshot!("imbalance", error);
        snapshot.originated = 2;
        assert_eq!(snapshot.balance(), Ok(()));
    }
}
