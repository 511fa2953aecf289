//! What was sent, as the score wants it: keys by arithmetic, times from the tester's clock.

use flow::{
    truth::{Expected, Sent},
    Addresses, Key,
};
use packet::{since_1970, Clock, ClockPair};
use rig::SentFlows;
use traffic::flows::{Keys, Tally, Tuple};

/// Readings of two clocks; the closest counts.
const READINGS: usize = 32;

/// A moment on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    tick: u64,
    /// ns since the Unix epoch.
    ns: u64,
}

impl Moment {
    /// Now.
    pub fn now(clock: &impl Clock) -> Self {
        let pair = ClockPair::best_of(READINGS, clock, since_1970);
        Self { tick: pair.ticks, ns: u64::try_from(pair.time.as_nanos()).unwrap_or(u64::MAX) }
    }

    /// Time at a tick, on the line from this moment to a later one.
    fn at(&self, later: &Self, tick: u64) -> u64 {
        let ticks = later.tick.saturating_sub(self.tick).max(1);
        let ns = i128::from(later.ns) - i128::from(self.ns);
        let offset = (i128::from(tick) - i128::from(self.tick)) * ns / i128::from(ticks);
        u64::try_from(i128::from(self.ns) + offset).unwrap_or(0)
    }
}

/// What a trial sent.
pub struct Truth<'a> {
    pub tally: Tally<'a>,
    pub departed: &'a SentFlows,
    /// Before the trial and after it.
    pub moments: [Moment; 2],
    /// Bytes of a frame, without FCS.
    pub frame_len: u64,
    pub before_ip: u32,
}

impl Truth<'_> {
    fn ns(&self, tick: u64) -> u64 {
        let [before, after] = &self.moments;
        before.at(after, tick)
    }

    /// No departure is known worse than this, in ns.
    pub fn known_within_ns(&self) -> u64 {
        let left = |n| self.departed.departures.left(n, self.departed.frames, self.departed.last_tick);
        // Marks are a power of two apart: a walk over some of them meets the widest ones.
        let step = (self.departed.frames / 100_000).max(1);
        let worst = (0..self.departed.frames).step_by(step as usize).map(|n| {
            let left = left(n);
            self.ns(left.latest).saturating_sub(self.ns(left.earliest))
        });
        worst.max().unwrap_or(0)
    }
}

impl Expected for Truth<'_> {
    fn flows(&self) -> u64 {
        self.tally.flows()
    }

    fn find(&self, key: &Key) -> Option<u64> {
        find(self.tally.keys(), key)
    }

    fn sent(&self, flow: u64) -> Sent {
        let share = self.tally.share(flow);
        if share.packets == 0 {
            return Sent::default();
        }
        let left = |n| self.ns(self.departed.departures.left(n, self.departed.frames, self.departed.last_tick).likely);
        let bytes = share.packets * self.frame_len;
        Sent { packets: share.packets, bytes, first: left(share.first), last: left(share.last) }
    }

    fn before_ip(&self) -> u32 {
        self.before_ip
    }
}

/// The flow that has this key.
pub fn find(keys: &Keys, key: &Key) -> Option<u64> {
    let (src, dst) = match key.addresses {
        Addresses::V4 { src, dst } => (src.into(), dst.into()),
        Addresses::V6 { src, dst } => (src.into(), dst.into()),
    };
    keys.find(&Tuple { src, dst, sport: key.sport, dport: key.dport, protocol: key.protocol })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_between_two_moments_are_on_the_line() {
        let (a, b) = (Moment { tick: 1000, ns: 5_000_000 }, Moment { tick: 3000, ns: 5_001_000 });
        assert_eq!(
            [900, 1000, 2000, 3000, 5000].map(|t| a.at(&b, t)),
            [4_999_950, 5_000_000, 5_000_500, 5_001_000, 5_002_000]
        );
    }
}
