//! Counters of a port that any thread may read.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flow::decode::NotIp;

/// Most EtherTypes that are counted one by one.
const TYPES: usize = 16;
/// Position of the EtherType in a word with its count.
const TYPE: u32 = 48;

/// What one lcore counted on one port. The lcore alone writes, once a burst; any thread reads.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct PortCounters {
    packets: AtomicU64,
    bytes: AtomicU64,
    not_ip: [AtomicU64; NotIp::KINDS],
    malformed: AtomicU64,
    cut: AtomicU64,
    /// The EtherTypes that came first of those that are not decoded, each with its count; zero: free.
    types: [AtomicU64; TYPES],
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

    /// Counts a frame of an EtherType that is not decoded, unless as many others came before. As [`Self::add`]: its lcore only.
    #[cold]
    pub(super) fn add_type(&self, ether_type: u16) {
        for word in &self.types {
            let before = word.load(Relaxed);
            if before == 0 || before >> TYPE == u64::from(ether_type) {
                let count = (before & ((1 << TYPE) - 1)) + 1;
                word.store(u64::from(ether_type) << TYPE | count, Relaxed);
                return;
            }
        }
    }

    /// Frames by EtherType, of the first 16 that came of those that are not decoded. They are also of [`NotIp::Other`].
    pub fn types(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let words = self.types.iter().map(|word| word.load(Relaxed)).filter(|word| *word != 0);
        words.map(|word| ((word >> TYPE) as u16, word & ((1 << TYPE) - 1)))
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
