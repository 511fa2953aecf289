//! When a message of NetFlow v9 says that it was sent, and when its exporter booted.
//!
//! Times of flows are milliseconds since the boot in 32 bits (RFC 3954 8), which reach 49.7 days. Flows of a capture may lie
//! years before the export. A collector reckons the boot from the header (its time less its uptime), so a message with such flows
//! says that it was sent when the first of them ended.

/// How long before the first message the boot was: flows may have begun before the exporter.
pub(super) const BOOT_BEFORE_MS: u64 = 24 * 3600 * 1000;
/// Flows that ended so long after the time of day are of another clock.
const AHEAD_MS: u64 = 24 * 3600 * 1000;
/// Half of what 32 bits of milliseconds reach: a moved boot lies so long before the end of the first flow.
const HALF_MS: u64 = 1 << 31;

/// The time of a message and the boot of its exporter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clock {
    /// When the message was sent, in seconds since the Unix epoch.
    pub export_s: u32,
    /// When the exporter booted, in milliseconds since the Unix epoch.
    pub boot_ms: u64,
    /// Whether both are the flows' and not the time of day.
    moved: bool,
}

impl Clock {
    /// The time of day, and the boot.
    pub fn of_day(export_s: u32, boot_ms: u64) -> Self {
        Self { export_s, boot_ms, moved: false }
    }

    /// The clock of a message that begins with these flows, each from its first to its last frame in ns since the Unix epoch: the
    /// first decides which. A flow that ended after the header's time would be of 49.7 days before, to pmacct, so none does.
    pub fn of(mut self, flows: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut flows = flows.into_iter().peekable();
        if let Some(&(first, last)) = flows.peek() {
            if self.is_far_from(first, last) {
                let export_s = up_to_second(last);
                let boot_ms = (u64::from(export_s) * 1000).saturating_sub(HALF_MS);
                self = Self { export_s, boot_ms, moved: true };
            }
        }
        let latest = flows.filter(|&(first, last)| self.holds(first, last)).map(|(_, last)| up_to_second(last)).max();
        self.export_s = self.export_s.max(latest.unwrap_or(0));
        self
    }

    /// Whether a message of this clock can hold a flow from `first` to `last`.
    pub fn holds(&self, first: u64, last: u64) -> bool {
        if !self.moved {
            return !self.is_far_from(first, last);
        }
        // A flow that lasted longer than the clock reaches is told from the boot on.
        (self.boot_ms..self.boot_ms + 2 * HALF_MS).contains(&(last / 1_000_000))
    }

    fn is_far_from(&self, first: u64, last: u64) -> bool {
        let [first_ms, last_ms] = [first, last].map(|ns| ns / 1_000_000);
        first_ms < self.boot_ms || last_ms > u64::from(self.export_s) * 1000 + AHEAD_MS
    }
}

/// The end of the second of a time, in seconds since the Unix epoch.
fn up_to_second(ns: u64) -> u32 {
    u32::try_from(ns.div_ceil(1_000_000_000)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_S: i64 = 24 * 3600;
    const NOW: u32 = 1_800_000_000;

    /// A time so many seconds after the time of day, in ns since the Unix epoch.
    fn at(seconds: i64) -> u64 {
        (i64::from(NOW) + seconds) as u64 * 1_000_000_000
    }

    fn booted(before_s: u64) -> Clock {
        Clock::of_day(NOW, (u64::from(NOW) - before_s) * 1000)
    }

    #[test]
    fn flows_of_today_have_the_time_of_day() {
        let today = booted(BOOT_BEFORE_MS / 1000);
        for (first, last) in [(-10, -1), (-DAY_S, 0), (-1, 0)] {
            assert_eq!(today.of([(at(first), at(last))]), today);
            assert!(today.holds(at(first), at(last)));
        }
        assert!(today.holds(at(0), at(DAY_S)));
        for (first, last) in [(-DAY_S - 1, 0), (0, DAY_S + 1)] {
            assert!(today.of([(at(first), at(last))]).moved);
            assert!(!today.holds(at(first), at(last)));
        }
    }

    #[test]
    fn an_exporter_that_runs_for_months_keeps_its_boot() {
        let clock = booted(200 * DAY_S as u64);
        assert_eq!(clock.of([(at(-100), at(0))]), clock);
        assert_eq!(clock.of([]), clock);
    }

    #[test]
    fn flows_of_years_ago_have_a_clock_of_their_own() {
        let years = -3 * 365 * DAY_S;
        let clock = booted(0).of([(at(years - 9), at(years))]);
        assert_eq!(clock.export_s, (i64::from(NOW) + years) as u32);
        assert_eq!(u64::from(clock.export_s) * 1000 - clock.boot_ms, HALF_MS);
        // 24.8 days before and after it.
        for (days, held) in [(0, true), (-24, true), (24, true), (-25, false), (25, false)] {
            let end = years + days * DAY_S;
            assert_eq!(clock.holds(at(end - 1), at(end)), held, "{days} days");
        }
        assert!(!clock.holds(at(-1), at(0)), "a flow of the time of day");
    }

    #[test]
    fn no_flow_ended_after_the_header() {
        // The second of the export has just begun, and flows ended in it.
        let (today, ms) = (booted(BOOT_BEFORE_MS / 1000), 1_000_000);
        assert_eq!(today.of([(at(-5), at(0) + ms), (at(-5), at(-1))]).export_s, NOW + 1);
        // Seconds of another day, and one of today, which goes into a message of its own.
        let ends = [0, ms, 999 * ms, 4000 * ms].map(|ns| (0, 7_000_000_000 + ns));
        let upto = |n: usize| booted(0).of(ends.into_iter().take(n).chain([(at(-1), at(0))])).export_s;
        assert_eq!([1, 2, 3, 4].map(upto), [7, 8, 8, 11]);
    }

    #[test]
    fn times_beyond_the_header_stop_at_its_ends() {
        assert_eq!(booted(0).of([(u64::MAX - 1, u64::MAX)]).export_s, u32::MAX);
        assert_eq!(booted(0).of([(0, 1)]), Clock { export_s: 1, boot_ms: 0, moved: true });
    }
}
