//! How long to wait before connecting again.

use std::time::Duration;

/// The wait before the next try. It doubles each time, up to a limit.
#[derive(Debug, Clone)]
pub struct BackOff {
    least: Duration,
    most: Duration,
    next: Duration,
}

impl BackOff {
    /// From `least` to `most`.
    pub fn new(least: Duration, most: Duration) -> Self {
        Self { least, most, next: least }
    }

    /// The current wait; doubles the next one.
    pub fn next_wait(&mut self) -> Duration {
        let now = self.next.min(self.most);
        self.next = now.saturating_mul(2);
        now
    }

    /// Resets the wait after success.
    pub fn reset(&mut self) {
        self.next = self.least;
    }
}

impl Default for BackOff {
    /// A quarter of a second to eight seconds.
    fn default() -> Self {
        Self::new(Duration::from_millis(250), Duration::from_secs(8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_the_limit() {
        let mut back_off = BackOff::default();
        let waits: Vec<_> = (0..7).map(|_| back_off.next_wait().as_millis()).collect();
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 8000, 8000]);
        back_off.reset();
        assert_eq!(back_off.next_wait().as_millis(), 250);
    }
}
