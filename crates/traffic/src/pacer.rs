//! When frames are due.

use units::Fps;

/// Spreads a trial's frames evenly over its duration, in integer arithmetic.
///
/// Frame `k` is due at `start + k * duration / intended`. A poll that comes late is given what fell due meanwhile,
/// but never more than `catch_up` ticks' worth: a burst would not be the load that was asked for, so that the rest
/// counts as skipped and the tester is known to have fallen short. However the polls fall,
/// frames given + [`skipped`](Self::skipped) = [`intended`](Self::intended) at the end.
#[derive(Debug, Clone)]
pub struct Pacer {
    start: u64,
    duration: u64,
    intended: u64,
    /// Frames a tick, in 64.64 fixed point.
    whole: u64,
    fraction: u64,
    catch_up: u64,
    /// Frames given or skipped.
    accounted: u64,
    skipped: u64,
}

impl Pacer {
    /// The default of `catch_up`: 100 us, in ticks of a clock of `hz`.
    pub const fn default_catch_up(hz: u64) -> u64 {
        hz / 10_000
    }

    /// A pacer for `round(rate * duration)` frames over `duration` ticks of a clock of `hz`.
    ///
    /// `catch_up` is the longest stall, in ticks, that is made up for; at least one frame always is.
    pub fn new(rate: Fps, hz: u64, duration: u64, catch_up: u64) -> Self {
        let duration = duration.max(1);
        // More frames than 2^48 in a trial, or 2^16 a tick, no port takes; the bound keeps the arithmetic in range.
        let most = (1 << 48).min(u128::from(duration) << 16) as f64;
        let intended = (rate.get() * duration as f64 / hz.max(1) as f64).round().min(most) as u64;
        // Rounded up, so that a frame due at a whole tick is due at that tick and not the next.
        let per_tick = (u128::from(intended) << 64).div_ceil(u128::from(duration));
        let mut pacer = Self {
            // Nothing is due before the start.
            start: u64::MAX,
            duration,
            intended,
            whole: (per_tick >> 64) as u64,
            fraction: per_tick as u64,
            catch_up: 1,
            accounted: 0,
            skipped: 0,
        };
        pacer.catch_up = pacer.frames_in(catch_up.min(duration)).max(1);
        pacer
    }

    #[inline]
    fn frames_in(&self, ticks: u64) -> u64 {
        self.whole * ticks + ((u128::from(self.fraction) * u128::from(ticks)) >> 64) as u64
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
            let excess = behind - self.catch_up;
            self.skipped += excess;
            self.accounted += excess;
            behind = self.catch_up;
        }
        let n = behind.min(max as u64);
        self.accounted += n;
        n as usize
    }

    /// Frames that should have left by now.
    #[inline]
    fn target(&self, now: u64) -> u64 {
        if now < self.start {
            return 0;
        }
        let elapsed = now - self.start;
        if elapsed >= self.duration {
            self.intended
        } else {
            (self.frames_in(elapsed) + 1).min(self.intended).max(self.accounted)
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

    /// Frames that the rate asks for in the duration.
    pub fn intended(&self) -> u64 {
        self.intended
    }

    /// Frames that were due and never given, because the tester polled too late or too seldom.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

#[cfg(test)]
mod tests {
    use packet::{Clock, FakeClock};
    use proptest::prelude::*;

    use super::*;

    const HZ: u64 = 2_600_000_000;

    fn pacer(fps: f64, duration: u64) -> Pacer {
        Pacer::new(Fps::new(fps).unwrap(), HZ, duration, Pacer::default_catch_up(HZ))
    }

    #[test]
    fn frames_are_due_when_they_are_due() {
        let mut p = pacer(1e6, HZ / 1000);
        p.start(1000);
        assert_eq!((p.intended(), p.due(999, 64)), (1000, 0));
        assert_eq!((p.due(1000, 64), p.due(1000 + 2599, 64), p.due(1000 + 2600, 64)), (1, 0, 1));
        assert_eq!(p.due(1000 + 26_000, 4), 4);
        assert_eq!((p.due(1000 + 26_000, 64), p.skipped()), (5, 0));
    }

    #[test]
    fn a_stall_is_made_up_for_100_us_and_no_more() {
        let mut p = pacer(1e6, HZ);
        p.start(0);
        p.due(0, 64);
        let stall = HZ / 100;
        let given: usize = (0..10).map(|_| p.due(stall, 64)).sum();
        assert_eq!((given, p.skipped()), (100, 10_000 - 100));
    }

    #[test]
    fn a_slow_rate_never_skips_for_lateness_alone() {
        let mut p = pacer(10.0, 10 * HZ);
        p.start(0);
        let given: usize = (0..=200).map(|i| p.due(i * HZ / 20 + HZ / 30, 64)).sum();
        assert_eq!((given, p.skipped(), p.finished()), (100, 0, true));
    }

    #[test]
    fn a_rate_beyond_all_ports_is_counted_not_refused() {
        let mut p = pacer(1e30, HZ);
        p.start(0);
        let given = (0..=1000).map(|i| p.due(i * HZ / 1000, 64) as u64).sum::<u64>();
        p.stop(HZ);
        assert_eq!(given + p.skipped(), p.intended());
        assert_eq!(given, 1 + 64 * 1000);
    }

    #[test]
    fn a_stop_before_the_start_leaves_nothing_due() {
        let mut p = pacer(1e6, HZ);
        assert_eq!(p.due(HZ, 64), 0);
        p.stop(HZ);
        assert_eq!((p.intended(), p.skipped(), p.finished()), (0, 0, true));
    }

    #[test]
    fn a_stop_keeps_the_books() {
        let mut p = pacer(1e6, HZ);
        p.start(0);
        assert_eq!(p.due(0, 64) + p.due(2600 * 9, 64), 10);
        p.stop(2600 * 49);
        assert_eq!((p.intended(), p.skipped(), p.finished(), p.due(HZ, 64)), (50, 40, true, 0));
    }

    proptest! {
        #[test]
        fn given_and_skipped_are_intended_however_polls_fall(
            fps in prop_oneof![0.0..100.0, 1e3..1e8, 1e8..1e12],
            duration in prop_oneof![1u64..1000, 1_000_000u64..HZ * 20],
            catch_up in 0u64..1_000_000_000,
            max in 1usize..200,
            steps in proptest::collection::vec(1u64..1 << 32, 1..100),
        ) {
            let clock = FakeClock::new(HZ);
            clock.advance(77);
            let mut p = Pacer::new(Fps::new(fps).unwrap(), HZ, duration, catch_up);
            p.start(clock.now());
            let want = (fps * duration as f64 / HZ as f64).round();
            prop_assert!((p.intended() as f64 - want).abs() <= 1.0);
            let mut given = p.due(clock.now(), max) as u64;
            for step in steps {
                clock.advance(step);
                given += p.due(clock.now(), max) as u64;
                prop_assert!(given + p.skipped() <= p.intended());
            }
            clock.advance(duration);
            for _ in 0..3 {
                given += p.due(clock.now(), max) as u64;
            }
            p.stop(clock.now());
            prop_assert_eq!(given + p.skipped(), p.intended());
            prop_assert!((p.intended() as f64 - want).abs() <= 1.0);
            prop_assert!(p.finished());
        }
    }
}
