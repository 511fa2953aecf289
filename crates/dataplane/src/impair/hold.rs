//! The queue of frames that are delayed.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, VecDeque},
};

/// A frame waiting for its time.
#[derive(Debug)]
pub(crate) struct Held<B> {
    /// When it may go, in ticks.
    pub(crate) due: u64,
    /// Its place among the frames of this port, from 1.
    pub(crate) seq: u64,
    /// Whether it is the second of two.
    pub(crate) copy: bool,
    pub(crate) frame: B,
}

impl<B> Held<B> {
    fn key(&self) -> (u64, u64, bool) {
        (self.due, self.seq, self.copy)
    }
}

impl<B> PartialEq for Held<B> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<B> Eq for Held<B> {}
impl<B> PartialOrd for Held<B> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<B> Ord for Held<B> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// Frames in the order of their times. The memory for all of them is taken at the start.
#[derive(Debug)]
pub(crate) enum Hold<B> {
    /// Every frame is due no earlier than the one before.
    Fifo(VecDeque<Held<B>>),
    /// Times cross.
    Sorted(BinaryHeap<Reverse<Held<B>>>),
}

impl<B> Hold<B> {
    pub(crate) fn new(capacity: usize, sorted: bool) -> Self {
        if sorted {
            Self::Sorted(BinaryHeap::with_capacity(capacity))
        } else {
            Self::Fifo(VecDeque::with_capacity(capacity))
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Fifo(queue) => queue.len(),
            Self::Sorted(heap) => heap.len(),
        }
    }

    /// Adds a frame; the caller keeps within the capacity.
    #[inline]
    pub(crate) fn push(&mut self, held: Held<B>) {
        match self {
            Self::Fifo(queue) => queue.push_back(held),
            Self::Sorted(heap) => heap.push(Reverse(held)),
        }
    }

    /// The next frame, if it is due by `now`.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: u64) -> Option<Held<B>> {
        match self {
            Self::Fifo(queue) => {
                if queue.front()?.due > now {
                    return None;
                }
                queue.pop_front()
            }
            Self::Sorted(heap) => {
                if heap.peek()?.0.due > now {
                    return None;
                }
                heap.pop().map(|Reverse(held)| held)
            }
        }
    }
}
