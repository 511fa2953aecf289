//! Readers of a table, on any thread, at any time. They cost the worker only cache misses.

use std::{ops::Deref, sync::Arc};

use super::{
    counts::Counts,
    ended::{record, Packed},
    slot::{Family, Slot, Slots, V4, V6},
    sync::{AtomicU64, Ordering},
    time::Timebase,
};
use crate::Record;

/// State that a worker and its readers share.
pub(crate) struct Shared<M> {
    pub(crate) memory: M,
    /// Words of the IPv4 slots; those of the IPv6 slots follow.
    pub(crate) words4: usize,
    pub(crate) words6: usize,
    /// The spill of each IP version: a word for each slot.
    pub(crate) spill4: Box<[AtomicU64]>,
    pub(crate) spill6: Box<[AtomicU64]>,
    pub(crate) counters: Counters,
    /// The [`Walls`] for the worker.
    pub(crate) walls: AtomicU64,
    pub(crate) capacity: u64,
    pub(crate) bytes: u64,
}

impl<M: Deref<Target = [AtomicU64]>> Shared<M> {
    /// The slots of both IP versions.
    #[inline(always)]
    pub(crate) fn tables(&self) -> (Slots<'_>, Slots<'_>) {
        let (v4, rest) = self.memory.split_at_checked(self.words4).unwrap_or_default();
        let v6 = rest.get(..self.words6).unwrap_or_default();
        (Slots { words: v4, spill: &self.spill4 }, Slots { words: v6, spill: &self.spill6 })
    }
}

/// [`Counts`] in words that any thread may read.
#[derive(Default)]
pub(crate) struct Counters([AtomicU64; Counts::WORDS]);

impl Counters {
    #[inline]
    pub(crate) fn publish(&self, counts: &Counts) {
        self.0.iter().zip(counts.words()).for_each(|(to, from)| to.store(from, Ordering::Relaxed));
    }
}

/// Reads a table. Clones read the same table.
pub struct Reader<M> {
    pub(crate) shared: Arc<Shared<M>>,
    pub(crate) timebase: Timebase,
}

impl<M> Clone for Reader<M> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), timebase: self.timebase }
    }
}

impl<M: Deref<Target = [AtomicU64]> + Send + Sync> Reader<M> {
    /// Places a flow can be in: `0..places()`.
    pub fn places(&self) -> u64 {
        (self.shared.words4 / V4::STRIDE + self.shared.words6 / V6::STRIDE) as u64
    }

    /// Number of flows that the table has room for.
    pub fn capacity(&self) -> u64 {
        self.shared.capacity
    }

    /// Memory of the table in bytes.
    pub fn memory(&self) -> u64 {
        self.shared.bytes
    }

    /// The counts up to about the last burst of the worker.
    pub fn counts(&self) -> Counts {
        Counts::from_words(std::array::from_fn(|i| self.shared.counters.0[i].load(Ordering::Relaxed)))
    }

    /// Calls `visit` with each flow in places `from..to`, each read at one instant. A flow that the worker keeps writing is
    /// left out.
    pub fn scan(&self, from: u64, to: u64, visit: &mut dyn FnMut(u64, &Record)) {
        let (v4, v6) = self.shared.tables();
        let start6 = (v4.words.len() / V4::STRIDE) as u64;
        self.scan_family::<V4>(v4, from..to, 0, visit);
        self.scan_family::<V6>(v6, from..to, start6, visit);
    }

    fn scan_family<F: Packed>(
        &self,
        table: Slots<'_>,
        places: std::ops::Range<u64>,
        start: u64,
        visit: &mut dyn FnMut(u64, &Record),
    ) {
        let end = start + (table.words.len() / F::STRIDE) as u64;
        for place in places.start.max(start)..places.end.min(end) {
            let slot = u32::try_from(place - start).ok().and_then(|i| Slot::<F>::numbered(table, i));
            if let Some(raw) = slot.and_then(Slot::read) {
                visit(place, &record::<F>(&raw, &self.timebase));
            }
        }
    }

    /// Uses this timebase from now on, also for flows that the worker begins.
    pub fn anchor(&mut self, timebase: Timebase) {
        self.timebase = timebase;
        self.shared.walls.store(timebase.walls().0, Ordering::Relaxed);
    }

    /// The timebase in use.
    pub fn timebase(&self) -> Timebase {
        self.timebase
    }
}
