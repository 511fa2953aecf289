//! When frames are due.

mod schedule;

use units::Fps;

pub use schedule::Shape;
use schedule::{Line, Schedule};

/// Spreads a trial's frames over its duration, in integer arithmetic.
///
/// Frame `k` of a steady load is due at `start + k * duration / intended`. A poll that comes late is given what fell
/// due meanwhile, but never more than `catch_up` ticks' worth: a burst would not be the load that was asked for, so that
/// the rest counts as skipped and the tester is known to have fallen short. However the polls fall,
/// frames given + [`skipped`](Self::skipped) = [`intended`](Self::intended) at the end.
#[derive(Debug, Clone)]
pub struct Pacer {
    start: u64,
    /// All of a steady load.
    line: Line,
    intended: u64,
    /// The most frames of a steady load that are made up for; none of another, whose schedule says.
    catch_up: u64,
    /// Frames given or skipped.
    accounted: u64,
    skipped: u64,
    /// Any other load, and the longest stall that is made up for, in ticks.
    shaped: Option<(Schedule, u64)>,
}

impl Pacer {
    /// The default of `catch_up`: 100 us, in ticks of a clock of `hz`.
    pub const fn default_catch_up(hz: u64) -> u64 {
        hz / 10_000
    }

    /// That of bursts: 20 us. A burst that is sent later than that is not the burst that was asked for.
    pub const fn burst_catch_up(hz: u64) -> u64 {
        hz / 50_000
    }

    /// A pacer for `round(rate * duration)` frames over `duration` ticks of a clock of `hz`.
    ///
    /// `catch_up` is the longest stall, in ticks, that is made up for; at least one frame always is.
    pub fn new(rate: Fps, hz: u64, duration: u64, catch_up: u64) -> Self {
        Self::shaped(Shape::Steady, rate, hz, duration, catch_up)
    }

    /// The same for any shape of load. A frame is skipped when it was due more than `catch_up` ticks ago, also when a
    /// burst is over or the next one has begun; the last one due never is.
    pub fn shaped(shape: Shape, rate: Fps, hz: u64, duration: u64, catch_up: u64) -> Self {
        let line = Line::lasting(rate, hz, duration);
        let shaped = Schedule::new(shape, rate, hz, duration).map(|schedule| (schedule, catch_up));
        Self {
            // Nothing is due before the start.
            start: u64::MAX,
            line,
            intended: shaped.map_or(line.frames, |(schedule, _)| schedule.frames()),
            catch_up: if shaped.is_some() { 0 } else { line.per_tick.times(catch_up.min(line.duration)).max(1) },
            accounted: 0,
            skipped: 0,
            shaped,
        }
    }

    /// Starts the trial at this tick, which may lie ahead.
    pub fn start(&mut self, now: u64) {
        (self.start, self.accounted, self.skipped) = (now, 0, 0);
    }

    /// Takes the frames that are due now, at most `max`; the caller sends them or counts them as refused.
    #[inline]
    pub fn due(&mut self, now: u64, max: usize) -> usize {
        let mut behind = self.target(now) - self.accounted;
        if behind > self.catch_up {
            behind = self.catch_up(now, behind);
        }
        let n = behind.min(max as u64);
        self.accounted += n;
        n as usize
    }

    /// Skips what is too late for being made up; what is left is due.
    #[cold]
    fn catch_up(&mut self, now: u64, behind: u64) -> u64 {
        let excess = match &self.shaped {
            None => behind - self.catch_up,
            Some((schedule, catch_up)) => {
                let stale = (now - self.start).checked_sub(*catch_up).map_or(0, |then| schedule.frames_due(then));
                stale.saturating_sub(self.accounted).min(behind - 1)
            }
        };
        self.skipped += excess;
        self.accounted += excess;
        behind - excess
    }

    /// Frames that should have left by now.
    #[inline]
    fn target(&self, now: u64) -> u64 {
        if now < self.start {
            return self.accounted;
        }
        let elapsed = now - self.start;
        if let Some((schedule, _)) = &self.shaped {
            return schedule.frames_due(elapsed).min(self.intended).max(self.accounted);
        }
        if elapsed >= self.line.duration {
            self.intended
        } else {
            self.line.frames_due(elapsed).min(self.intended).max(self.accounted)
        }
    }

    /// Ends the trial now, before its time: what has fallen due and was not given is skipped, and
    /// [`intended`](Self::intended) is what fell due until now.
    pub fn stop(&mut self, now: u64) {
        self.intended = self.target(now);
        self.skipped += self.intended - self.accounted;
        self.accounted = self.intended;
    }

    /// Whether all frames have been given or skipped.
    #[inline]
    pub fn finished(&self) -> bool {
        self.accounted == self.intended
    }

    /// Frames that the load asks for in the duration.
    pub fn intended(&self) -> u64 {
        self.intended
    }

    /// Frames that were due and never given, because the tester polled too late or too seldom.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

#[cfg(test)]
mod tests;
