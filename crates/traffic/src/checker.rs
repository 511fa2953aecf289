//! Counts and times what comes back: the hot path of receiving.

use packet::{stamp::Stamp, Buffer};
use units::FCS_BYTES;

use crate::{
    histogram::{LogHistogram, SignedHistogram},
    window::{Window, WINDOW},
};

/// Frames kept for diagnosis.
pub const SAMPLES: usize = 4;
const SAMPLE_BYTES: usize = 64;
/// How many frames ahead the stamp is fetched: it often comes from another core's cache.
const PREFETCH: usize = 16;

/// Checks every frame of one receiving queue.
///
/// A frame is **foreign** without the magic, with another epoch or of an unknown stream; **misdirected** when its
/// stream is known but expected elsewhere; **wrong_length** when it is not as long as it was sent (RFC 2544 §10),
/// and then nothing else. The others are counted by stream: the first copy of a frame is **received**, with its
/// one-way delay; another copy is a **duplicate**; a received frame below the highest seen is **reordered** as well
/// (RFC 4737 §3). A frame 2^16 or more below the highest seen is **late**: nothing is remembered about it, it may be
/// a first arrival or a copy, so that it counts as neither and a first arrival stays lost.
#[derive(Debug)]
pub struct Checker {
    epoch: u8,
    frame_len: usize,
    /// By stream id: where its state is, or why there is none.
    slots: Box<[u16]>,
    streams: Box<[Stream]>,
    foreign: u64,
    misdirected: u64,
    wrong_length: u64,
    delays: LogHistogram,
    ipdv: SignedHistogram,
    samples: Vec<Sample>,
}

const UNKNOWN: u16 = u16::MAX;
const ELSEWHERE: u16 = u16::MAX - 1;

#[derive(Debug, Clone)]
struct Stream {
    /// One above the highest sequence seen, unwrapped.
    next: u64,
    /// Delay of the frame `next - 1`.
    last_delay: u64,
    counts: StreamCounts,
    window: Window,
}

/// Counts of one stream, in frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamCounts {
    /// Frames that came at least once.
    pub received: u64,
    /// Extra copies.
    pub duplicates: u64,
    /// Received frames below the highest sequence already seen (RFC 4737).
    pub reordered: u64,
    /// Frames too far behind to tell whether they came before.
    pub late: u64,
}

/// Counts of one queue, in frames unless said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RxCounts {
    /// The expected streams together.
    pub streams: StreamCounts,
    /// Frames that are not of this trial.
    pub foreign: u64,
    /// Frames of this trial that are expected elsewhere.
    pub misdirected: u64,
    /// Frames of expected streams that are not as long as they were sent.
    pub wrong_length: u64,
    /// Bytes of the received frames, FCS counted.
    pub received_bytes: u64,
}

/// The beginning of a frame that was not as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Why it was kept.
    pub what: Odd,
    /// Its length in bytes, without FCS.
    pub frame_len: usize,
    /// Its first bytes, at most 64.
    pub bytes: Vec<u8>,
}

/// What was odd about a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Odd {
    /// Not of this trial.
    Foreign,
    /// Expected elsewhere.
    Misdirected,
    /// Not as long as it was sent.
    WrongLength,
}

impl Checker {
    /// A checker for the trial of this epoch: frames of `expected` streams, `frame_len` bytes long without FCS, come
    /// here; frames of the `elsewhere` streams should not.
    pub fn new(epoch: u8, expected: &[u16], elsewhere: &[u16], frame_len: usize) -> Self {
        let known = expected.iter().chain(elsewhere).map(|id| usize::from(*id) + 1).max().unwrap_or(0);
        let mut slots = vec![UNKNOWN; known].into_boxed_slice();
        let mut set = |id: u16, slot| {
            if let Some(to) = slots.get_mut(usize::from(id)) {
                *to = slot;
            }
        };
        elsewhere.iter().for_each(|id| set(*id, ELSEWHERE));
        let expected = expected.get(..usize::from(ELSEWHERE)).unwrap_or(expected);
        expected.iter().zip(0..).for_each(|(id, slot)| set(*id, slot));
        let stream = Stream { next: 0, last_delay: 0, counts: StreamCounts::default(), window: Window::default() };
        Self {
            epoch,
            frame_len,
            slots,
            streams: vec![stream; expected.len()].into_boxed_slice(),
            foreign: 0,
            misdirected: 0,
            wrong_length: 0,
            delays: LogHistogram::default(),
            ipdv: SignedHistogram::default(),
            samples: Vec::with_capacity(SAMPLES),
        }
    }

    /// Checks a burst that was received at this tick.
    #[inline]
    pub fn check<B: Buffer>(&mut self, frames: &[B], now: u64) {
        frames.iter().take(PREFETCH).for_each(Buffer::prefetch_tail);
        for (i, frame) in frames.iter().enumerate() {
            if let Some(ahead) = frames.get(i + PREFETCH) {
                ahead.prefetch_tail();
            }
            let data = frame.data();
            let stamp = match Stamp::read(data) {
                Some(stamp) if stamp.epoch == self.epoch => stamp,
                _ => {
                    self.odd(Odd::Foreign, data);
                    continue;
                }
            };
            let slot = self.slots.get(usize::from(stamp.stream)).copied().unwrap_or(UNKNOWN);
            let Some(stream) = self.streams.get_mut(usize::from(slot)) else {
                self.odd(if slot == ELSEWHERE { Odd::Misdirected } else { Odd::Foreign }, data);
                continue;
            };
            if data.len() != self.frame_len {
                self.odd(Odd::WrongLength, data);
                continue;
            }
            // Clocks of two cores may disagree by a few ticks: a delay below zero is none.
            let delay = now.saturating_sub(stamp.departure);
            let ahead = stamp.sequence.wrapping_sub(stream.next as u32) as i32;
            if ahead == 0 {
                stream.window.mark_next(stream.next);
                if stream.next != 0 {
                    self.ipdv.record(delay.wrapping_sub(stream.last_delay) as i64);
                }
                stream.next += 1;
                stream.last_delay = delay;
                stream.counts.received += 1;
                self.delays.record(delay);
            } else if stream.out_of_sequence(ahead, delay) {
                self.delays.record(delay);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn odd(&mut self, what: Odd, data: &[u8]) {
        match what {
            Odd::Foreign => self.foreign += 1,
            Odd::Misdirected => self.misdirected += 1,
            Odd::WrongLength => self.wrong_length += 1,
        }
        if self.samples.len() < SAMPLES {
            let bytes = data.iter().take(SAMPLE_BYTES).copied().collect();
            self.samples.push(Sample { what, frame_len: data.len(), bytes });
        }
    }

    /// Forgets what came before the trial began: frames of an earlier trial and learning frames.
    pub fn forget_foreign(&mut self) {
        (self.foreign, self.misdirected) = (0, 0);
        self.samples.clear();
    }

    /// Frames received so far, to see whether all have come.
    #[inline]
    pub fn received(&self) -> u64 {
        self.streams.iter().map(|stream| stream.counts.received).sum()
    }

    /// The counts of the queue.
    pub fn counts(&self) -> RxCounts {
        let mut sum = StreamCounts::default();
        for StreamCounts { received, duplicates, reordered, late } in self.streams.iter().map(|s| s.counts) {
            sum.received += received;
            sum.duplicates += duplicates;
            sum.reordered += reordered;
            sum.late += late;
        }
        RxCounts {
            streams: sum,
            foreign: self.foreign,
            misdirected: self.misdirected,
            wrong_length: self.wrong_length,
            received_bytes: sum.received * (self.frame_len as u64 + u64::from(FCS_BYTES)),
        }
    }

    /// The counts of one expected stream; `None` for any other.
    pub fn stream(&self, id: u16) -> Option<StreamCounts> {
        let slot = self.slots.get(usize::from(id))?;
        self.streams.get(usize::from(*slot)).map(|stream| stream.counts)
    }

    /// One-way delay of every received frame, in ticks.
    pub fn delays(&self) -> &LogHistogram {
        &self.delays
    }

    /// Delay less the delay of the frame sent just before (RFC 5481 §4.1), in ticks, over pairs that came in
    /// sequence: pairs with a lost or reordered frame are left out.
    pub fn ipdv(&self) -> &SignedHistogram {
        &self.ipdv
    }

    /// The first few frames that were not as expected.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }
}

impl Stream {
    /// Counts a frame that is not the next one; whether it is received for the first time.
    #[cold]
    #[inline(never)]
    fn out_of_sequence(&mut self, ahead: i32, delay: u64) -> bool {
        if let Ok(ahead) = u64::try_from(ahead) {
            let sequence = self.next + ahead;
            self.window.mark_ahead(self.next, sequence);
            self.next = sequence + 1;
            self.last_delay = delay;
            self.counts.received += 1;
            return true;
        }
        let behind = u64::from(ahead.unsigned_abs());
        if behind > self.next.min(WINDOW) {
            self.counts.late += 1;
            return false;
        }
        let first = self.window.mark_within(self.next - behind);
        if first {
            self.counts.received += 1;
            self.counts.reordered += 1;
        } else {
            self.counts.duplicates += 1;
        }
        first
    }
}
