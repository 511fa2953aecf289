//! Which frames of a stream are missing, in runs: kept while a late arrival may still fill them.

use std::collections::VecDeque;

/// Runs kept in full. When more are missing at once, of the oldest only the longest and the last are remembered.
const OPEN: usize = 1024;

/// Consecutive frames of a stream that did not come. Ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LostRun {
    /// Sequence number of the first, from 0.
    pub first: u64,
    /// How many.
    pub frames: u64,
    /// Arrival of the frame before; `None` when none came before.
    pub before: Option<u64>,
    /// Arrival of the frame behind; `None` when none came.
    pub behind: Option<u64>,
    /// Departure of the frame behind.
    pub departed: Option<u64>,
}

/// What was lost of a stream, as far as frames that came late leave it lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Losses {
    /// The longest run, the first of them if there are several.
    pub longest: Option<LostRun>,
    /// The run with the highest sequence numbers.
    pub last: Option<LostRun>,
}

impl LostRun {
    fn end(&self) -> u64 {
        self.first + self.frames
    }

    fn holds(&self, sequence: u64) -> bool {
        (self.first..self.end()).contains(&sequence)
    }

    /// What is left below and above a frame of it.
    fn without(&self, sequence: u64) -> (Self, Self) {
        let below = Self { frames: sequence - self.first, ..*self };
        (below, Self { first: sequence + 1, frames: self.end() - sequence - 1, ..*self })
    }
}

/// The runs of one stream in rising order.
#[derive(Debug, Clone)]
pub(crate) struct Runs {
    open: VecDeque<LostRun>,
    /// Of those no longer kept: the longest and the last; empty when there is none.
    longest: LostRun,
    last: LostRun,
}

impl Default for Runs {
    fn default() -> Self {
        Self { open: VecDeque::with_capacity(OPEN), longest: LostRun::default(), last: LostRun::default() }
    }
}

impl Runs {
    /// Frames that were passed over, above all before.
    pub(crate) fn missed(&mut self, run: LostRun) {
        self.make_room();
        self.open.push_back(run);
    }

    fn make_room(&mut self) {
        if self.open.len() < OPEN {
            return;
        }
        if let Some(run) = self.open.pop_front() {
            if run.frames > self.longest.frames {
                self.longest = run;
            }
            self.last = run;
        }
    }

    /// A frame that was passed over has come after all. The run it was in, if that is still known.
    pub(crate) fn came(&mut self, sequence: u64) -> Option<LostRun> {
        let at = self.open.partition_point(|run| run.first <= sequence).wrapping_sub(1);
        let Some(run) = self.open.get_mut(at).filter(|run| run.holds(sequence)) else {
            return self.came_of_old(sequence);
        };
        let whole = *run;
        match whole.without(sequence) {
            (below, above) if below.frames > 0 && above.frames > 0 => {
                *run = above;
                let full = self.open.len() == OPEN;
                self.make_room();
                match at.checked_sub(usize::from(full)) {
                    Some(at) => self.open.insert(at, below),
                    // It was the oldest, and its upper part is settled now: below it nothing is the last.
                    None => self.longest = if below.frames > self.longest.frames { below } else { self.longest },
                }
            }
            (below, _) if below.frames > 0 => *run = below,
            (_, above) if above.frames > 0 => *run = above,
            _ => {
                self.open.remove(at);
            }
        }
        Some(whole)
    }

    /// What is remembered of old runs must not hold a frame that came; of a run in two the larger part is the longest.
    fn came_of_old(&mut self, sequence: u64) -> Option<LostRun> {
        let known = [self.longest, self.last].into_iter().find(|run| run.holds(sequence))?;
        if self.longest.holds(sequence) {
            let (below, above) = self.longest.without(sequence);
            self.longest = if above.frames > below.frames { above } else { below };
        }
        if self.last.holds(sequence) {
            let (below, above) = self.last.without(sequence);
            self.last = if above.frames > 0 { above } else { below };
        }
        Some(known)
    }

    /// What is lost when no more comes, of `sent` frames, of which all from `next` on never came, the last frame that
    /// came at `before`.
    pub(crate) fn losses(&self, next: u64, sent: u64, before: Option<u64>) -> Losses {
        let tail = LostRun { first: next, frames: sent.saturating_sub(next), before, behind: None, departed: None };
        let known = || std::iter::once(&self.longest).chain(&self.open).chain([&tail]).filter(|run| run.frames > 0);
        let longest = known().fold(None, |best: Option<&LostRun>, run| match best {
            Some(best) if best.frames >= run.frames => Some(best),
            _ => Some(run),
        });
        let last = known().chain([&self.last].into_iter().filter(|run| run.frames > 0)).max_by_key(|run| run.first);
        Losses { longest: longest.copied(), last: last.copied() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Frames arrive at ten times their turn.
    fn arrive(order: &[u64]) -> (Runs, u64) {
        let (mut runs, mut next) = (Runs::default(), 0);
        for (turn, &sequence) in order.iter().enumerate() {
            let now = turn as u64 * 10;
            if sequence > next {
                let before = now.checked_sub(10);
                let run =
                    LostRun { first: next, frames: sequence - next, before, behind: Some(now), departed: Some(now) };
                runs.missed(run);
            } else if sequence < next {
                runs.came(sequence);
            }
            next = next.max(sequence + 1);
        }
        (runs, next)
    }

    fn spans(losses: Losses) -> [(u64, u64); 2] {
        [losses.longest, losses.last].map(|run| run.map_or((0, 0), |r| (r.first, r.frames)))
    }

    #[test]
    fn the_longest_and_the_last_and_what_never_came() {
        let (runs, next) = arrive(&[0, 1, 4, 5, 7]);
        let losses = runs.losses(next, 8, Some(40));
        assert_eq!(spans(losses), [(2, 2), (6, 1)]);
        let longest = losses.longest.unwrap();
        assert_eq!((longest.before, longest.behind), (Some(10), Some(20)));
        let tail = runs.losses(next, 20, Some(40));
        assert_eq!(spans(tail), [(8, 12), (8, 12)]);
        assert_eq!((tail.last.unwrap().before, tail.last.unwrap().behind), (Some(40), None));
        assert_eq!(spans(arrive(&[]).0.losses(0, 5, None)), [(0, 5), (0, 5)]);
        assert_eq!(arrive(&[0, 1]).0.losses(2, 2, Some(10)), Losses::default());
    }

    #[test]
    fn late_frames_leave_no_false_loss() {
        // A run filled from its middle, then its ends.
        assert_eq!(spans(arrive(&[0, 6, 3]).0.losses(7, 7, None)), [(1, 2), (4, 2)]);
        assert_eq!(spans(arrive(&[0, 6, 3, 5, 4]).0.losses(7, 7, None)), [(1, 2), (1, 2)]);
        assert_eq!(arrive(&[0, 6, 3, 5, 4, 1, 2]).0.losses(7, 7, None), Losses::default());
        // Each keeps the arrivals around the run it was part of.
        let last = arrive(&[0, 6, 3]).0.losses(7, 7, None).last.unwrap();
        assert_eq!((last.before, last.behind), (Some(0), Some(10)));
    }

    proptest! {
        /// Against the set of all frames, while no more runs are open than are kept.
        #[test]
        fn runs_are_those_of_the_set(jumps in proptest::collection::vec(prop_oneof![3 => 1i64..4, 1 => -30i64..30], 1..300), tail in 0u64..5) {
            let (mut order, mut at) = (Vec::new(), 0i64);
            let mut seen = std::collections::BTreeSet::new();
            for jump in jumps {
                at = (at + jump).max(0);
                if seen.insert(at as u64) {
                    order.push(at as u64);
                }
            }
            let (runs, next) = arrive(&order);
            let (mut best, mut last, mut first) = ((0, 0), (0, 0), 0);
            for come in seen.iter().copied().chain([next + tail]) {
                if come > first {
                    last = (first, come - first);
                    best = if last.1 > best.1 { last } else { best };
                }
                first = come + 1;
            }
            prop_assert_eq!(spans(runs.losses(next, next + tail, None)), [best, last]);
        }

        /// However many are open: a frame that came is in no run, and the last run is exact unless filled from far back.
        #[test]
        fn no_run_holds_a_frame_that_came(step in 2u64..5, late in proptest::collection::vec(0u64..12_000, 0..200)) {
            let mut order: Vec<u64> = (0..3000).map(|i| i * step).collect();
            let highest = 2999 * step;
            let mut seen: std::collections::BTreeSet<u64> = order.iter().copied().collect();
            order.extend(late.into_iter().filter(|&s| s < highest && seen.insert(s)));
            let losses = arrive(&order).0.losses(highest + 1, highest + 1, None);
            for run in [losses.longest, losses.last].into_iter().flatten() {
                prop_assert!(!seen.iter().any(|&s| run.holds(s)), "{run:?}");
            }
            let want = (0..highest).rev().find(|s| !seen.contains(s)).unwrap();
            prop_assert_eq!(losses.last.unwrap().end() - 1, want);
        }
    }
}
