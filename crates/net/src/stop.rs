//! A flag that ends threads and wakes those that sleep.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Locks `mutex`, also after a thread panicked while it held the lock. Use it only for data that is valid at every instant.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells threads to end, also threads that sleep.
#[derive(Debug, Default)]
pub struct Stop {
    set: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Ends all sleeps, now and later.
    pub fn stop(&self) {
        *lock(&self.set) = true;
        self.changed.notify_all();
    }

    /// Whether [`Stop::stop`] was called.
    pub fn stopped(&self) -> bool {
        *lock(&self.set)
    }

    /// Sleeps until `then` or until stopped; returns whether stopped.
    pub fn sleep_until(&self, then: Instant) -> bool {
        let mut set = lock(&self.set);
        while !*set {
            let left = then.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            set = self.changed.wait_timeout(set, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *set
    }

    /// Sleeps for `time` or until stopped; returns whether stopped.
    pub fn sleep(&self, time: Duration) -> bool {
        self.sleep_until(Instant::now() + time)
    }
}
