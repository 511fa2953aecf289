//! What the workers of a trial share with the thread that waits for them.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Times of a trial, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long workers wait for residual frames after the last one was sent (RFC 2544 §23 d).
    pub residual: u64,
    /// How long they wait at least, even when everything sent has come back: copies may follow.
    pub settle: u64,
}

/// Start, stop and progress of one trial, shared by reference. Nothing here is written on every loop.
#[derive(Debug)]
pub struct Control {
    orders: Line<Orders>,
    sent: Line<AtomicU64>,
    received: Line<AtomicU64>,
}

/// A cache line (and its neighbour, which is fetched with it) of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Line<T>(T);

#[derive(Debug)]
struct Orders {
    timing: Timing,
    start: AtomicU64,
    stop: AtomicBool,
    /// Transmit tasks still sending.
    senders: AtomicUsize,
    /// When the last of them was done.
    ended: AtomicU64,
}

const NEVER: u64 = u64::MAX;

impl Control {
    /// A trial with `senders` transmit tasks, over all workers.
    pub fn new(timing: Timing, senders: usize) -> Self {
        Self {
            orders: Line(Orders {
                timing,
                start: AtomicU64::new(NEVER),
                stop: AtomicBool::new(false),
                senders: AtomicUsize::new(senders),
                ended: AtomicU64::new(0),
            }),
            sent: Line(AtomicU64::new(0)),
            received: Line(AtomicU64::new(0)),
        }
    }

    /// Lets all workers begin at this tick. Give it a little ahead of now, so that all see it in time.
    pub fn start_at(&self, tick: u64) {
        self.orders.0.start.store(tick, Ordering::Release);
    }

    /// Makes all workers leave at their next loop.
    pub fn stop(&self) {
        self.orders.0.stop.store(true, Ordering::Release);
    }

    /// Whether [`stop`](Self::stop) was called.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.orders.0.stop.load(Ordering::Acquire)
    }

    /// Frames sent so far by all workers, as last published.
    pub fn sent(&self) -> u64 {
        self.sent.0.load(Ordering::Acquire)
    }

    /// Frames received so far by all workers, as last published.
    pub fn received(&self) -> u64 {
        self.received.0.load(Ordering::Acquire)
    }

    /// When sending ended; `None` while any task still sends.
    #[inline]
    pub fn ended(&self) -> Option<u64> {
        let orders = &self.orders.0;
        (orders.senders.load(Ordering::Acquire) == 0).then(|| orders.ended.load(Ordering::Acquire))
    }

    #[inline]
    pub(crate) fn start(&self) -> u64 {
        self.orders.0.start.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn timing(&self) -> Timing {
        self.orders.0.timing
    }

    pub(crate) fn senders_done(&self, n: usize, now: u64) {
        self.orders.0.ended.fetch_max(now, Ordering::AcqRel);
        self.orders.0.senders.fetch_sub(n, Ordering::AcqRel);
    }

    pub(crate) fn add(&self, sent: u64, received: u64) {
        if sent > 0 {
            self.sent.0.fetch_add(sent, Ordering::AcqRel);
        }
        if received > 0 {
            self.received.0.fetch_add(received, Ordering::AcqRel);
        }
    }
}
