//! How long a reply is waited for.

use std::time::Duration;

/// The least.
const LEAST: Duration = Duration::from_millis(100);
/// Before anything is known of the way.
const FIRST: Duration = Duration::from_secs(1);
/// So many times the longest reply so far.
const TIMES: u32 = 10;
/// The most: a run is never without an end.
const MOST: Duration = Duration::from_secs(10);

/// How long a reply is waited for: long enough for the slowest so far ten times over.
#[derive(Debug, Clone, Copy, Default)]
pub struct Patience {
    longest: Duration,
}

impl Patience {
    /// A reply took this long.
    pub fn saw(&mut self, took: Duration) {
        self.longest = self.longest.max(took);
    }

    /// A reply came later than it was waited for: the next one is waited for twice as long.
    pub fn late(&mut self) {
        self.saw(self.limit() * 2 / TIMES);
    }

    /// How long nothing at all may come before the other end is gone: several replies were awaited in it, at least so long.
    pub fn silence(&self, least: Duration) -> Duration {
        least.max(self.limit() * 3)
    }

    /// How long the next one may take.
    pub fn limit(&self) -> Duration {
        if self.longest.is_zero() {
            return FIRST;
        }
        self.longest.saturating_mul(TIMES).clamp(LEAST, MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_with_what_was_seen_and_has_bounds() {
        let mut patience = Patience::default();
        assert_eq!(patience.limit(), FIRST);
        patience.saw(Duration::from_micros(20));
        assert_eq!(patience.limit(), LEAST);
        patience.saw(Duration::from_millis(30));
        patience.saw(Duration::from_millis(20));
        assert_eq!(patience.limit(), Duration::from_millis(300));
        patience.late();
        assert_eq!(patience.limit(), Duration::from_millis(600));
        assert_eq!(patience.silence(Duration::from_secs(5)), Duration::from_secs(5));
        patience.saw(Duration::from_millis(700));
        assert_eq!(patience.silence(Duration::from_secs(5)), Duration::from_secs(21));
        patience.saw(Duration::from_secs(5));
        assert_eq!(patience.limit(), MOST);
        patience.late();
        assert_eq!(patience.limit(), MOST);
        let mut first = Patience::default();
        first.late();
        assert_eq!(first.limit(), FIRST * 2);
    }
}
