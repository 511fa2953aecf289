use std::{
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        Mutex, PoisonError,
    },
    time::{Duration, Instant},
};

use packet::Gaps;

use crate::{node::NodeStats, DropCounters, DropReason};

/// Everything one lcore counted up to one moment between two polls. Frames unless said.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// When, in ticks of the lcore's clock.
    pub taken_at: u64,
    /// Polls that found frames.
    pub busy_polls: u64,
    /// Polls that found none.
    pub idle_polls: u64,
    /// Ticks spent in polls that found frames.
    pub busy_clocks: u64,
    /// Ticks spent in polls that found none.
    pub idle_clocks: u64,
    /// Frames inside at that moment.
    pub held: u64,
    /// Polling gaps since the last reset.
    pub gaps: Gaps,
    /// Received, for each receive queue.
    pub rx: Vec<InputStats>,
    /// Sent, for each egress port.
    pub tx: Vec<u64>,
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

/// What came in by one receive queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InputStats {
    /// The port.
    pub port: usize,
    /// Frames received.
    pub frames: u64,
}

impl Snapshot {
    /// Frames received by all queues.
    pub fn received(&self) -> u64 {
        self.rx.iter().map(|input| input.frames).sum()
    }

    /// Frames sent by all ports.
    pub fn sent(&self) -> u64 {
        self.tx.iter().sum()
    }

    /// A counter of the function by name; zero when it has no such counter.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.iter().find(|(known, _)| *known == name).map_or(0, |&(_, count)| count)
    }

    /// What was counted after `earlier` was taken from the same lcore; `taken_at`, `held` and `gaps` stay as they are.
    pub fn since(&self, earlier: &Self) -> Self {
        let minus = |a: u64, b: u64| a.saturating_sub(b);
        let rx = self.rx.iter().zip(&earlier.rx);
        Self {
            busy_polls: minus(self.busy_polls, earlier.busy_polls),
            idle_polls: minus(self.idle_polls, earlier.idle_polls),
            busy_clocks: minus(self.busy_clocks, earlier.busy_clocks),
            idle_clocks: minus(self.idle_clocks, earlier.idle_clocks),
            rx: rx.map(|(a, b)| InputStats { port: a.port, frames: minus(a.frames, b.frames) }).collect(),
            tx: self.tx.iter().zip(&earlier.tx).map(|(a, b)| minus(*a, *b)).collect(),
            drops: self.drops.since(&earlier.drops),
            punted: minus(self.punted, earlier.punted),
            originated: minus(self.originated, earlier.originated),
            nodes: self.nodes.iter().zip(&earlier.nodes).map(|(a, b)| a.since(b)).collect(),
            counters: self.counters.iter().zip(&earlier.counters).map(|(a, b)| (a.0, minus(a.1, b.1))).collect(),
            ..self.clone()
        }
    }

    /// The numbers in a fixed order, to be sent to another thread one by one. [`Self::restore`] reads them.
    fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let gaps = self.gaps;
        [
            self.taken_at,
            self.busy_polls,
            self.idle_polls,
            self.busy_clocks,
            self.idle_clocks,
            self.held,
            self.punted,
            self.originated,
        ]
        .into_iter()
        .chain([gaps.largest, gaps.largest_at, gaps.total, gaps.count, gaps.threshold])
        .chain(self.rx.iter().map(|input| input.frames))
        .chain(self.tx.iter().copied())
        .chain(self.drops.iter().map(|(_, count)| count))
        .chain(self.nodes.iter().flat_map(|node| [node.calls, node.vectors, node.clocks]))
        .chain(self.counters.iter().map(|&(_, count)| count))
    }

    /// Fills a snapshot that has its names from [`Self::numbers`].
    fn restore(&mut self, mut numbers: impl Iterator<Item = u64>) {
        let mut next = || numbers.next().unwrap_or(0);
        for slot in [
            &mut self.taken_at,
            &mut self.busy_polls,
            &mut self.idle_polls,
            &mut self.busy_clocks,
            &mut self.idle_clocks,
            &mut self.held,
            &mut self.punted,
            &mut self.originated,
        ] {
            *slot = next();
        }
        self.gaps = Gaps { largest: next(), largest_at: next(), total: next(), count: next(), threshold: next() };
        self.rx.iter_mut().for_each(|input| input.frames = next());
        self.tx.iter_mut().for_each(|frames| *frames = next());
        self.drops = DropCounters::from_counts(DropReason::ALL.iter().map(|_| next()));
        for node in &mut self.nodes {
            (node.calls, node.vectors, node.clocks) = (next(), next(), next());
        }
        self.counters.iter_mut().for_each(|(_, count)| *count = next());
    }
}

/// The lcore did not answer in time: it is not running, or it is stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the forwarder did not answer within {0:?}: its lcore is not running, or was taken away for that long")]
pub struct NotRunning(pub Duration);

const KEEP_GAPS: u64 = u64::MAX;

/// The other thread's handle on a running [`Forwarder`](crate::Forwarder): asks it to stop, and for its counters.
///
/// The loop pays one load a poll, of a line that nobody writes while nobody asks. Counters are written by the lcore
/// itself between two polls, so a snapshot is consistent: what came in is out, dropped or held.
#[derive(Debug)]
pub struct Control {
    stop: AtomicBool,
    request: AtomicU64,
    gap_threshold: AtomicU64,
    served: AtomicU64,
    finished: AtomicBool,
    cells: Box<[AtomicU64]>,
    names: Snapshot,
    /// One question at a time.
    turn: Mutex<()>,
}

impl Control {
    /// For a loop whose counters have the shape and names of `names`.
    pub(crate) fn new(names: Snapshot) -> Self {
        Self {
            stop: AtomicBool::new(false),
            request: AtomicU64::new(0),
            gap_threshold: AtomicU64::new(KEEP_GAPS),
            served: AtomicU64::new(0),
            finished: AtomicBool::new(false),
            cells: names.numbers().map(AtomicU64::new).collect(),
            names,
            turn: Mutex::new(()),
        }
    }

    /// Asks the loop to end: after the poll it is in, it sends what it holds and returns.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The counters, as of a moment after this call, or the last ones when the loop has ended.
    pub fn snapshot(&self, timeout: Duration) -> Result<Snapshot, NotRunning> {
        self.ask(KEEP_GAPS, timeout)
    }

    /// As [`snapshot`](Self::snapshot); at that same moment the gap meter starts again with this threshold in ticks.
    pub fn snapshot_and_reset_gaps(&self, threshold: u64, timeout: Duration) -> Result<Snapshot, NotRunning> {
        self.ask(threshold.min(KEEP_GAPS - 1), timeout)
    }

    fn ask(&self, gap_threshold: u64, timeout: Duration) -> Result<Snapshot, NotRunning> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.gap_threshold.store(gap_threshold, Ordering::Relaxed);
        let request = self.request.fetch_add(1, Ordering::Release) + 1;
        let since = Instant::now();
        while self.served.load(Ordering::Acquire) != request && !self.finished.load(Ordering::Acquire) {
            if since.elapsed() > timeout {
                return Err(NotRunning(timeout));
            }
            // Asleep, not spinning: the lcore may share its core's resources with this thread.
            std::thread::sleep(Duration::from_micros(20));
        }
        let mut snapshot = self.names.clone();
        snapshot.restore(self.cells.iter().map(|cell| cell.load(Ordering::Relaxed)));
        Ok(snapshot)
    }

    /// The number of the latest question; a change means that one waits.
    #[inline]
    pub(crate) fn request(&self) -> u64 {
        self.request.load(Ordering::Acquire)
    }

    /// The gap threshold to start again with, when the question is to.
    pub(crate) fn new_gap_threshold(&self) -> Option<u64> {
        Some(self.gap_threshold.load(Ordering::Relaxed)).filter(|&threshold| threshold != KEEP_GAPS)
    }

    /// Answers question number `request`.
    pub(crate) fn publish(&self, request: u64, snapshot: &Snapshot) {
        for (cell, number) in self.cells.iter().zip(snapshot.numbers()) {
            cell.store(number, Ordering::Relaxed);
        }
        self.served.store(request, Ordering::Release);
    }

    pub(crate) fn set_finished(&self, finished: bool) {
        self.finished.store(finished, Ordering::Release);
    }
}
