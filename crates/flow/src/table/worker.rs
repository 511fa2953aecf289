//! The worker of a table: its lcore counts, ages and ends flows.

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
use crate::{
    decode::{Packet4, Packet6},
    PacketDetails,
};

/// Counts packets and ends flows: the only writer of a table. Never waits, locks or allocates.
pub struct Worker<M> {
    pub(crate) shared: Arc<Shared<M>>,
    pub(crate) v4: Flows<V4>,
    pub(crate) v6: Flows<V6>,
    pub(crate) common: Common,
    pub(crate) sweep: Sweep,
    /// Buckets flushed so far.
    pub(crate) flushed: u32,
    /// The latest tick of a packet with its own tick, since time last stepped back.
    pub(crate) latest: u64,
}

impl<M: Deref<Target = [AtomicU64]> + Send + Sync> Worker<M> {
    /// Begins a burst without expected packets.
    #[inline(always)]
    pub fn begin(&mut self) {
        self.v4.begin();
        self.v6.begin();
    }

    /// Prefetches the memory that an IPv4 packet needs when it is counted. Call it as each packet is decoded, in the order in
    /// which packets are counted, for all packets of a burst or for none.
    #[inline(always)]
    pub fn expect4(&mut self, packet: &Packet4, prefetch: &impl Prefetch) {
        let (table, _) = self.shared.tables();
        self.v4.expect(table, packet, prefetch);
    }

    /// Prefetches the memory that an IPv6 packet needs, as [`Self::expect4`] does.
    #[inline(always)]
    pub fn expect6(&mut self, packet: &Packet6, prefetch: &impl Prefetch) {
        let (_, table) = self.shared.tables();
        self.v6.expect(table, packet, prefetch);
    }

    /// Counts IPv4 packets that one port received at tick `now`, a burst at a time.
    #[inline]
    pub fn count4(&mut self, packets: &[Packet4], ingress: u8, now: u64, prefetch: &impl Prefetch) {
        let (table, _) = self.shared.tables();
        self.v4.count(table, &mut self.common, (packets, ()), ingress, now, prefetch);
        self.publish();
    }

    /// Counts IPv6 packets, as [`Self::count4`] does.
    #[inline]
    pub fn count6(&mut self, packets: &[Packet6], ingress: u8, now: u64, prefetch: &impl Prefetch) {
        let (_, table) = self.shared.tables();
        self.v6.count(table, &mut self.common, (packets, ()), ingress, now, prefetch);
        self.publish();
    }

    /// Whether records have details: then count packets with [`Self::count4_with`] and its like.
    pub fn has_details(&self) -> bool {
        self.v4.has_details()
    }

    /// Counts IPv4 packets as [`Self::count4`] does, with the details of each.
    pub fn count4_with(
        &mut self,
        packets: &[Packet4],
        more: &[PacketDetails],
        ingress: u8,
        now: u64,
        prefetch: &impl Prefetch,
    ) {
        let (table, _) = self.shared.tables();
        self.v4.count(table, &mut self.common, (packets, more), ingress, now, prefetch);
        self.publish();
    }

    /// Counts IPv6 packets as [`Self::count6`] does, with the details of each.
    pub fn count6_with(
        &mut self,
        packets: &[Packet6],
        more: &[PacketDetails],
        ingress: u8,
        now: u64,
        prefetch: &impl Prefetch,
    ) {
        let (_, table) = self.shared.tables();
        self.v6.count(table, &mut self.common, (packets, more), ingress, now, prefetch);
        self.publish();
    }

    /// Ends flows that are due at tick `now`, and takes in steps of the wall clock. Looks at no more than `budget` places
    /// (rounded up to 16). Call it every poll. If the budgets allow, a round over all places takes a second; with more than
    /// half a million places longer, but at most a quarter of the idle timeout (or a second). A large budget costs an idle
    /// lcore nothing, because a round never goes faster.
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

    /// A frame of a capture came at this tick. Call it for every frame, in the order of the capture, before the packets of a
    /// burst are counted. A tick that is earlier than the latest by more than the idle timeout is a step back: flows from before
    /// the step end as they are aged or get a packet.
    #[inline]
    pub fn follow(&mut self, tick: u64) {
        self.common.has_steps = true;
        let is_step = self.latest.saturating_sub(tick) > self.common.idle;
        self.latest = if is_step { tick } else { self.latest.max(tick) };
    }

    /// Counts IPv4 packets of a capture, each with its own tick, about in order, after [`Self::follow`]. Flows that are due at
    /// the tick of a packet end before the packet is counted, even without [`Self::age`]. Count all packets of a table this way,
    /// or none.
    pub fn count4_at(&mut self, packets: &[Packet4], ticks: &[u64], ingress: u8, prefetch: &impl Prefetch) {
        let (table, _) = self.shared.tables();
        self.v4.count(table, &mut self.common, (packets, ()), ingress, ticks, prefetch);
        self.publish();
    }

    /// Counts IPv6 packets, as [`Self::count4_at`] does.
    pub fn count6_at(&mut self, packets: &[Packet6], ticks: &[u64], ingress: u8, prefetch: &impl Prefetch) {
        let (_, table) = self.shared.tables();
        self.v6.count(table, &mut self.common, (packets, ()), ingress, ticks, prefetch);
        self.publish();
    }

    /// Counts IPv4 packets as [`Self::count4_at`] does, with the details of each.
    pub fn count4_at_with(
        &mut self,
        packets: &[Packet4],
        more: &[PacketDetails],
        ticks: &[u64],
        ingress: u8,
        prefetch: &impl Prefetch,
    ) {
        let (table, _) = self.shared.tables();
        self.v4.count(table, &mut self.common, (packets, more), ingress, ticks, prefetch);
        self.publish();
    }

    /// Counts IPv6 packets as [`Self::count6_at`] does, with the details of each.
    pub fn count6_at_with(
        &mut self,
        packets: &[Packet6],
        more: &[PacketDetails],
        ticks: &[u64],
        ingress: u8,
        prefetch: &impl Prefetch,
    ) {
        let (_, table) = self.shared.tables();
        self.v6.count(table, &mut self.common, (packets, more), ingress, ticks, prefetch);
        self.publish();
    }

    /// The latest tick of [`Self::follow`] since time last stepped back; zero before the first.
    pub fn latest(&self) -> u64 {
        self.latest
    }

    /// Ends all flows, at the end of the logger. Looks at no more than `budget` places (rounded up to 16) per call, and
    /// pauses while the queue of records is full, so that none is dropped. Returns whether it is done. Count no packets
    /// afterwards.
    pub fn flush(&mut self, budget: usize) -> bool {
        let all = self.buckets();
        for _ in 0..budget.div_ceil(LANES) {
            if self.flushed >= all || self.v4.slots().min(self.v6.slots()) < LANES {
                break;
            }
            // In a capture, flows may be due at the last tick. Live, no flow is due at zero.
            self.look(self.flushed, self.latest, true);
            self.flushed += 1;
        }
        self.publish();
        self.flushed >= all
    }

    /// The counts so far.
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

    /// Publishes changed counts to readers, once per burst.
    #[inline]
    fn publish(&mut self) {
        if self.common.changed {
            self.common.changed = false;
            self.shared.counters.publish(&self.common.counts);
        }
    }
}
