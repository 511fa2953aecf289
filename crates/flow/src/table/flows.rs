//! The flows of one IP version, as their worker sees them.

use packet::BURST;
use rtrb::Producer;

use super::{
    counts::Counts,
    detail_table::DetailTable,
    hash::Hasher,
    index::{Index, LANES, NONE},
    prefetch::Prefetch,
    slot::{Family, Slot, Slots},
    spec::{TableError, TableFull},
    time::Walls,
};
use crate::{EndReason, Facts, PacketDetails};

/// When packets were seen.
pub(crate) trait When: Copy {
    /// Whether each packet has its own time; timeouts are then checked at every packet.
    const EACH: bool;
    /// Tick of packet `i`.
    fn tick(self, i: usize) -> u64;
}

/// All packets at one tick.
impl When for u64 {
    const EACH: bool = false;
    #[inline(always)]
    fn tick(self, _: usize) -> u64 {
        self
    }
}

/// Packets of a capture, each with its tick.
impl When for &[u64] {
    const EACH: bool = true;
    #[inline(always)]
    fn tick(self, i: usize) -> u64 {
        self.get(i).copied().unwrap_or_default()
    }
}

/// State that both IP versions share.
pub(crate) struct Common {
    pub(crate) full: TableFull,
    pub(crate) biflow: bool,
    /// Timeouts in ticks.
    pub(crate) idle: u64,
    pub(crate) active: u64,
    /// Whether packets have their own ticks, which may step back.
    pub(crate) has_steps: bool,
    /// Ticks within which packets overtake each other: 3 ms.
    pub(crate) overtaking: u64,
    /// How long a flow that TCP has closed stays for late frames, in ticks.
    pub(crate) linger: u64,
    /// Wall clocks, as last read.
    pub(crate) walls: Walls,
    pub(crate) counts: Counts,
    /// Whether readers see older counts.
    pub(crate) changed: bool,
}

impl Common {
    /// Whether the last frame of a flow is so far ahead that time has stepped back since.
    #[inline]
    fn is_ahead<F: Family>(&self, slot: Slot<'_, F>, now: u64) -> bool {
        self.has_steps && slot.last().saturating_sub(now) > self.idle
    }

    #[inline]
    fn due<F: Family>(&self, slot: Slot<'_, F>, now: u64) -> Option<EndReason> {
        // What was before a step back is over.
        let now = if self.is_ahead(slot, now) { u64::MAX } else { now };
        slot.due(now, self.idle, self.active, self.linger)
    }

    /// Whether a frame at this time needs more than counting in the slot.
    #[inline]
    fn is_odd<F: Family>(&self, slot: Slot<'_, F>, now: u64) -> bool {
        now < slot.last() || self.due(slot, now).is_some()
    }
}

/// Of a packet without details.
static NO_DETAILS: PacketDetails = PacketDetails::NONE;

/// What is recorded of packets besides their counts.
pub(crate) trait More: Copy {
    /// Whether there is any.
    const ANY: bool;
    /// That of packet `i`.
    fn of(&self, i: usize) -> &PacketDetails;
}

impl More for () {
    const ANY: bool = false;
    #[inline(always)]
    fn of(&self, _: usize) -> &PacketDetails {
        &NO_DETAILS
    }
}

impl More for &[PacketDetails] {
    const ANY: bool = true;
    #[inline(always)]
    fn of(&self, i: usize) -> &PacketDetails {
        self.get(i).unwrap_or(&NO_DETAILS)
    }
}

pub(crate) struct Flows<F: Family> {
    hasher: Hasher,
    index: Index,
    ended: Producer<F::Raw>,
    details: Option<DetailTable>,
    burst: Expected,
}

/// Number of packets between the prefetch of an index bucket and its use.
const LAG: usize = 12;

/// The known packets of the current burst.
struct Expected {
    /// Hashes, and the slots that probably hold the flows.
    hashes: [u64; BURST],
    found: [u32; BURST],
    /// Number of packets with a hash, and number of those looked up in their first bucket.
    hashed: usize,
    looked: usize,
    /// Bits of the packets that are not in their first bucket.
    elsewhere: u64,
}

impl Expected {
    const NONE: Self = Self { hashes: [0; BURST], found: [NONE; BURST], hashed: 0, looked: 0, elsewhere: 0 };
}

impl<F: Family> Flows<F> {
    pub(crate) fn new(
        buckets: usize,
        ended: Producer<F::Raw>,
        details: Option<DetailTable>,
    ) -> Result<Self, TableError> {
        Ok(Self { hasher: Hasher::random()?, index: Index::new(buckets), ended, details, burst: Expected::NONE })
    }

    /// Whether records have details.
    pub(crate) fn has_details(&self) -> bool {
        self.details.is_some()
    }

    pub(crate) fn buckets(&self) -> usize {
        self.index.buckets()
    }

    /// Bytes of the index and of the details.
    pub(crate) fn own_memory(&self) -> usize {
        self.index.memory() + self.details.as_ref().map_or(0, DetailTable::memory)
    }

    /// Number of records of ended flows that still fit.
    pub(crate) fn slots(&self) -> usize {
        self.ended.slots()
    }

    /// Discards the expected packets.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        (self.burst.hashed, self.burst.looked, self.burst.elsewhere) = (0, 0, 0);
    }

    /// Prefetches the index bucket of a packet, and the slot of an earlier packet.
    #[inline(always)]
    pub(crate) fn expect(&mut self, table: Slots<'_>, packet: &F::Packet, prefetch: &impl Prefetch) {
        let Some(hash) = self.burst.hashes.get_mut(self.burst.hashed) else { return };
        *hash = self.hasher.hash(F::key(packet));
        if let Some(bucket) = self.index.bucket(self.index.spot(*hash).first) {
            prefetch.prefetch(bucket);
        }
        self.burst.hashed += 1;
        if self.burst.hashed > LAG {
            self.look(table, prefetch);
        }
    }

    /// Looks up the flow of the next packet in its first bucket, and prefetches its slot or its second bucket.
    #[inline(always)]
    fn look(&mut self, table: Slots<'_>, prefetch: &impl Prefetch) {
        let Expected { hashes, found, looked, elsewhere, .. } = &mut self.burst;
        let (Some(&hash), Some(found)) = (hashes.get(*looked), found.get_mut(*looked)) else { return };
        let spot = self.index.spot(hash);
        let lanes = self.index.lanes(spot.first, spot.tag);
        if lanes != 0 {
            *found = spot.slot(lanes.trailing_zeros());
            fetch::<F>(table, *found, self.details.as_ref(), prefetch);
        } else {
            *elsewhere |= 1 << *looked;
            if let Some(bucket) = self.index.bucket(spot.second) {
                prefetch.prefetch(bucket);
            }
        }
        *looked += 1;
    }

    /// Counts packets of one ingress port. If they are not the packets expected since [`Self::begin`], the lookups are done
    /// again.
    // Out of line: the loop needs all registers.
    #[inline(never)]
    pub(crate) fn count(
        &mut self,
        table: Slots<'_>,
        common: &mut Common,
        (packets, more): (&[F::Packet], impl More),
        ingress: u8,
        when: impl When,
        prefetch: &impl Prefetch,
    ) {
        for (chunk, packets) in packets.chunks(BURST).enumerate() {
            if chunk > 0 || self.burst.hashed != packets.len() {
                self.begin();
                packets.iter().for_each(|packet| self.expect(table, packet, prefetch));
            }
            debug_assert!(packets.iter().zip(&self.burst.hashes).all(|(p, &hash)| hash == self.hasher.hash(F::key(p))));
            for _ in self.burst.looked..packets.len() {
                self.look(table, prefetch);
            }
            let mut elsewhere = self.burst.elsewhere;
            // Packets of flows in a second bucket, and of new flows: few, as long as few buckets are nearly full.
            while elsewhere != 0 {
                let i = elsewhere.trailing_zeros() as usize;
                elsewhere &= elsewhere - 1;
                let (Some(&hash), Some(found)) = (self.burst.hashes.get(i), self.burst.found.get_mut(i)) else { break };
                let spot = self.index.spot(hash);
                let lanes = self.index.lanes(spot.second, spot.tag) << LANES;
                // A new flow gets an empty slot; a lookup by key does not find empty slots.
                *found = if lanes != 0 { spot.slot(lanes.trailing_zeros()) } else { self.index.room(spot) };
                fetch::<F>(table, *found, self.details.as_ref(), prefetch);
            }
            for (i, packet) in packets.iter().enumerate() {
                let (Some(&hash), Some(&found)) = (self.burst.hashes.get(i), self.burst.found.get(i)) else { break };
                let place = self.count_one(table, common, (hash, found), packet, ingress, (when, chunk * BURST + i));
                self.detail(table, common, packet, place, more, (when, chunk * BURST + i));
            }
            self.begin();
        }
    }

    /// Counts a packet whose hash and probable slot are known.
    #[inline(always)]
    fn count_one<W: When>(
        &mut self,
        table: Slots<'_>,
        common: &mut Common,
        (hash, found): (u64, u32),
        packet: &F::Packet,
        ingress: u8,
        (when, i): (W, usize),
    ) -> u32 {
        let now = when.tick(i);
        match Slot::<F>::numbered(table, found) {
            Some(slot)
                if slot.is(F::key(packet))
                    && !(W::EACH && common.is_odd(slot, now))
                    && slot.count(F::facts(packet), now) =>
            {
                found
            }
            _ => self.count_else(table, common, hash, packet, ingress, now, W::EACH),
        }
    }

    /// Takes the details of a packet that was counted in this place.
    #[inline(always)]
    fn detail<M: More>(
        &mut self,
        table: Slots<'_>,
        common: &Common,
        packet: &F::Packet,
        place: u32,
        more: M,
        (when, i): (impl When, usize),
    ) {
        if !M::ANY {
            return;
        }
        let Some(details) = &mut self.details else { return };
        let back = Slot::<F>::numbered(table, place).is_some_and(|slot| slot.is_back(F::facts(packet)));
        details.take(place, more.of(i), back, when.tick(i), common.overtaking);
    }

    /// Counts all other packets: a new flow, a change of the TCP state, or a flow that shares its tag with another. Returns the
    /// place of the flow.
    #[allow(clippy::too_many_arguments)]
    #[inline(never)]
    fn count_else(
        &mut self,
        table: Slots<'_>,
        common: &mut Common,
        hash: u64,
        packet: &F::Packet,
        ingress: u8,
        now: u64,
        each: bool,
    ) -> u32 {
        let (key, facts) = (F::key(packet), F::facts(packet));
        let spot = self.index.spot(hash);
        let mut lanes = self.index.find(spot);
        while lanes != 0 {
            let place = spot.slot(lanes.trailing_zeros());
            match Slot::<F>::numbered(table, place) {
                Some(slot) if slot.is(key) => {
                    // Frames of a capture may be slightly out of order.
                    let (tick, in_order) = (now, !each || common.is_ahead(slot, now));
                    let now = if in_order { now } else { now.max(slot.last()) };
                    let due = if each { common.due(slot, now) } else { None };
                    if let Some(reason) = due {
                        self.out(common, slot.cut(reason, common.walls), place);
                    }
                    if due.is_some_and(|reason| reason != EndReason::Active) {
                        self.forget(place);
                        slot.fill(key, facts, ingress, now, common.biflow, common.walls);
                        common.counts.created += 1;
                        common.changed = true;
                        return place;
                    }
                    let cut = slot.count_turn(facts, ingress, now, common.biflow, common.walls);
                    self.out(common, cut, place);
                    if each {
                        slot.begin_by(tick);
                    }
                    return place;
                }
                _ => lanes &= lanes - 1,
            }
        }
        common.changed = true;
        let mut place = self.index.room(spot);
        if place == NONE && common.full == TableFull::Evict {
            // All 32 are occupied; prefetch them all.
            let all = (0..2 * LANES as u32).map(|bit| spot.slot(bit));
            let last = |&i: &u32| Slot::<F>::numbered(table, i).map_or(u64::MAX, Slot::last);
            place = all.min_by_key(last).unwrap_or(NONE);
            if let Some(slot) = Slot::<F>::numbered(table, place) {
                common.counts.evicted += 1;
                common.counts.flows -= 1;
                self.out(common, slot.cut(EndReason::LackOfResources, common.walls), place);
                self.forget(place);
            }
        }
        match Slot::<F>::numbered(table, place) {
            Some(slot) => {
                slot.fill(key, facts, ingress, now, common.biflow, common.walls);
                self.index.set(place, spot.tag);
                common.counts.flows += 1;
                common.counts.created += 1;
            }
            None => {
                common.counts.refused_packets += 1;
                common.counts.refused_bytes += u64::from(Facts::from(facts).frame_bytes);
            }
        }
        place
    }

    /// Passes the record of a place on, or counts it as dropped when the exporter is too slow. The details go first: who finds
    /// the record finds them.
    #[inline]
    fn out(&mut self, common: &mut Common, cut: Option<(F::Raw, EndReason)>, place: u32) {
        let Some((raw, reason)) = cut else { return };
        // Asked once: the reader takes records in between. Both go or neither, because only their order pairs them.
        let mut room = self.ended.slots() > 0;
        if let Some(details) = &mut self.details {
            room = room && details.slots() > 0;
            details.cut(place, reason == EndReason::Active, room);
        }
        common.changed = true;
        common.counts.ended[reason as usize - 1] += 1;
        if !room || self.ended.push(raw).is_err() {
            common.counts.dropped_records += 1;
        }
    }

    /// Forgets the details of a place whose flow has ended.
    fn forget(&mut self, place: u32) {
        if let Some(details) = &mut self.details {
            details.cut(place, false, false);
        }
    }

    /// Ends the flows of a bucket that are due, and with `forced` all other flows.
    pub(crate) fn sweep(&mut self, table: Slots<'_>, common: &mut Common, bucket: u32, now: u64, forced: bool) {
        let mut lanes = !self.index.lanes(bucket, 0) & 0xffff;
        while lanes != 0 {
            let place = bucket * LANES as u32 + lanes.trailing_zeros();
            lanes &= lanes - 1;
            let Some(slot) = Slot::<F>::numbered(table, place) else { return };
            let reason = match common.due(slot, now) {
                None | Some(EndReason::Active) if forced => EndReason::Forced,
                Some(reason) => reason,
                None => continue,
            };
            self.out(common, slot.cut(reason, common.walls), place);
            if reason != EndReason::Active {
                self.forget(place);
                self.index.set(place, 0);
                common.counts.flows -= 1;
                common.changed = true;
            }
        }
    }
}

/// Prefetches the cache lines of a slot, and that of its details.
#[inline(always)]
fn fetch<F: Family>(table: Slots<'_>, slot: u32, details: Option<&DetailTable>, prefetch: &impl Prefetch) {
    if let Some(line) = details.and_then(|details| details.line(slot)) {
        prefetch.prefetch(line);
    }
    if let Some(slot) = Slot::<F>::numbered(table, slot) {
        slot.lines().for_each(|line| prefetch.prefetch(line));
    }
}
