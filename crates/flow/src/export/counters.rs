//! Counters of the records given to a sink.

use std::sync::{
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    Arc,
};

use crate::{ipfix::Statistics, protocol::ExportTotals, unix_time::since_1970, Record};

/// Counters of the records given to a sink. Each number only grows.
#[derive(Debug, Default)]
pub(super) struct Counters {
    given: AtomicU64,
    sent: AtomicU64,
    dropped: AtomicU64,
    /// Now: of those sent, how many may not have been read.
    uncertain: AtomicU64,
    resent: AtomicU64,
    dropped_packets: AtomicU64,
    dropped_octets: AtomicU64,
    /// Times of the first and the last loss, in milliseconds since 1970; zero: none.
    dropped_ms: [AtomicU64; 2],
    /// Records lost before they reached a sink: the queue from the packet path was full.
    missed: Arc<AtomicU64>,
    messages: AtomicU64,
    octets: AtomicU64,
    /// It takes records, as far as is known.
    pub up: AtomicBool,
    /// It does not; neither at first.
    pub down: AtomicBool,
    /// Nothing counts any more.
    closed: AtomicBool,
}

impl Counters {
    /// Of one sink; `missed` counts for all of them.
    pub fn new(missed: &Arc<AtomicU64>) -> Self {
        Self { missed: Arc::clone(missed), ..Self::default() }
    }

    pub fn given(&self, n: usize) {
        self.given.fetch_add(n as u64, Relaxed);
    }

    pub fn sent(&self, n: usize) {
        if self.closed.load(Relaxed) {
            return;
        }
        self.sent.fetch_add(n as u64, Relaxed);
    }

    /// So many of those sent may not have been read.
    pub fn uncertain(&self, n: usize) {
        self.uncertain.store(n as u64, Relaxed);
    }

    pub fn resent(&self, n: usize) {
        self.resent.fetch_add(n as u64, Relaxed);
    }

    /// A message or a write went out.
    pub fn out(&self, octets: usize) {
        self.messages.fetch_add(1, Relaxed);
        self.octets.fetch_add(octets as u64, Relaxed);
    }

    pub fn dropped<'a>(&self, records: impl IntoIterator<Item = &'a Record>) {
        let mut lost = Lost::default();
        records.into_iter().for_each(|record| lost.add(record));
        self.lost(&lost);
    }

    pub fn lost(&self, lost: &Lost) {
        if self.closed.load(Relaxed) || lost.records == 0 {
            return;
        }
        self.dropped.fetch_add(lost.records, Relaxed);
        let now = u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX);
        let _ = self.dropped_ms[0].compare_exchange(0, now, Relaxed, Relaxed);
        self.dropped_ms[1].store(now, Relaxed);
        self.dropped_packets.fetch_add(lost.packets, Relaxed);
        self.dropped_octets.fetch_add(lost.octets, Relaxed);
    }

    /// Counts all waiting records as dropped, at the end.
    pub fn abandon(&self) {
        self.closed.store(true, Relaxed);
        let rest = self.unsettled();
        self.dropped.fetch_add(rest, Relaxed);
    }

    /// Waiting records: given, but neither sent nor dropped.
    fn unsettled(&self) -> u64 {
        // Reads in this order, so that the difference stays at or above zero while other threads count.
        let settled = self.sent.load(Relaxed).wrapping_add(self.dropped.load(Relaxed));
        self.given.load(Relaxed).saturating_sub(settled)
    }

    pub fn totals(&self) -> ExportTotals {
        let (sent, dropped) = (self.sent.load(Relaxed), self.dropped.load(Relaxed));
        let (uncertain, resent) = (self.uncertain.load(Relaxed), self.resent.load(Relaxed));
        ExportTotals { records: self.given.load(Relaxed), sent, dropped, uncertain, resent }
    }

    pub fn messages(&self) -> (u64, u64) {
        (self.messages.load(Relaxed), self.octets.load(Relaxed))
    }

    pub fn statistics(&self) -> Statistics {
        Statistics {
            messages: self.messages.load(Relaxed),
            flows: self.sent.load(Relaxed),
            octets: self.octets.load(Relaxed),
            not_sent_flows: self.dropped.load(Relaxed).wrapping_add(self.missed.load(Relaxed)),
            not_sent_packets: self.dropped_packets.load(Relaxed),
            not_sent_octets: self.dropped_octets.load(Relaxed),
            not_sent_ms: [self.dropped_ms[0].load(Relaxed), self.dropped_ms[1].load(Relaxed)],
        }
    }
}

/// Records that are lost or may be lost.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lost {
    pub records: u64,
    pub packets: u64,
    pub octets: u64,
}

impl Lost {
    pub fn add(&mut self, record: &Record) {
        self.records += 1;
        self.packets = self.packets.wrapping_add(record.forward.packets).wrapping_add(record.back.packets);
        self.octets = self.octets.wrapping_add(record.forward.ip_bytes).wrapping_add(record.back.ip_bytes);
    }
}
