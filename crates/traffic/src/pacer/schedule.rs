//! How many frames have fallen due at a moment of a trial, for each shape of load.

use units::Fps;

/// More frames than 2^48 in a trial, or 2^16 a tick, no port takes; the bounds keep the arithmetic in range.
const MOST_FRAMES: u64 = 1 << 48;
const MOST_PER_TICK: u32 = 16;

/// How the frames of a trial are spread over it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// Evenly.
    Steady,
    /// Exactly so many frames at the rate, as long as that takes.
    Burst {
        /// Frames.
        frames: u64,
    },
    /// Bursts of `frames` frames, spaced so that whole bursts make up the rate; at least one.
    Bursts {
        /// Frames of one burst.
        frames: u32,
        /// Rate within a burst; the trial's where that is higher.
        rate: Fps,
    },
    /// The rate for so long, then another for the rest.
    Step {
        /// Ticks at the first rate.
        after: u64,
        /// The second rate.
        rate: Fps,
    },
}

/// A product with a factor below 2^64 that holds 64 binary places.
#[derive(Debug, Clone, Copy)]
pub(super) struct Factor {
    whole: u64,
    fraction: u64,
}

impl Factor {
    /// `of / over`, rounded up, so that a frame due at a whole tick is due at that tick and not the next.
    fn ratio(of: u64, over: u64) -> Self {
        let fixed = (u128::from(of) << 64).div_ceil(u128::from(over.max(1)));
        Self { whole: (fixed >> 64) as u64, fraction: fixed as u64 }
    }

    #[inline(always)]
    pub(super) fn times(self, n: u64) -> u64 {
        self.whole * n + ((u128::from(self.fraction) * u128::from(n)) >> 64) as u64
    }
}

/// So many frames, evenly over so many ticks: frame `k` at `k * duration / frames`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) frames: u64,
    pub(super) duration: u64,
    pub(super) per_tick: Factor,
}

impl Line {
    /// `round(rate * duration)` frames.
    pub(super) fn lasting(rate: Fps, hz: u64, duration: u64) -> Self {
        let most = u128::from(MOST_FRAMES).min(u128::from(duration) << MOST_PER_TICK) as f64;
        Self::over((rate.get() * duration as f64 / hz.max(1) as f64).round().min(most) as u64, duration)
    }

    /// Exactly so many frames at this rate; none at no rate.
    fn from_frames(frames: u64, rate: Fps, hz: u64) -> Self {
        let frames = if rate > Fps::ZERO { frames.min(MOST_FRAMES) } else { 0 };
        let ticks = (frames as f64 * hz as f64 / rate.get().max(f64::MIN_POSITIVE)).round() as u64;
        // Half the clock's range is 100 years.
        Self::over(frames, ticks.clamp((frames >> MOST_PER_TICK) + 1, u64::MAX / 2))
    }

    fn over(frames: u64, duration: u64) -> Self {
        Self { frames, duration, per_tick: Factor::ratio(frames, duration) }
    }

    /// Frames due after so many ticks.
    #[inline(always)]
    pub(super) fn frames_due(&self, elapsed: u64) -> u64 {
        if elapsed >= self.duration {
            self.frames
        } else {
            (self.per_tick.times(elapsed) + 1).min(self.frames)
        }
    }
}

/// Frames due, of the shapes that are not steady.
#[derive(Debug, Clone, Copy)]
pub(super) enum Schedule {
    /// So many bursts, one every `period` / 2^64 ticks.
    Bursts { burst: Line, count: u64, period: u128 },
    /// One line, then another.
    Step { first: Line, second: Line },
}

impl Schedule {
    /// `None` for a steady load.
    pub(super) fn new(shape: Shape, rate: Fps, hz: u64, duration: u64) -> Option<Self> {
        Some(match shape {
            Shape::Steady => return None,
            Shape::Burst { frames } => {
                Self::Bursts { burst: Line::from_frames(frames, rate, hz), count: 1, period: u128::MAX }
            }
            Shape::Bursts { frames, rate: within } => {
                let within = if within > rate { within } else { rate };
                let burst = Line::from_frames(u64::from(frames), within, hz);
                let count = Line::lasting(rate, hz, duration).frames.checked_div(burst.frames).unwrap_or(0).max(1);
                let period = f64::from(frames) * hz as f64 / rate.get().max(f64::MIN_POSITIVE);
                Self::Bursts { burst, count, period: ((period * 2f64.powi(64)) as u128).max(1) }
            }
            Shape::Step { after, rate: then } => {
                let after = after.min(duration);
                Self::Step { first: Line::lasting(rate, hz, after), second: Line::lasting(then, hz, duration - after) }
            }
        })
    }

    /// Frames of the whole trial.
    pub(super) fn frames(&self) -> u64 {
        match self {
            Self::Bursts { burst, count, .. } => burst.frames * count,
            Self::Step { first, second } => first.frames + second.frames,
        }
    }

    /// Frames due after so many ticks.
    pub(super) fn frames_due(&self, elapsed: u64) -> u64 {
        match self {
            Self::Bursts { burst, count, period } => {
                // Burst k begins at floor(k * period / 2^64): the last that has begun, of those there are.
                let begun =
                    ((((u128::from(elapsed.min(u64::MAX / 2)) + 1) << 64) - 1) / period).min(u128::from(count - 1));
                let start = ((begun * period) >> 64) as u64;
                begun as u64 * burst.frames + burst.frames_due(elapsed.saturating_sub(start))
            }
            Self::Step { first, second } => match elapsed.checked_sub(first.duration) {
                Some(since) => first.frames + second.frames_due(since),
                None => first.frames_due(elapsed),
            },
        }
    }
}
