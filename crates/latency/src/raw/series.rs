//! One measurement of raw frames while it goes on: its times, its counts, and when it ends.

use std::{
    io,
    time::{Duration, Instant},
};

use packet::Clock;

use super::{
    frame::Frame,
    options::RawOptions,
    way::{Stamped, Way},
};
use crate::{
    disturbed::Judged,
    patience::Patience,
    pingpong::Ended,
    summary::{is_precise, uncertainty, Precision},
    tally::{Counts, Tally},
};

/// Without a frame for so long, the other end is gone.
pub(super) const GONE: Duration = Duration::from_secs(3);
/// Without a frame for so long when the time is over, it was gone: three frames at least. On a slow way it is given longer.
const SILENT: Duration = Duration::from_millis(300);
/// The number of frames that are not timed: the others count from 1.
pub(super) const BACKGROUND: u64 = 0;
/// Frames of the background that go out at once at most: what a machine that was away missed is not made up for.
const MOST_AT_ONCE: u64 = 16;
/// How often a precision that was asked for is looked at, in samples.
pub(super) const LOOK: u64 = 1000;

/// What came of it.
#[derive(Debug)]
pub struct RawMeasured {
    /// The times.
    pub times: Judged,
    /// What became of the frames.
    pub counts: Counts,
    /// Frames that the port did not take.
    pub refused: u64,
    /// Frames that came back without time stamps, where these count.
    pub unstamped: u64,
    /// Further frames that went out beside, a second; `None` where none were wanted.
    pub background: Option<f64>,
    /// How many of them were wanted.
    pub background_asked: Option<f64>,
    /// The least and the most bytes of frames that were forwarded, without FCS; `None` of frames from end to end.
    pub bytes: Option<(usize, usize)>,
    /// How long it measured, without the warm-up, seconds.
    pub seconds: f64,
    /// Why it ended.
    pub ended: Ended,
    /// How precisely it was to be known, where that was asked.
    pub precision: Option<Precision>,
    /// The first times one by one, in clocks.
    pub clocks: Vec<u64>,
}

/// A kernel that has not begun to stamp frames until then does not stamp them.
const STAMPS_BEGIN: Duration = Duration::from_secs(2);

/// One measurement on the thread that calls.
pub(super) struct Series<'a, C> {
    clock: &'a C,
    options: &'a RawOptions,
    pub(super) tally: Tally,
    pub(super) times: Judged,
    pub(super) patience: Patience,
    pub(super) refused: u64,
    pub(super) bytes: Option<(usize, usize)>,
    pub(super) unstamped: u64,
    /// The latest frame had no time stamp.
    awaits_stamps: bool,
    /// Of the background: frames that went out, and those that were not made up for.
    beside: (u64, u64),
    clocks: Vec<u64>,
    begun: Instant,
    pub(super) last: Instant,
    pub(super) seen: u64,
    counts: bool,
}

impl<'a, C: Clock> Series<'a, C> {
    pub(super) fn new(clock: &'a C, options: &'a RawOptions) -> io::Result<Self> {
        let times = || Judged::new().ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory));
        let now = Instant::now();
        Ok(Self {
            clock,
            options,
            tally: Tally::default(),
            times: times()?,
            patience: Patience::default(),
            refused: 0,
            bytes: None,
            unstamped: 0,
            awaits_stamps: false,
            beside: (0, 0),
            clocks: Vec::with_capacity(options.keep.min(usize::try_from(options.samples).unwrap_or(usize::MAX))),
            begun: now,
            last: now,
            seen: 0,
            counts: false,
        })
    }

    pub(super) fn ticks(&self, time: Duration) -> u64 {
        (time.as_secs_f64() * self.clock.hz() as f64) as u64
    }

    /// The warm-up is over: what was counted is forgotten.
    pub(super) fn begin_if_warm(&mut self) {
        // A way so slow that a warm-up by number takes too long is warm after a tenth of the time.
        let warm =
            self.seen >= self.options.warm_ups || (self.seen > 0 && self.begun.elapsed() > self.options.time / 10);
        // The kernel begins to stamp some milliseconds after it was asked to, beside other work later.
        let awaits_stamps = self.awaits_stamps && self.begun.elapsed() < STAMPS_BEGIN;
        if self.counts || !warm || awaits_stamps {
            return;
        }
        if let Some(times) = Judged::new() {
            self.times = times;
        }
        (self.tally, self.refused, self.unstamped, self.beside, self.counts) = (Tally::default(), 0, 0, (0, 0), true);
        self.begun = Instant::now();
    }

    /// Sends what is due of the background.
    pub(super) fn background(&mut self, way: &mut impl Way, frame: &mut Frame) {
        let Some(rate) = self.options.background else { return };
        let due = (self.begun.elapsed().as_secs_f64() * rate) as u64;
        let mut now = due.saturating_sub(self.beside.0 + self.beside.1);
        self.beside.1 += now.saturating_sub(MOST_AT_ONCE);
        now = now.min(MOST_AT_ONCE);
        frame.number(BACKGROUND);
        for _ in 0..now {
            match way.load(frame.bytes()) && way.fire() {
                true => self.beside.0 += 1,
                false => self.beside.1 += 1,
            }
        }
    }

    /// Adds the time of a frame.
    pub(super) fn add(&mut self, clocks: u64, stamped: Stamped) {
        let now = Instant::now();
        let ns = (u128::from(clocks) * 1_000_000_000 / u128::from(self.clock.hz().max(1))) as u64;
        self.patience.saw(Duration::from_nanos(ns));
        self.awaits_stamps = matches!(stamped, Stamped::Missing);
        match stamped {
            Stamped::Unused => self.times.add(ns, now),
            Stamped::Ns(ns) => self.times.add(ns, now),
            Stamped::Missing => self.unstamped += 1,
        }
        if self.counts && self.clocks.len() < self.clocks.capacity() {
            self.clocks.push(clocks);
        }
        self.last = now;
        self.seen += 1;
    }

    /// A frame to forward has so many bytes.
    #[inline]
    pub(super) fn saw_bytes(&mut self, bytes: usize) {
        let (least, most) = self.bytes.unwrap_or((bytes, bytes));
        self.bytes = Some((least.min(bytes), most.max(bytes)));
    }

    /// Why it ends now, if it does.
    pub(super) fn ended(&self, go_on: &dyn Fn() -> bool) -> io::Result<Option<Ended>> {
        if !go_on() {
            return Ok(Some(Ended::Stopped));
        }
        let silence = if self.seen == 0 { GONE } else { self.patience.silence(GONE) };
        if self.last.elapsed() > silence {
            let why = format!("no frame came for {} s", self.last.elapsed().as_secs());
            return if self.seen == 0 { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(Ended::Gone(why))) };
        }
        let count = self.times.all.count();
        if !self.counts {
            return Ok(None);
        }
        if count >= self.options.samples {
            return Ok(Some(Ended::Done));
        }
        if self.begun.elapsed() >= self.options.time {
            let silent = self.last.elapsed() > self.patience.silence(SILENT);
            return Ok(Some(if silent { Ended::Gone("no frame came at the end".to_owned()) } else { Ended::Done }));
        }
        let precise = self
            .options
            .precision
            .is_some_and(|share| count > 0 && count.is_multiple_of(LOOK) && is_precise(&self.times.all, share));
        Ok(precise.then_some(Ended::Precise))
    }

    pub(super) fn end(mut self, ended: Ended) -> RawMeasured {
        self.times.end();
        let seconds = if self.counts { self.begun.elapsed().as_secs_f64() } else { 0.0 };
        if !self.counts {
            // Nothing of a warm-up is a figure.
            if let Some(times) = Judged::new() {
                (self.times, self.tally) = (times, Tally::default());
            }
        }
        let reached = || uncertainty(&self.times.all);
        RawMeasured {
            precision: self.options.precision.map(|asked| Precision { asked, reached: reached() }),
            times: self.times,
            counts: self.tally.end(),
            refused: self.refused,
            unstamped: self.unstamped,
            bytes: self.bytes,
            background: self
                .options
                .background
                .map(|_| if seconds > 0.0 { self.beside.0 as f64 / seconds } else { 0.0 }),
            background_asked: self.options.background,
            seconds,
            ended,
            clocks: self.clocks,
        }
    }
}
