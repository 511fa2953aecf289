//! Tables that many lcores read and the control side replaces, without a lock and without a pause.
//!
//! A [`Shared`] holds the current snapshot. Each lcore has a [`Reader`], which compares one pointer a burst and keeps
//! its snapshot until the pointer changes. The control side keeps every snapshot it has replaced until no reader has it
//! any more, so that nothing is ever freed on a packet path, and so that what a snapshot was made of can be taken back
//! and changed ([`std::sync::Arc::get_mut`]).

use std::{fmt, sync::Arc};

use arc_swap::{ArcSwap, Cache};

/// The control side's end: publishes snapshots.
pub struct Shared<T> {
    current: Arc<ArcSwap<T>>,
    retired: Vec<Arc<T>>,
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("retired", &self.retired.len()).finish_non_exhaustive()
    }
}

impl<T> Shared<T> {
    /// With this as the first snapshot.
    pub fn new(first: T) -> Self {
        Self { current: Arc::new(ArcSwap::from_pointee(first)), retired: Vec::new() }
    }

    /// The snapshot that readers see now.
    pub fn current(&self) -> Arc<T> {
        self.current.load_full()
    }

    /// Replaces the snapshot. Readers see the new one at their next burst.
    pub fn publish(&mut self, next: T) {
        self.retired.push(self.current.swap(Arc::new(next)));
        self.reap();
    }

    /// Frees the replaced snapshots that no reader has any more; `true` when none is left.
    pub fn reap(&mut self) -> bool {
        // A count of one is ours; no further references can be taken to a snapshot that is not current.
        self.retired.retain(|old| Arc::strong_count(old) > 1);
        self.retired.is_empty()
    }

    /// A reader, for one lcore.
    pub fn reader(&self) -> Reader<T> {
        Reader(Cache::new(Arc::clone(&self.current)))
    }
}

/// An lcore's end: the snapshot it works with.
pub struct Reader<T>(Cache<Arc<ArcSwap<T>>, Arc<T>>);

impl<T> fmt::Debug for Reader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

impl<T> Reader<T> {
    /// The current snapshot: one load and a comparison when it has not changed. Call it once a burst, and in polls
    /// without frames too, so that replaced snapshots are released.
    #[inline]
    pub fn get(&mut self) -> &T {
        self.0.load()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_snapshot_goes_when_its_last_reader_has_moved_on() {
        let mut shared = Shared::new(1);
        let (mut a, mut b) = (shared.reader(), shared.reader());
        assert_eq!((*a.get(), *b.get()), (1, 1));
        shared.publish(2);
        assert_eq!(*a.get(), 2);
        assert!(!shared.reap(), "b still has the first");
        assert_eq!(*b.get(), 2);
        assert!(shared.reap());
    }
}
