//! Buffers on the heap, their pool, and a cable between two ends: the packet path in a plain test.

use std::{
    cell::RefCell,
    collections::VecDeque,
    rc::Rc,
    sync::{
        atomic::{AtomicUsize, Ordering},
        Arc,
    },
};

use crate::{Alloc, Buffer, Burst, Rx, Tx};

const HEADROOM: usize = 128;

/// A frame on the heap, with 128 bytes of headroom, that counts itself out of its pool when dropped.
#[derive(Debug)]
pub struct HeapBuf {
    memory: Box<[u8]>,
    start: usize,
    end: usize,
    live: Arc<AtomicUsize>,
}

impl Drop for HeapBuf {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Buffer for HeapBuf {
    fn data(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }
    fn data_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.end]
    }
    fn prepend(&mut self, n: usize) -> bool {
        let fits = n <= self.start;
        if fits {
            self.start -= n;
        }
        fits
    }
    fn trim_front(&mut self, n: usize) -> bool {
        let fits = n <= self.end - self.start;
        if fits {
            self.start += n;
        }
        fits
    }
    fn set_len(&mut self, len: usize) -> bool {
        let fits = len <= self.memory.len() - self.start;
        if fits {
            self.end = self.start + len;
        }
        fits
    }
}

/// A pool that lends at most `capacity` heap buffers and knows how many are out.
#[derive(Debug, Clone)]
pub struct HeapPool {
    live: Arc<AtomicUsize>,
    capacity: usize,
    room: usize,
}

impl HeapPool {
    /// A pool of `capacity` buffers for frames of up to `room` bytes.
    pub fn new(capacity: usize, room: usize) -> Self {
        Self { live: Arc::default(), capacity, room }
    }

    /// Buffers lent and not yet given back. Zero at the end of a test, or something leaked.
    pub fn in_use(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// One buffer holding these bytes; `None` when the pool is empty or the frame too long.
    pub fn frame(&self, bytes: &[u8]) -> Option<HeapBuf> {
        if self.in_use() >= self.capacity || bytes.len() > self.room {
            return None;
        }
        self.live.fetch_add(1, Ordering::Relaxed);
        let mut memory = vec![0; HEADROOM + self.room].into_boxed_slice();
        let end = HEADROOM + bytes.len();
        memory[HEADROOM..end].copy_from_slice(bytes);
        Some(HeapBuf { memory, start: HEADROOM, end, live: Arc::clone(&self.live) })
    }
}

impl Alloc for HeapPool {
    type Buf = HeapBuf;
    fn alloc(&mut self, burst: &mut Burst<HeapBuf>, n: usize, len: usize) -> usize {
        if n > burst.remaining_capacity() || self.in_use() + n > self.capacity || len > self.room {
            return 0;
        }
        let zeros = vec![0; len];
        burst.extend((0..n).filter_map(|_| self.frame(&zeros)));
        n
    }
}

/// One end of a queue of frames held in memory; clones share the queue.
///
/// [`HeapWire::pair`] joins two ends crosswise, as a cable joins two ports.
#[derive(Debug, Clone)]
pub struct HeapWire {
    incoming: Rc<RefCell<VecDeque<HeapBuf>>>,
    outgoing: Rc<RefCell<VecDeque<HeapBuf>>>,
    depth: usize,
}

impl HeapWire {
    /// The two ends of a cable whose directions each hold `depth` frames.
    pub fn pair(depth: usize) -> (Self, Self) {
        let (a, b) = (Rc::<RefCell<_>>::default(), Rc::<RefCell<_>>::default());
        let near = Self { incoming: Rc::clone(&a), outgoing: Rc::clone(&b), depth };
        (near, Self { incoming: b, outgoing: a, depth })
    }
}

// The queue never crosses threads; only the buffers in it are `Send`.
impl Rx for HeapWire {
    type Buf = HeapBuf;
    fn rx(&mut self, burst: &mut Burst<HeapBuf>) -> usize {
        let mut queue = self.incoming.borrow_mut();
        let n = queue.len().min(burst.remaining_capacity());
        burst.extend(queue.drain(..n));
        n
    }
}

impl Tx for HeapWire {
    type Buf = HeapBuf;
    fn tx(&mut self, burst: &mut Burst<HeapBuf>) -> usize {
        let mut queue = self.outgoing.borrow_mut();
        let n = burst.len().min(self.depth.saturating_sub(queue.len()));
        queue.extend(burst.drain(..n));
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cable_leaves_the_unsent_in_front() {
        let pool = HeapPool::new(8, 64);
        let (mut a, mut b) = HeapWire::pair(2);
        let mut burst: Burst<_> = (0..3u8).filter_map(|i| pool.frame(&[i])).collect();
        assert_eq!(a.tx(&mut burst), 2);
        assert_eq!(burst[0].data(), [2]);
        let mut got = Burst::new();
        assert_eq!(b.rx(&mut got), 2);
        drop((burst, got));
        assert_eq!(pool.in_use(), 0);
    }

    #[test]
    fn headroom_and_tailroom_end_where_they_end() {
        let mut pool = HeapPool::new(1, 64);
        let mut burst = Burst::new();
        assert_eq!(pool.alloc(&mut burst, 1, 60), 1);
        assert_eq!(pool.alloc(&mut burst, 1, 60), 0);
        let buf = &mut burst[0];
        assert!(buf.prepend(50) && buf.len() == 110);
        assert!(!buf.prepend(79) && buf.len() == 110);
        assert!(!buf.trim_front(111) && buf.trim_front(110) && buf.is_empty());
        assert!(!buf.set_len(5) && buf.set_len(4));
    }
}
