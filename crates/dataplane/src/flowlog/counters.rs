//! Counters of a port that any thread may read.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flow::decode::NotIp;

/// What one lcore counted on one port. The lcore alone writes, once a burst; any thread reads.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct PortCounters {
    packets: AtomicU64,
    bytes: AtomicU64,
    not_ip: [AtomicU64; NotIp::KINDS],
    malformed: AtomicU64,
    cut: AtomicU64,
}

/// Counts of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortCounts {
    /// Frames received.
    pub packets: u64,
    /// Their bytes, without FCS.
    pub bytes: u64,
    /// Frames other than IP, by kind, in the order of [`NotIp::ALL`].
    pub not_ip: [u64; NotIp::KINDS],
    /// Frames that claim to be IP but cannot be read.
    pub malformed: u64,
    /// Frames of which the port gave only the beginning. Their length is that of their IP header.
    pub cut: u64,
}

impl std::ops::AddAssign for PortCounts {
    fn add_assign(&mut self, more: Self) {
        self.packets += more.packets;
        self.bytes += more.bytes;
        self.not_ip.iter_mut().zip(more.not_ip).for_each(|(sum, n)| *sum += n);
        self.malformed += more.malformed;
        self.cut += more.cut;
    }
}

impl PortCounts {
    /// Counts a frame other than IP.
    #[inline]
    pub(super) fn not_ip(&mut self, kind: NotIp) {
        if let Some(count) = self.not_ip.get_mut(kind as usize) {
            *count += 1;
        }
    }
}

impl PortCounters {
    /// Adds a burst's. Only the lcore that owns them may: a plain load and store, not an atomic addition.
    #[inline]
    pub(super) fn add(&self, burst: PortCounts) {
        let add = |counter: &AtomicU64, n: u64| counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
        add(&self.packets, burst.packets);
        add(&self.bytes, burst.bytes);
        let not_ip: u64 = burst.not_ip.iter().sum();
        if not_ip + burst.malformed + burst.cut > 0 {
            self.not_ip.iter().zip(burst.not_ip).for_each(|(counter, n)| add(counter, n));
            add(&self.malformed, burst.malformed);
            add(&self.cut, burst.cut);
        }
    }

    /// What was counted so far; each figure by itself is exact, together they may be of bursts next to each other.
    pub fn read(&self) -> PortCounts {
        PortCounts {
            packets: self.packets.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            not_ip: std::array::from_fn(|kind| self.not_ip.get(kind).map_or(0, |count| count.load(Relaxed))),
            malformed: self.malformed.load(Relaxed),
            cut: self.cut.load(Relaxed),
        }
    }
}
