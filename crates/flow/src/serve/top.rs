//! The largest flows of a walk over the table.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
    sync::{Arc, Mutex},
};

use net::lock;

use super::Matcher;
use crate::{
    protocol::{By, Page, Row},
    Record,
};

/// A request for the largest flows. Clients with equal requests share the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) by: By,
    pub(crate) limit: usize,
    pub(crate) filter: Matcher,
}

/// A requested list, and the result of the last walk.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) wanted: Wanted,
    result: Mutex<Option<Arc<Page>>>,
}

impl Query {
    pub(crate) fn new(wanted: Wanted) -> Self {
        Self { wanted, result: Mutex::default() }
    }

    /// The result of the last walk; none before the first.
    pub(crate) fn result(&self) -> Option<Arc<Page>> {
        lock(&self.result).clone()
    }

    pub(crate) fn publish(&self, page: Page) {
        *lock(&self.result) = Some(Arc::new(page));
    }
}

/// The largest flows so far in a walk, at most as many as wanted.
#[derive(Debug)]
pub(crate) struct Best {
    wanted: Wanted,
    heap: BinaryHeap<Reverse<Entry>>,
    matching: u64,
}

#[derive(Debug)]
struct Entry {
    value: u64,
    place: u64,
    row: Row,
}

impl Entry {
    fn rank(&self) -> (u64, Reverse<u64>) {
        (self.value, Reverse(self.place))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl Best {
    pub(crate) fn new(wanted: Wanted) -> Self {
        Self { wanted, heap: BinaryHeap::new(), matching: 0 }
    }

    /// One flow of the walk.
    pub(crate) fn offer(&mut self, place: u64, record: &Record, packet_rate: f64, bit_rate: f64) {
        if !self.wanted.filter.matches(record) {
            return;
        }
        self.matching += 1;
        let value = match self.wanted.by {
            By::Packets => record.forward.packets.saturating_add(record.back.packets),
            By::Bytes => record.frame_bytes(),
            // Numbers from zero on have the same order as their bits.
            By::PacketRate => packet_rate.to_bits(),
            By::BitRate => bit_rate.to_bits(),
        };
        if self.heap.len() >= self.wanted.limit {
            match self.heap.peek() {
                Some(Reverse(least)) if (value, Reverse(place)) > least.rank() => {}
                _ => return,
            }
            self.heap.pop();
        }
        self.heap.push(Reverse(Entry { value, place, row: Row { record: *record, packet_rate, bit_rate } }));
    }

    /// The flows, largest first.
    pub(crate) fn page(self) -> Page {
        let flows = self.heap.into_sorted_vec().into_iter().map(|Reverse(entry)| entry.row).collect();
        Page { flows, next: None, matching: Some(self.matching) }
    }
}
