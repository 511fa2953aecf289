//! The lcore's side.

use std::{ops::Deref, sync::Arc};

use super::{
    counts::Counts,
    flows::{Common, Flows},
    index::LANES,
    prefetch::Prefetch,
    reader::Shared,
    slot::{V4, V6},
    sweep::Sweep,
    sync::{AtomicU64, Ordering},
    time::Walls,
};
use crate::decode::{Packet4, Packet6};

/// Counts packets and ends flows: the one writer of a table. Nothing here waits, locks or allocates.
pub struct Worker<M> {
    pub(crate) shared: Arc<Shared<M>>,
    pub(crate) v4: Flows<V4>,
    pub(crate) v6: Flows<V6>,
    pub(crate) common: Common,
    pub(crate) sweep: Sweep,
    /// Buckets flushed so far.
    pub(crate) flushed: u32,
    /// The latest tick that a packet brought along.
    pub(crate) latest: u64,
}

impl<M: Deref<Target = [AtomicU64]> + Send + Sync> Worker<M> {
    /// A burst begins: nothing is expected yet.
    #[inline(always)]
    pub fn begin(&mut self) {
        self.v4.begin();
        self.v6.begin();
    }

    /// Asks for the memory that an IPv4 packet will need when it is counted: told as each packet is decoded, the memory is
    /// there by then. Packets are expected in the order in which they are counted, all of a burst or none.
    #[inline(always)]
    pub fn expect4(&mut self, packet: &Packet4, prefetch: &impl Prefetch) {
        let (table, _) = self.shared.tables();
        self.v4.expect(table, packet, prefetch);
    }

    /// Asks for the memory that an IPv6 packet will need, as [`Self::expect4`] does.
    #[inline(always)]
    pub fn expect6(&mut self, packet: &Packet6, prefetch: &impl Prefetch) {
        let (_, table) = self.shared.tables();
        self.v6.expect(table, packet, prefetch);
    }

    /// Counts IPv4 packets that one port received at tick `now`, a burst at a time.
    #[inline]
    pub fn count4(&mut self, packets: &[Packet4], ingress: u8, now: u64, prefetch: &impl Prefetch) {
        let (table, _) = self.shared.tables();
        self.v4.count(table, &mut self.common, packets, ingress, now, prefetch);
        self.publish();
    }

    /// Counts IPv6 packets, as [`Self::count4`] does.
    #[inline]
    pub fn count6(&mut self, packets: &[Packet6], ingress: u8, now: u64, prefetch: &impl Prefetch) {
        let (_, table) = self.shared.tables();
        self.v6.count(table, &mut self.common, packets, ingress, now, prefetch);
        self.publish();
    }

    /// Hears of steps of the wall clock, and ends flows that are due at tick `now`, looking at no more than `budget` places
    /// (rounded up to 16); to be called every poll. All places are looked at once a second, or of more than half a million
    /// so many a second, but all in a quarter of the idle timeout if that is a second or more, as long as the budgets
    /// allow; there is no more to do than that, so a large budget costs an idle lcore nothing.
    /// Returns how many places were looked at.
    #[inline]
    pub fn age(&mut self, now: u64, budget: usize) -> usize {
        self.common.walls = Walls(self.shared.walls.load(Ordering::Relaxed));
        let due = self.sweep.due(now).min(u32::try_from(budget.div_ceil(LANES)).unwrap_or(u32::MAX));
        if due > 0 {
            for _ in 0..due {
                let bucket = self.sweep.step();
                self.look(bucket, now, false);
            }
            self.publish();
        }
        due as usize * LANES
    }

    /// Counts IPv4 packets of which each has a tick of its own, about in order: those of a capture. What is due at a
    /// packet's tick ends before it is counted, whether or not [`Self::age`] has come by. All packets of a table are
    /// counted so, or none.
    pub fn count4_at(&mut self, packets: &[Packet4], ticks: &[u64], ingress: u8, prefetch: &impl Prefetch) {
        self.latest = ticks.iter().fold(self.latest, |latest, &tick| latest.max(tick));
        let (table, _) = self.shared.tables();
        self.v4.count(table, &mut self.common, packets, ingress, ticks, prefetch);
        self.publish();
    }

    /// Counts IPv6 packets, as [`Self::count4_at`] does.
    pub fn count6_at(&mut self, packets: &[Packet6], ticks: &[u64], ingress: u8, prefetch: &impl Prefetch) {
        self.latest = ticks.iter().fold(self.latest, |latest, &tick| latest.max(tick));
        let (_, table) = self.shared.tables();
        self.v6.count(table, &mut self.common, packets, ingress, ticks, prefetch);
        self.publish();
    }

    /// The latest tick of a packet that had one of its own; zero before there was one.
    pub fn latest(&self) -> u64 {
        self.latest
    }

    /// Ends all flows, as the logger does; looks at no more than `budget` places (rounded up to 16) a call and stops
    /// while there is no room for the records, so that none is dropped. Returns whether it is through; no packets are to
    /// be counted any more.
    pub fn flush(&mut self, budget: usize) -> bool {
        let all = self.buckets();
        for _ in 0..budget.div_ceil(LANES) {
            if self.flushed >= all || self.v4.slots().min(self.v6.slots()) < LANES {
                break;
            }
            // By then some were due in a capture; live, nothing is due at zero.
            self.look(self.flushed, self.latest, true);
            self.flushed += 1;
        }
        self.publish();
        self.flushed >= all
    }

    /// What was counted so far.
    pub fn counts(&self) -> &Counts {
        &self.common.counts
    }

    pub(crate) fn buckets(&self) -> u32 {
        (self.v4.buckets() + self.v6.buckets()) as u32
    }

    fn look(&mut self, bucket: u32, now: u64, forced: bool) {
        let (v4, v6) = self.shared.tables();
        match bucket.checked_sub(self.v4.buckets() as u32) {
            None => self.v4.sweep(v4, &mut self.common, bucket, now, forced),
            Some(bucket) => self.v6.sweep(v6, &mut self.common, bucket, now, forced),
        }
    }

    /// Shows readers the counts, once a burst and only when they have changed.
    #[inline]
    fn publish(&mut self) {
        if self.common.changed {
            self.common.changed = false;
            self.shared.counters.publish(&self.common.counts);
        }
    }
}
