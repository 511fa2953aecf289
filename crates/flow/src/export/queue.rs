//! The bounded queue in front of a sink.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::Record;

/// The bounded queue of a sink: one thread pushes, one takes. Both hold the lock only while they copy records.
#[derive(Debug)]
pub(super) struct Queue {
    inner: Mutex<Inner>,
    wake: Condvar,
    room: usize,
}

#[derive(Debug, Default)]
struct Inner {
    records: VecDeque<Record>,
    /// Set at the end: nothing more is pushed, and records not sent by this time are lost.
    end: Option<Instant>,
}

impl Queue {
    pub fn new(room: usize) -> Self {
        Self { inner: Mutex::default(), wake: Condvar::new(), room: room.max(1) }
    }

    /// Code under the lock does not panic. Even after a panic, the queue is consistent.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes as many records from the front of `records` as fit. Returns how many, and how many are queued now.
    pub fn push(&self, records: &[Record]) -> (usize, usize) {
        let mut inner = self.lock();
        let n = records.len().min(self.room - inner.records.len().min(self.room));
        inner.records.extend(records.iter().take(n));
        let queued = inner.records.len();
        drop(inner);
        if n > 0 {
            self.wake.notify_one();
        }
        (n, queued)
    }

    /// Appends up to `most` records to `into`. Waits for a record, for the end, or for `wait`.
    pub fn take(&self, into: &mut Vec<Record>, most: usize, wait: Duration) {
        let mut inner = self.lock();
        if inner.records.is_empty() && inner.end.is_none() {
            inner = self.wake.wait_timeout(inner, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
        let n = most.min(inner.records.len());
        into.extend(inner.records.drain(..n));
    }

    /// Ends the queue: nothing more is pushed, and the rest must leave by the deadline.
    pub fn end(&self, by: Instant) {
        self.lock().end = Some(by);
        self.wake.notify_one();
    }

    /// The deadline, once [`Queue::end`] was called.
    pub fn ends(&self) -> Option<Instant> {
        self.lock().end
    }

    pub fn room(&self) -> usize {
        self.room
    }

    pub fn len(&self) -> usize {
        self.lock().records.len()
    }
}
