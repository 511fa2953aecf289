//! When the frames of a flow program left.

/// The most marks kept: twice as far apart whenever they are full.
const MARKS: usize = 1 << 16;

/// When the frames of a stream left, at marks a power of two frames apart: of bounded size however many frames.
#[derive(Debug, Clone)]
pub struct Departures {
    /// Departure of frame `i << shift`, in ticks.
    marks: Vec<u64>,
    shift: u32,
}

/// When a frame left, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// Not before.
    pub earliest: u64,
    /// Most likely: frames between two marks at an even distance.
    pub likely: u64,
    /// Not after.
    pub latest: u64,
}

impl Default for Departures {
    fn default() -> Self {
        Self { marks: Vec::with_capacity(MARKS), shift: 0 }
    }
}

impl Departures {
    /// Frames `from..from + n` leave at this tick. Earlier times of them and of later ones are forgotten: the port
    /// had refused them.
    #[inline]
    pub fn sent(&mut self, from: u64, n: u64, tick: u64) {
        self.marks.truncate(from.div_ceil(1 << self.shift) as usize);
        while (self.marks.len() as u64) << self.shift < from + n {
            if self.marks.len() == MARKS {
                self.thin();
            } else {
                self.marks.push(tick);
            }
        }
    }

    /// Keeps every second mark.
    #[cold]
    #[inline(never)]
    fn thin(&mut self) {
        let mut at = 0usize;
        self.marks.retain(|_| {
            at += 1;
            at % 2 == 1
        });
        self.shift += 1;
    }

    /// When frame `n` of `frames` left, whose last left at `end`.
    pub fn left(&self, n: u64, frames: u64, end: u64) -> Left {
        let at = n >> self.shift;
        let mark = |i: u64| self.marks.get(usize::try_from(i).unwrap_or(usize::MAX)).copied();
        let earliest = mark(at).unwrap_or(end).min(end);
        let (from, next) = (at << self.shift, (at + 1) << self.shift);
        if n == from {
            return Left { earliest, likely: earliest, latest: earliest };
        }
        let (to, latest) = match mark(at + 1) {
            Some(tick) if next < frames => (next, tick.min(end)),
            _ => (frames.saturating_sub(1).max(n), end),
        };
        let share = u128::from(latest.saturating_sub(earliest)) * u128::from(n - from) / u128::from((to - from).max(1));
        Left { earliest, likely: earliest + share as u64, latest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_departure_is_within_its_bounds_however_many_frames() {
        let mut log = Departures::default();
        let tick = |n: u64| 1000 + n / 7 * 100;
        let frames = 7 * 300_000;
        for burst in 0..frames / 7 {
            log.sent(burst * 7, 7, tick(burst * 7));
        }
        assert!(log.marks.len() <= MARKS && log.shift == 6);
        let end = tick(frames - 1);
        for n in (0..frames).step_by(997).chain([0, 1, frames - 2, frames - 1]) {
            let left = log.left(n, frames, end);
            assert!(left.earliest <= tick(n) && tick(n) <= left.latest, "{n}: {left:?} {}", tick(n));
            assert!(left.earliest <= left.likely && left.likely <= left.latest);
            assert!(left.likely.abs_diff(tick(n)) <= 200);
        }
    }

    #[test]
    fn frames_refused_leave_when_they_are_taken() {
        let mut log = Departures::default();
        log.sent(0, 8, 10);
        // Frames 3 to 7 were refused and are written again.
        log.sent(3, 8, 20);
        let at = |n| log.left(n, 11, 20).likely;
        assert_eq!([at(0), at(2), at(3), at(10)], [10, 10, 20, 20]);
    }
}
