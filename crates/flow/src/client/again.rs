//! How long to wait before connecting again.

use std::time::Duration;

/// How long to wait before the next try: twice as long each time, up to a limit.
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

    /// How long now.
    pub fn next_wait(&mut self) -> Duration {
        let now = self.next.min(self.most);
        self.next = now.saturating_mul(2);
        now
    }

    /// It worked: the next time begins anew.
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
