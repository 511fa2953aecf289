//! Sending records at a limited rate.

use std::{
    sync::{
        atomic::{AtomicU64, Ordering::Relaxed},
        Arc,
    },
    thread,
    time::{Duration, Instant},
};

/// A late sender may catch up by this much time, because sleeping is not exact. At 200k records a second this is 400
/// records, a quarter of what the socket buffer that Linux gives a collector holds in messages of 1400 bytes (25
/// of them) and a sixth of what it holds in the 7680 bytes of loopback (five).
const CREDIT: Duration = Duration::from_millis(2);
/// Longest wait at once, so that the end of the exporter is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Least rate in records per second, whatever the pace. Set once, when the rest must leave in a given time.
pub(super) type Floor = Arc<AtomicU64>;

/// Spreads records over time.
#[derive(Debug)]
pub(super) struct Pace {
    per_s: u64,
    floor: Floor,
    /// Time and records of the last message. The time of the next message follows from the current rate.
    from: Instant,
    records: usize,
}

impl Pace {
    pub fn new(per_s: u64, floor: Floor) -> Self {
        Self { per_s, floor, from: Instant::now(), records: 0 }
    }

    fn next(&self) -> Instant {
        #[allow(clippy::cast_precision_loss)]
        let (records, rate) = (self.records as f64, self.per_s.max(self.floor.load(Relaxed)).max(1) as f64);
        self.from + Duration::from_secs_f64(records / rate)
    }

    /// Waits briefly for the time of the next message; returns whether it has come.
    pub fn ready(&self) -> bool {
        thread::sleep(self.next().saturating_duration_since(Instant::now()).min(POLL_INTERVAL));
        Instant::now() >= self.next()
    }

    pub fn sent(&mut self, records: usize) {
        let earliest = Instant::now().checked_sub(CREDIT).unwrap_or_else(Instant::now);
        self.from = self.next().max(earliest);
        self.records = records;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_waits_for_the_one_before_and_lateness_is_forgotten() {
        let mut pace = Pace::new(1000, Floor::default());
        let begun = Instant::now();
        pace.sent(500);
        assert!(pace.next() >= begun + Duration::from_millis(498) && !pace.ready());
        // Late by a minute: continues from now, minus the credit.
        pace.from = begun.checked_sub(Duration::from_secs(60)).unwrap();
        pace.sent(500);
        assert!(pace.next() >= begun + Duration::from_millis(498));
    }

    #[test]
    fn the_floor_holds_for_the_message_that_is_waited_for() {
        let floor = Floor::default();
        let mut pace = Pace::new(1, Arc::clone(&floor));
        pace.sent(17);
        assert!(!pace.ready());
        floor.store(17_000_000, Relaxed);
        assert!(pace.ready());
    }
}
