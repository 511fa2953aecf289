//! From ticks to the time of day.

use crate::unix_time::since_1970;

/// Number of wall clocks that are distinguished: each step of the wall clock makes a new one. They have four bits in a slot's state.
pub(crate) const WALLS: usize = 16;

/// How far the wall clock may drift from the ticks between two anchors before the difference counts as a step: the two
/// may run at different rates (a part in 1,000, twice what NTP slews by), and an anchor is not exact.
const SLACK_NS: u64 = 5_000_000;
const SLEW: u64 = 1_000;

/// Converts ticks to wall clock times, also across steps of the wall clock.
///
/// Times follow from an anchor and the ticks. A new anchor ([`Self::follow`]) corrects the drift between the clocks. A
/// step of the wall clock leaves the times of existing flows unchanged: later flows use another wall clock, and each slot
/// holds the number of its wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timebase {
    /// The tick counter, at the anchor.
    ticks: u64,
    /// Nanoseconds since the Unix epoch, at that moment.
    unix_ns: u64,
    /// Ticks a second; zero is taken as one.
    hz: u64,
    /// The wall clock of what begins now.
    now: Wall,
    /// How far each other wall clock is ahead of it.
    ahead_ns: [i64; WALLS],
}

/// Number of a wall clock.
pub(crate) type Wall = u8;

impl Timebase {
    /// The tick counter of `hz` a second stands at `ticks`, the wall clock at `unix_ns` since the Unix epoch.
    pub fn new(ticks: u64, unix_ns: u64, hz: u64) -> Self {
        Self { ticks, unix_ns, hz, now: 0, ahead_ns: [0; WALLS] }
    }

    /// Now, when the tick counter of `hz` a second stands at `ticks`.
    pub fn now(ticks: u64, hz: u64) -> Self {
        let unix = since_1970();
        Self::new(ticks, u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX), hz)
    }

    /// Ticks a second, at least one.
    pub(crate) fn hz(&self) -> u64 {
        self.hz.max(1)
    }

    /// The time of a tick, before or after the anchor, in ns since the Unix epoch.
    pub fn unix_ns(&self, ticks: u64) -> u64 {
        let unix = u128::from(self.unix_ns);
        let at = match ticks.checked_sub(self.ticks) {
            Some(after) => unix + self.ns(after),
            None => unix.saturating_sub(self.ns(self.ticks - ticks)),
        };
        u64::try_from(at).unwrap_or(u64::MAX)
    }

    pub(crate) fn ns(&self, ticks: u64) -> u128 {
        u128::from(ticks) * 1_000_000_000 / u128::from(self.hz())
    }

    /// The time of a tick by this wall clock.
    pub(crate) fn at_by(&self, ticks: u64, wall: Wall) -> u64 {
        self.unix_ns(ticks).saturating_add_signed(self.ahead_ns.get(usize::from(wall)).copied().unwrap_or_default())
    }

    /// Continues from a later anchor.
    pub fn follow(&mut self, anchor: Self) {
        let passed = self.ns(anchor.ticks.saturating_sub(self.ticks));
        let step = i128::from(anchor.unix_ns) - i128::from(self.unix_ns(anchor.ticks));
        if step.unsigned_abs() > passed / u128::from(SLEW) + u128::from(SLACK_NS) {
            let step = i64::try_from(step).unwrap_or(if step < 0 { i64::MIN } else { i64::MAX });
            self.ahead_ns.iter_mut().for_each(|ahead| *ahead = ahead.saturating_sub(step));
            self.now = (self.now + 1) % WALLS as Wall;
            if let Some(now) = self.ahead_ns.get_mut(usize::from(self.now)) {
                *now = 0;
            }
        }
        *self = Self { ticks: anchor.ticks, unix_ns: anchor.unix_ns, ..*self };
    }

    /// The part that the worker needs.
    pub(crate) fn walls(&self) -> Walls {
        let behind = (0..).zip(self.ahead_ns).filter(|(_, ahead)| *ahead < 0);
        Walls(behind.fold(u64::from(self.now), |walls, (wall, _)| walls | 1 << (wall + BEHIND)))
    }
}

const BEHIND: u32 = 8;

/// The wall clock of new flows, and the set of wall clocks behind it, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Walls(pub(crate) u64);

impl Walls {
    /// The wall clock of what begins now.
    #[inline]
    pub(crate) fn now(self) -> u64 {
        self.0 & (WALLS as u64 - 1)
    }

    /// The wall clock for the next record of a flow that used this one. Never a clock that is behind, because times would
    /// run backwards.
    #[inline]
    pub(crate) fn next(self, wall: u64) -> u64 {
        if self.0 >> (BEHIND as u64 + wall) & 1 == 1 {
            self.now()
        } else {
            wall
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn ticks_are_told_from_the_anchor_both_ways() {
        let base = Timebase::new(1000, 5 * S, 4);
        assert_eq!(
            [1000, 1004, 1001, 998].map(|t| base.unix_ns(t)),
            [5_000_000_000, 6_000_000_000, 5_250_000_000, 4_500_000_000]
        );
        // Out of range is held at the ends.
        assert_eq!((Timebase { unix_ns: 9, ..base }.unix_ns(0), base.unix_ns(u64::MAX)), (0, u64::MAX));
        // A year of a fast counter is exact to the nanosecond.
        let fast = Timebase::new(7, 1, 2_596_136_000);
        assert_eq!(fast.unix_ns(7 + 2_596_136_000 * 31_557_600), 1 + 31_557_600 * S);
        assert!(Timebase::now(1, 0).unix_ns(2) > S);
    }

    #[test]
    fn a_drift_is_followed_and_a_step_makes_another_wall_clock() {
        let mut base = Timebase::new(0, 1000 * S, 1000);
        // A second later, and 2 ms off.
        base.follow(Timebase::new(1000, 1001 * S + 2_000_000, 1000));
        assert_eq!((base.walls(), base.unix_ns(2000)), (Walls(0), 1002 * S + 2_000_000));
        // An hour forwards, then two back.
        let mut base = Timebase::new(0, 10_000 * S, 1000);
        base.follow(Timebase::new(1000, 13_601 * S, 1000));
        base.follow(Timebase::new(2000, 6_402 * S, 1000));
        assert_eq!([0, 1, 2].map(|wall| base.at_by(3000, wall)), [10_003 * S, 13_603 * S, 6_403 * S]);
        // Nothing goes on by a clock that is behind.
        let walls = base.walls();
        assert_eq!([walls.now(), walls.next(0), walls.next(1), walls.next(2)], [2, 0, 1, 2]);
        base.follow(Timebase::new(3000, 10_503 * S, 1000));
        let walls = base.walls();
        assert_eq!([walls.now(), walls.next(0), walls.next(1), walls.next(2)], [3, 3, 1, 3]);
        // An older flow keeps its times while another drift is followed.
        let before = base.at_by(0, 1);
        base.follow(Timebase::new(4000, 10_504 * S, 1000));
        assert_eq!(base.at_by(0, 1), before);
        // The numbers go round.
        (0..40).for_each(|n| base.follow(Timebase::new(5000 + n, (n + 1) * 20_000 * S, 1000)));
        assert_eq!(base.at_by(5039, base.walls().now() as Wall), 800_000 * S);
    }

    #[test]
    fn steps_to_the_ends_of_time_are_held() {
        let mut base = Timebase::new(0, 0, 1);
        base.follow(Timebase::new(1, u64::MAX, 1));
        base.follow(Timebase::new(2, 0, 1));
        base.follow(Timebase::new(0, u64::MAX, 0));
        let _ = (base.at_by(u64::MAX, 0), base.at_by(0, 15), base.at_by(1, 200), base.walls().next(15));
    }
}
