//! When each frame of a capture is due.

use std::time::Duration;

use units::Fps;

/// How far apart the frames of a capture are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Timing {
    /// As captured. A frame that was captured before the one ahead of it, by its time, leaves together with that one.
    Captured {
        /// So many times as fast.
        speed: f64,
        /// The longest time between two frames as they are sent.
        max_gap: Option<Duration>,
    },
    /// Evenly.
    Even(Fps),
}

/// Why a capture cannot be sent this way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimelineError {
    /// One frame, or all of one time.
    #[error("its frames have no time between them")]
    NoTime,
    /// No frame is later than the one before it, and one is earlier.
    #[error("its times run backwards: no frame was captured after the one before it")]
    Backwards,
    /// No rate, or beyond what a clock can hold.
    #[error("one pass takes longer than a year")]
    TooLong,
}

const YEAR_S: f64 = 365.0 * 86_400.0;
/// Binary places of the length of a pass.
const PLACES: u32 = 32;
/// One tick with them.
const ONE: f64 = (1u64 << PLACES) as f64;

/// When each frame of a capture is due, pass after pass, in ticks from the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// Of the first pass, rising.
    due: Box<[u64]>,
    /// From the first frame of a pass to that of the next, in ticks with 32 binary places.
    pass: u128,
}

impl Timeline {
    /// Frames captured at these times in ns, for a clock of `hz`. After the last frame of a pass the mean gap follows.
    pub fn new(times_ns: &[u64], timing: Timing, hz: u64) -> Result<Self, TimelineError> {
        let frames = times_ns.len() as f64;
        let hz_f = hz as f64;
        let (due, pass): (Box<[u64]>, f64) = match timing {
            Timing::Captured { speed, max_gap } => {
                let most = max_gap.map_or(f64::INFINITY, |gap| gap.as_secs_f64() * 1e9);
                let (mut at_ns, mut before) = (0.0, u64::MAX);
                let one = |&time: &u64| {
                    at_ns += (time.saturating_sub(before) as f64 / speed).min(most);
                    before = time;
                    (at_ns * hz_f / 1e9).round() as u64
                };
                let due = times_ns.iter().map(one).collect();
                (due, at_ns * hz_f / 1e9 / (frames - 1.0) * frames)
            }
            Timing::Even(rate) => {
                let gap = hz_f / rate.get();
                ((0..times_ns.len()).map(|n| (n as f64 * gap).round() as u64).collect(), frames * gap)
            }
        };
        if pass > YEAR_S * hz_f {
            return Err(TimelineError::TooLong);
        }
        // One frame alone has no mean gap, which is not a number.
        let pass = (pass * ONE) as u128;
        if due.is_empty() || pass == 0 {
            let backwards = times_ns.windows(2).any(|pair| matches!(pair, [one, next] if next < one));
            return Err(if backwards { TimelineError::Backwards } else { TimelineError::NoTime });
        }
        Ok(Self { due, pass })
    }

    /// Length of a pass in ticks.
    pub fn pass(&self) -> f64 {
        self.pass as f64 / ONE
    }

    /// Frames due before so many ticks have passed.
    pub fn within(&self, ticks: u64) -> u64 {
        let passes = (u128::from(ticks) << PLACES) / self.pass;
        let rest = ticks - self.start(passes as u64);
        passes as u64 * self.due.len() as u64 + self.due.partition_point(|&due| due < rest) as u64
    }

    /// The first tick of a pass.
    #[inline]
    fn start(&self, pass: u64) -> u64 {
        ((u128::from(pass) * self.pass + (1 << (PLACES - 1))) >> PLACES) as u64
    }
}

/// A frame in the course of passes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor {
    pass: u64,
    pass_start: u64,
    /// Its number within the capture.
    pub(super) number: usize,
}

impl Cursor {
    /// When it is due, in ticks from the start.
    #[inline]
    pub(super) fn due(self, on: &Timeline) -> u64 {
        self.pass_start + on.due.get(self.number).copied().unwrap_or(0)
    }

    /// The next frame.
    #[inline]
    pub(super) fn step(&mut self, on: &Timeline) {
        self.number += 1;
        if self.number == on.due.len() {
            self.pass += 1;
            (self.number, self.pass_start) = (0, on.start(self.pass));
        }
    }
}
