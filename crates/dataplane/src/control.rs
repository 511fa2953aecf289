//! The handle of another thread on a loop: its counters, and its end.

use std::{
    sync::{
        atomic::{fence, AtomicBool, AtomicU64, Ordering},
        Mutex, PoisonError,
    },
    time::{Duration, Instant},
};

use crate::Snapshot;

/// The lcore did not answer in time: it is not running, or it is stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the forwarder did not answer within {0:?}: its loop is not running, or the host took its core away for that long"
)]
pub struct NotRunning(pub Duration);

const KEEP_GAPS: u64 = u64::MAX;
/// How long another thread sleeps between two looks whether the loop has answered: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// The other thread's handle on a running [`Forwarder`](crate::Forwarder): asks it to stop, and for its counters.
///
/// The loop pays one load a poll, of a cache line that is written only on a request. Counters are written by the lcore
/// itself between two polls, so a snapshot is consistent: what came in is out, dropped or held.
///
/// A loop that rests between two runs, or has ended, has published its counters before; they are read at once.
#[derive(Debug)]
pub struct Control {
    stop: AtomicBool,
    request: AtomicU64,
    gap_threshold: AtomicU64,
    served: AtomicU64,
    /// The loop has stopped polling, and published its counters.
    resting: AtomicBool,
    /// Odd while the cells are being written.
    version: AtomicU64,
    cells: Box<[AtomicU64]>,
    names: Snapshot,
    /// One question at a time.
    turn: Mutex<()>,
}

impl Control {
    /// For a loop whose counters have the shape and names of `names`.
    pub(crate) fn new(mut names: Snapshot) -> Self {
        let mut cells = Vec::new();
        names.each(&mut |number| cells.push(AtomicU64::new(*number)));
        Self {
            stop: AtomicBool::new(false),
            request: AtomicU64::new(0),
            gap_threshold: AtomicU64::new(KEEP_GAPS),
            served: AtomicU64::new(0),
            resting: AtomicBool::new(false),
            version: AtomicU64::new(0),
            cells: cells.into(),
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

    /// The counters, as of a moment after this call, or the last ones when the loop rests or has ended.
    pub fn snapshot(&self, timeout: Duration) -> Result<Snapshot, NotRunning> {
        self.request_snapshot(None, timeout)
    }

    /// As [`snapshot`](Self::snapshot); at that same moment, or as the loop goes on when it rests, the gap meter starts
    /// again with this threshold in ticks.
    pub fn snapshot_and_reset_gaps(&self, threshold: u64, timeout: Duration) -> Result<Snapshot, NotRunning> {
        self.request_snapshot(Some(threshold.min(KEEP_GAPS - 1)), timeout)
    }

    fn request_snapshot(&self, gap_threshold: Option<u64>, timeout: Duration) -> Result<Snapshot, NotRunning> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // A threshold that a resting loop has not taken yet stays for when it goes on.
        if let Some(threshold) = gap_threshold {
            self.gap_threshold.store(threshold, Ordering::Relaxed);
        }
        let request = self.request.fetch_add(1, Ordering::Release) + 1;
        let since = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            if self.served.load(Ordering::Acquire) == request || self.resting.load(Ordering::Acquire) {
                if let Some(snapshot) = self.read() {
                    return Ok(snapshot);
                }
            }
            if since.elapsed() > timeout {
                return Err(NotRunning(timeout));
            }
            // Asleep, not spinning: the lcore may share its core's resources with this thread, or wait for its turn on a CPU, to
            // which every wake-up here adds.
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The counters published last; none when the loop, going on after a rest, was writing new ones meanwhile.
    fn read(&self) -> Option<Snapshot> {
        let version = self.version.load(Ordering::Acquire);
        let mut snapshot = self.names.clone();
        let mut cells = self.cells.iter();
        snapshot.each(&mut |number| *number = cells.next().map_or(0, |cell| cell.load(Ordering::Relaxed)));
        fence(Ordering::Acquire);
        (version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version).then_some(snapshot)
    }

    /// The number of the latest request; a change means that one waits.
    #[inline]
    pub(crate) fn request(&self) -> u64 {
        self.request.load(Ordering::Acquire)
    }

    /// The gap threshold to start again with, if it was requested since the last call.
    pub(crate) fn take_gap_threshold(&self) -> Option<u64> {
        Some(self.gap_threshold.swap(KEEP_GAPS, Ordering::Relaxed)).filter(|&threshold| threshold != KEEP_GAPS)
    }

    /// Answers request number `request`. Called only by the loop.
    pub(crate) fn publish(&self, request: u64, mut snapshot: Snapshot) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        let mut cells = self.cells.iter();
        snapshot.each(&mut |number| {
            if let Some(cell) = cells.next() {
                cell.store(*number, Ordering::Relaxed);
            }
        });
        self.version.store(version + 2, Ordering::Release);
        self.served.store(request, Ordering::Release);
    }

    pub(crate) fn set_resting(&self, resting: bool) {
        self.resting.store(resting, Ordering::Release);
    }
}
