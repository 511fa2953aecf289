//! Counts and times what comes back: the hot path of receiving.

use std::borrow::Cow;

use packet::{stamp::Stamp, Buffer};
use units::{Frames, FCS_BYTES};

use crate::{
    histogram::{LogHistogram, SignedHistogram},
    intervals::{Delays, Intervals},
    losses::Runs,
    slices::{CheckedSlices, Totals},
    window::{Window, WINDOW},
};
pub use crate::{
    intervals::Interval,
    losses::{Losses, LostRun},
    slices::{CameSlice, CheckedSlice, Grid},
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
///
/// Frames passed over are missing until they come or the trial ends: what is said to be lost in the end did not come.
#[derive(Debug)]
pub struct Checker {
    epoch: u8,
    frame_len: usize,
    /// Of a mix: lengths of frames by their number, over and over. Empty of one size.
    mix: Box<[usize]>,
    /// Of a mix: bytes of the received frames without FCS.
    mix_bytes: u64,
    /// By stream id: where its state is, or why there is none.
    slots: Box<[u16]>,
    streams: Box<[Stream]>,
    foreign: u64,
    misdirected: u64,
    wrong_length: u64,
    /// Of the interval, or of the trial when it has none.
    current: Delays,
    /// When the interval ends.
    until: u64,
    /// Arrival of the last frame that came in sequence or ahead, of any stream: a queue has but one in a trial.
    arrived: Option<u64>,
    intervals: Option<Box<Intervals>>,
    slices: Option<Box<CheckedSlices>>,
    samples: Vec<Sample>,
}

const UNKNOWN: u16 = u16::MAX;
const ELSEWHERE: u16 = u16::MAX - 1;

#[derive(Debug, Default)]
struct Stream {
    /// One above the highest sequence seen, unwrapped.
    next: u64,
    /// Of a mix: which of its frames `next` is.
    in_mix: usize,
    /// Delay of the frame `next - 1`.
    last_delay: u64,
    counts: StreamCounts,
    window: Window,
    runs: Runs,
}

/// Around a frame that is out of sequence: arrival of the one before it, its own, and its departure.
struct Passed {
    before: Option<u64>,
    now: u64,
    departure: u64,
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
        Self {
            epoch,
            frame_len,
            mix: Box::default(),
            mix_bytes: 0,
            slots,
            streams: expected.iter().map(|_| Stream::default()).collect(),
            foreign: 0,
            misdirected: 0,
            wrong_length: 0,
            current: Delays::default(),
            until: u64::MAX,
            arrived: None,
            intervals: None,
            slices: None,
            samples: Vec::with_capacity(SAMPLES),
        }
    }

    /// Frames are as long as their number says, where they are of a mix.
    #[must_use]
    pub fn with_sizes(mut self, frames: Frames) -> Self {
        self.frame_len = frames.largest().without_fcs();
        self.mix =
            frames.mix().map(|mix| mix.sizes().iter().map(|size| size.without_fcs()).collect()).unwrap_or_default();
        self
    }

    /// Also sums delays up in `count` intervals of `width` ticks each. The last interval lasts until the end.
    #[must_use]
    pub fn with_intervals(mut self, width: u64, count: usize) -> Self {
        self.intervals = Some(Box::new(Intervals::new(width, count)));
        self
    }

    /// Also counts slice by slice; not together with intervals.
    #[must_use]
    pub fn with_slices(mut self, grid: Grid) -> Self {
        self.slices = Some(Box::new(CheckedSlices::new(grid)));
        self
    }

    /// The trial begins at this tick: forgets what came before, and the first interval and the first slice begin.
    pub fn begin(&mut self, start: u64) {
        self.forget_foreign();
        self.slices.iter_mut().for_each(|slices| slices.begin(start));
        self.until = self.intervals.as_mut().map_or(u64::MAX, |intervals| intervals.begin(start));
    }

    /// Checks a burst that was received at this tick.
    #[inline]
    pub fn check<B: Buffer>(&mut self, frames: &[B], now: u64) {
        match self.slices.as_deref() {
            None => self.check_part(frames, now),
            Some(slices) if now < slices.until() => self.check_in_slice(frames, now),
            Some(_) => self.check_across_slices(frames, now),
        }
    }

    #[inline]
    fn check_part<B: Buffer>(&mut self, frames: &[B], now: u64) {
        if self.mix.is_empty() {
            self.check_burst::<B, false>(frames, now);
        } else {
            self.check_burst::<B, true>(frames, now);
        }
    }

    /// Checks frames that belong to the slices being counted.
    #[inline]
    fn check_in_slice<B: Buffer>(&mut self, frames: &[B], now: u64) {
        self.check_part(frames, now);
        // Only where one of them came in sequence or ahead. Of frames with one arrival the last departure has the smallest
        // delay.
        if self.arrived == Some(now) {
            let least = self.streams.iter().map(|stream| stream.last_delay).min().unwrap_or(u64::MAX);
            self.slices.iter_mut().for_each(|slices| slices.came(least));
        }
    }

    /// Checks a burst after the end of a slice. Its last frame tells whether it departed in one slice; else it is checked in
    /// parts.
    #[inline(never)]
    fn check_across_slices<B: Buffer>(&mut self, frames: &[B], now: u64) {
        let (totals, mut rest) = (self.totals(), frames);
        self.slices.iter_mut().for_each(|slices| slices.arrive(totals, now));
        loop {
            let until = self.slices.as_ref().map_or(u64::MAX, |slices| slices.departing_until());
            let beyond = |frame: &B| self.departure(frame).filter(|departure| *departure >= until);
            let at = match rest.last().and_then(beyond) {
                None => rest.len(),
                Some(_) => rest.iter().position(|frame| beyond(frame).is_some()).unwrap_or(rest.len()),
            };
            let next = rest.get(at).and_then(beyond);
            self.check_in_slice(rest.get(..at).unwrap_or_default(), now);
            rest = rest.get(at..).unwrap_or_default();
            let (Some(departure), totals) = (next, self.totals()) else { break };
            self.slices.iter_mut().for_each(|slices| slices.depart(totals, departure));
        }
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals { delays: self.current.delays.sum(), ..Totals::default() };
        for counts in self.streams.iter().map(|stream| &stream.counts) {
            totals.received += counts.received;
            totals.reordered += counts.reordered;
            totals.duplicates += counts.duplicates;
        }
        totals
    }

    /// When a frame of this trial departed.
    fn departure<B: Buffer>(&self, frame: &B) -> Option<u64> {
        Stamp::read(frame.data()).filter(|stamp| stamp.epoch == self.epoch).map(|stamp| stamp.departure)
    }

    #[inline]
    fn check_burst<B: Buffer, const MIX: bool>(&mut self, frames: &[B], now: u64) {
        if now >= self.until {
            self.until = self.intervals.as_mut().map_or(u64::MAX, |i| i.roll(now, &mut self.current));
        }
        frames.iter().take(PREFETCH).for_each(Buffer::prefetch_tail);
        // Kept in a register: frames of a burst have one arrival.
        let mut arrived = self.arrived;
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
            let ahead = stamp.sequence.wrapping_sub(stream.next as u32) as i32;
            let frame_len = match (MIX, ahead) {
                (false, _) => self.frame_len,
                (true, 0) => self.mix.get(stream.in_mix).copied().unwrap_or_default(),
                (true, _) => length_in(&self.mix, stream.next, ahead),
            };
            if data.len() != frame_len {
                self.odd(Odd::WrongLength, data);
                continue;
            }
            // Clocks of two cores may disagree by a few ticks: a delay below zero is none.
            let delay = now.saturating_sub(stamp.departure);
            if ahead == 0 {
                stream.window.mark_next(stream.next);
                if stream.next != 0 {
                    self.current.ipdv.record(delay.wrapping_sub(stream.last_delay) as i64);
                }
                stream.next += 1;
                stream.last_delay = delay;
                arrived = Some(now);
                stream.counts.received += 1;
                self.current.delays.record(delay);
                if MIX {
                    self.mix_bytes += frame_len as u64;
                    stream.in_mix += 1;
                    if stream.in_mix >= self.mix.len() {
                        stream.in_mix = 0;
                    }
                }
            } else {
                let run = Passed { before: arrived, now, departure: stamp.departure };
                if ahead > 0 {
                    arrived = Some(now);
                }
                if stream.out_of_sequence(ahead, delay, run, self.intervals.as_deref_mut()) {
                    if ahead < 0 {
                        self.slices.iter_mut().for_each(|slices| slices.came_late(stamp.departure, delay));
                    }
                    self.current.delays.record(delay);
                    if MIX {
                        self.mix_bytes += frame_len as u64;
                    }
                }
                if MIX {
                    stream.in_mix = (stream.next % self.mix.len().max(1) as u64) as usize;
                }
            }
        }
        self.arrived = arrived;
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
            received_bytes: u64::from(FCS_BYTES) * sum.received
                + if self.mix.is_empty() { sum.received * self.frame_len as u64 } else { self.mix_bytes },
        }
    }

    /// The counts of one expected stream; `None` for any other.
    pub fn stream(&self, id: u16) -> Option<StreamCounts> {
        let slot = self.slots.get(usize::from(id))?;
        self.streams.get(usize::from(*slot)).map(|stream| stream.counts)
    }

    /// What was lost of an expected stream of `sent` frames; of any other nothing.
    pub fn losses(&self, id: u16, sent: u64) -> Losses {
        let stream = self.slots.get(usize::from(id)).and_then(|slot| self.streams.get(usize::from(*slot)));
        stream.map_or_else(Losses::default, |s| s.runs.losses(s.next, sent, self.arrived))
    }

    /// Each interval that was asked for, in order.
    pub fn intervals(&self) -> Vec<Interval> {
        self.intervals.as_ref().map_or_else(Vec::new, |intervals| intervals.all(&self.current))
    }

    /// Each slice that was asked for, in order.
    pub fn slices(&self) -> Vec<CheckedSlice> {
        self.slices.as_ref().map_or_else(Vec::new, |slices| slices.all(self.totals()))
    }

    /// One-way delay of every received frame, in ticks.
    pub fn delays(&self) -> Cow<'_, LogHistogram> {
        let mut delays = Cow::Borrowed(&self.current.delays);
        if let Some(intervals) = &self.intervals {
            delays.to_mut().merge(&intervals.whole.delays);
        }
        delays
    }

    /// Delay less the delay of the frame sent just before (RFC 5481 §4.1), in ticks, over pairs that came in
    /// sequence: pairs with a lost or reordered frame are left out.
    pub fn ipdv(&self) -> Cow<'_, SignedHistogram> {
        let mut ipdv = Cow::Borrowed(&self.current.ipdv);
        if let Some(intervals) = &self.intervals {
            ipdv.to_mut().merge(&intervals.whole.ipdv);
        }
        ipdv
    }

    /// The first few frames that were not as expected.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }
}

/// Length of the frame so far ahead of this one in a mix, without FCS.
#[inline]
fn length_in(mix: &[usize], next: u64, ahead: i32) -> usize {
    let sequence = next.checked_add_signed(ahead.into()).unwrap_or_default();
    mix.get((sequence % mix.len().max(1) as u64) as usize).copied().unwrap_or_default()
}

impl Stream {
    /// Counts a frame that is not the next one; whether it is received for the first time.
    #[cold]
    #[inline(never)]
    fn out_of_sequence(&mut self, ahead: i32, delay: u64, passed: Passed, intervals: Option<&mut Intervals>) -> bool {
        if let Ok(frames) = u64::try_from(ahead) {
            let sequence = self.next + frames;
            self.window.mark_ahead(self.next, sequence);
            let Passed { before, now, departure } = passed;
            let run = LostRun { first: self.next, frames, before, behind: Some(now), departed: Some(departure) };
            self.runs.missed(run);
            if let Some(intervals) = intervals {
                intervals.missed(frames);
            }
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
        let sequence = self.next - behind;
        let first = self.window.mark_within(sequence);
        if first {
            self.counts.received += 1;
            self.counts.reordered += 1;
            let run = self.runs.came(sequence);
            if let Some(intervals) = intervals {
                intervals.came(run.and_then(|run| run.behind));
            }
        } else {
            self.counts.duplicates += 1;
        }
        first
    }
}
