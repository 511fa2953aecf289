use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// A lock whose holder panicked is still a lock: what is behind ours is whole at every instant.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells threads to end, also those that sleep.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    set: Mutex<bool>,
    told: Condvar,
}

impl Stop {
    /// Ends all sleeps, now and from now on.
    pub(crate) fn stop(&self) {
        *lock(&self.set) = true;
        self.told.notify_all();
    }

    /// Whether to end.
    pub(crate) fn stopped(&self) -> bool {
        *lock(&self.set)
    }

    /// Sleeps until then; returns whether to end.
    pub(crate) fn sleep_until(&self, then: Instant) -> bool {
        let mut set = lock(&self.set);
        while !*set {
            let left = then.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            set = self.told.wait_timeout(set, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *set
    }

    /// Sleeps so long; returns whether to end.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        self.sleep_until(Instant::now() + time)
    }
}
