//! Sending and receiving a capture.

use std::sync::Arc;

use packet::{capture::Capture, Alloc, Buffer, Burst, Tx, BURST};
use units::FCS_BYTES;

use super::timeline::{Cursor, Timeline};
use crate::{
    histogram::LogHistogram,
    worker::{Sends, TxCounters},
};

/// A capture going out of one transmit queue.
///
/// Each frame is offered to the port once, in the order of the file. A frame that is late is still sent, and its lateness is
/// counted; a frame that the port refuses is lost.
pub struct Replay<T: Tx, A: Alloc<Buf = T::Buf>> {
    tx: T,
    alloc: A,
    capture: Arc<Capture>,
    timeline: Timeline,
    /// Frames of the whole trial.
    frames: u64,
    /// The next of them, and how many there were before it.
    next: Cursor,
    given: u64,
    start: u64,
    /// From how many ticks on a frame is late.
    late_after: u64,
    /// Empty, or frames that the port refused, to be written anew.
    burst: Burst<T::Buf>,
    counters: TxCounters,
    replayed: Replayed,
}

/// What a replay sent, beside the counters that it has in common with a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Bytes of the frames that the port took, each with its FCS.
    pub bytes: u64,
    /// Frames offered to the port later than the limit.
    pub late: u64,
    /// How much later than due each frame was offered, in ticks.
    pub lateness: LogHistogram,
}

impl<T: Tx, A: Alloc<Buf = T::Buf>> Replay<T, A> {
    /// Sends so many frames, from the capture's first on and round again. A frame is late when it is offered more than
    /// `late_after` ticks after it was due.
    pub fn new(tx: T, alloc: A, capture: Arc<Capture>, timeline: Timeline, frames: u64, late_after: u64) -> Self {
        Self {
            tx,
            alloc,
            capture,
            timeline,
            frames,
            next: Cursor::default(),
            given: 0,
            // Nothing is due before the start.
            start: u64::MAX,
            late_after,
            burst: Burst::new(),
            counters: TxCounters::default(),
            replayed: Replayed::default(),
        }
    }

    /// What was done so far.
    pub fn counters(&self) -> TxCounters {
        TxCounters { intended: self.given, skipped: self.counters.alloc_failures, ..self.counters }
    }

    /// What was sent so far.
    pub fn replayed(&self) -> &Replayed {
        &self.replayed
    }

    /// The queue and the pool, for the next trial.
    pub fn into_parts(self) -> (T, A) {
        (self.tx, self.alloc)
    }

    /// Offers the frames with these numbers to the port; how many it took.
    #[inline]
    fn offer(&mut self, numbers: &[usize]) -> usize {
        let Self { capture, burst, .. } = self;
        burst.truncate(numbers.len());
        let missing = numbers.len() - burst.len();
        if missing > 0 {
            let got = self.alloc.alloc(burst, missing, capture.longest());
            self.counters.alloc_failures += (missing - got) as u64;
        }
        for (buffer, &number) in burst.iter_mut().zip(numbers) {
            let frame = capture.frame(number);
            // Each buffer was made for the longest frame.
            if buffer.set_len(frame.len()) {
                buffer.data_mut().copy_from_slice(frame);
            }
        }
        self.tx.tx(&mut self.burst)
    }
}

impl<T: Tx, A: Alloc<Buf = T::Buf>> Sends for Replay<T, A> {
    fn start(&mut self, tick: u64) {
        self.start = tick;
    }

    #[inline]
    fn poll(&mut self, now: u64) -> bool {
        let Some(elapsed) = now.checked_sub(self.start) else { return false };
        // Most polls find nothing to do.
        if self.given == self.frames || elapsed < self.next.due(&self.timeline) {
            return false;
        }
        let (mut numbers, mut late, mut due) = ([0; BURST], [0; BURST], 0);
        for (number, late) in numbers.iter_mut().zip(&mut late) {
            if self.given + due as u64 == self.frames {
                break;
            }
            let Some(behind) = elapsed.checked_sub(self.next.due(&self.timeline)) else { break };
            (*number, *late) = (self.next.number, behind);
            self.next.step(&self.timeline);
            due += 1;
        }
        self.given += due as u64;
        let numbers = numbers.get(..due).unwrap_or_default();
        let sent = self.offer(numbers);
        let offered = sent + self.burst.len();
        for &late in late.iter().take(offered) {
            self.replayed.lateness.record(late);
            self.replayed.late += u64::from(late > self.late_after);
        }
        let bytes = |&number: &usize| self.capture.frame(number).len() as u64 + u64::from(FCS_BYTES);
        self.replayed.bytes += numbers.iter().take(sent).map(bytes).sum::<u64>();
        self.counters.took(sent as u64, now);
        if sent < offered {
            self.counters.refuse((offered - sent) as u64, now);
        }
        true
    }

    fn finished(&self) -> bool {
        self.given == self.frames
    }

    fn finish(&mut self, _now: u64) {
        self.frames = self.given;
        Buffer::discard(&mut self.burst);
    }

    fn sent(&self) -> u64 {
        self.counters.sent
    }
}
