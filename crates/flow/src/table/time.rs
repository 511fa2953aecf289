//! From ticks to the time of day.

use std::time::SystemTime;

/// One moment on both clocks. Times go on from there by ticks alone, so that a wall clock that is stepped moves none of
/// them; who wants them to follow it takes a new anchor and gives it to the readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timebase {
    /// The tick counter, at that moment.
    pub ticks: u64,
    /// Nanoseconds since the Unix epoch, at that moment.
    pub unix_ns: u64,
    /// Ticks a second; zero is taken as one.
    pub hz: u64,
}

impl Timebase {
    /// Now, when the tick counter of `hz` a second stands at `ticks`.
    pub fn now(ticks: u64, hz: u64) -> Self {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { ticks, unix_ns: u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX), hz }
    }

    /// The time of a tick, before or after the anchor, in ns since the Unix epoch.
    pub fn at(&self, ticks: u64) -> u64 {
        let ns = |ticks: u64| u128::from(ticks) * 1_000_000_000 / u128::from(self.hz.max(1));
        let unix = u128::from(self.unix_ns);
        let at = match ticks.checked_sub(self.ticks) {
            Some(after) => unix + ns(after),
            None => unix.saturating_sub(ns(self.ticks - ticks)),
        };
        u64::try_from(at).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_told_from_the_anchor_both_ways() {
        let base = Timebase { ticks: 1000, unix_ns: 5_000_000_000, hz: 4 };
        assert_eq!(
            [1000, 1004, 1001, 998].map(|t| base.at(t)),
            [5_000_000_000, 6_000_000_000, 5_250_000_000, 4_500_000_000]
        );
        // Out of range is held at the ends.
        assert_eq!((Timebase { unix_ns: 9, ..base }.at(0), base.at(u64::MAX)), (0, u64::MAX));
        // A year of a fast counter is exact to the nanosecond.
        let fast = Timebase { ticks: 7, unix_ns: 1, hz: 2_596_136_000 };
        assert_eq!(fast.at(7 + 2_596_136_000 * 31_557_600), 1 + 31_557_600 * 1_000_000_000);
        assert!(Timebase::now(1, 0).at(2) > 1_000_000_000);
    }
}
