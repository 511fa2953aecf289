//! The slot of a flow: a row of words that one worker writes and any thread reads.
//!
//! From word `A` on, after the addresses (`A` is 1 for IPv4, 4 for IPv6):
//!
//! | word | holds, highest bits first |
//! |---|---|
//! | `A` | source port 16, destination port 16, protocol 8, port 8, ToS of the first frame 8, state 8 (see below) |
//! | `A + 1` | version 32: odd while the worker writes, and in a record its end reason; scope 32 |
//! | `A + 2`, `A + 3` | tick of the first and of the last frame |
//! | `A + 4` | packets forward 32, back 32; zero: hidden from readers |
//! | `A + 5` | forward: TCP flags seen 9, bytes around the IP packets 17, IP bytes 38 |
//! | `A + 6` | the same for the way back |
//! | `A + 7` | only in records, from the spill: bytes around, forward 32, back 32, in units of 64 KiB |
//!
//! IPv4: 8 words, one cache line. IPv6: 11 words in rows of 12, in two cache lines.
//!
//! The bytes around the packets (headers before, padding behind) outgrow their 17 bits after some thousand packets. Each
//! 64 KiB of them then move to the spill: one word for each slot in an array that only such flows touch.

use super::{
    sync::{fence, AtomicU64, Ordering},
    time::Walls,
};
use crate::{
    decode::{Packet4, Packet6},
    facts::{AROUND, FLAGS},
    EndReason, PackedFacts,
};

/// State bit: frames in the direction of the key count as the way back.
pub(crate) const REVERSED: u64 = 1;
/// State bit: the first frame came in at the upper port of a pair; the key of a biflow has the lower one.
pub(crate) const UPPER: u64 = 1 << 1;
/// State bit: there is something in the spill.
const SPILLED: u64 = 1 << 2;
/// State bit: TCP has ended the flow.
const CLOSED: u64 = 1 << 3;
/// Position of the number of the flow's wall clock: the highest four bits of the state.
pub(crate) const WALL: u32 = 4;
const STATE: u64 = 0xff;

/// Mask of the IP bytes.
pub(crate) const IP_BYTES: u64 = (1 << AROUND) - 1;
/// From this count on, IP bytes or packets may soon overflow, and the record is cut.
const IP_HIGH: u64 = 1 << (AROUND - 1);
const FORWARD_HIGH: u64 = 1 << 63;
const BACK_HIGH: u64 = 1 << 31;
/// From this count on, the bytes around go to the spill. One frame adds less than that.
const AROUND_HIGH: u64 = 1 << (FLAGS - 1);
/// Bytes around in a unit of the spill.
pub(crate) const SPILL: u64 = AROUND_HIGH >> AROUND;

/// In the word of the version: the worker writes.
const WRITING: u64 = 1 << 32;

/// Tries of a reader before it skips a slot that the worker keeps writing.
const TRIES: usize = if cfg!(feature = "loom") { 2 } else { 1000 };

/// FIN, SYN and RST: flags that begin or end a connection.
const TURNS: u64 = 7;
const FIN: u64 = 1;
const SYN: u64 = 2;
const RST: u64 = 4;

/// IPv4 or IPv6: layout of a slot, and what is counted.
pub(crate) trait Family {
    /// A packet from the decoder.
    type Packet: Copy;
    /// The words of a slot in a record of an ended flow.
    type Raw: Copy + Send + AsRef<[u64]> + AsMut<[u64]>;
    /// An empty record.
    const EMPTY: Self::Raw;
    /// Number of words of the addresses.
    const A: usize;
    /// Number of words from slot to slot.
    const STRIDE: usize;

    fn key(packet: &Self::Packet) -> &[u64];
    fn facts(packet: &Self::Packet) -> PackedFacts;
}

/// IPv4.
pub(crate) enum V4 {}
/// IPv6.
pub(crate) enum V6 {}

macro_rules! family {
    ($family:ty, $packet:ty, $a:literal, $stride:literal, $raw:literal) => {
        impl Family for $family {
            type Packet = $packet;
            type Raw = [u64; $raw];
            const EMPTY: Self::Raw = [0; $raw];
            const A: usize = $a;
            const STRIDE: usize = $stride;

            #[inline(always)]
            fn key(packet: &Self::Packet) -> &[u64] {
                &packet.key.0
            }

            #[inline(always)]
            fn facts(packet: &Self::Packet) -> PackedFacts {
                packet.facts
            }
        }
    };
}
family!(V4, Packet4, 1, 8, 9);
family!(V6, Packet6, 4, 12, 12);

/// The slots of one IP version, and the spill: a word for each slot.
#[derive(Clone, Copy)]
pub(crate) struct Slots<'a> {
    pub(crate) words: &'a [AtomicU64],
    pub(crate) spill: &'a [AtomicU64],
}

/// One slot.
pub(crate) struct Slot<'a, F> {
    words: &'a [AtomicU64],
    spill: &'a [AtomicU64],
    number: u32,
    family: std::marker::PhantomData<F>,
}

impl<F> Clone for Slot<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<F> Copy for Slot<'_, F> {}

impl<'a, F: Family> Slot<'a, F> {
    const PORTS: usize = F::A;
    const SCOPE: usize = F::A + 1;
    const FIRST: usize = F::A + 2;
    const LAST: usize = F::A + 3;
    const PACKETS: usize = F::A + 4;
    const FORWARD: usize = F::A + 5;
    const BACK: usize = F::A + 6;
    const AROUND: usize = F::A + 7;

    /// Slot `i` of a table.
    #[inline(always)]
    pub(crate) fn numbered(slots: Slots<'a>, i: u32) -> Option<Self> {
        let from = i as usize * F::STRIDE;
        let words = slots.words.get(from..from + F::STRIDE)?;
        Some(Self { words, spill: slots.spill, number: i, family: std::marker::PhantomData })
    }

    /// The first word of each cache line of the slot, for prefetching.
    #[inline(always)]
    pub(crate) fn lines(self) -> impl Iterator<Item = &'a AtomicU64> {
        self.words.iter().step_by(8)
    }

    #[inline(always)]
    fn get(self, word: usize) -> u64 {
        self.words[word].load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn set(self, word: usize, value: u64) {
        self.words[word].store(value, Ordering::Relaxed);
    }

    /// Whether the slot holds this flow. Worker only: a freed slot still has its key, and the worker does not look there.
    #[inline(always)]
    pub(crate) fn is(self, key: &[u64]) -> bool {
        let differ = (0..F::A).fold(0, |differ, i| differ | self.get(i) ^ key[i]);
        let ports = (self.get(Self::PORTS) ^ key[F::A]) >> 16;
        let scope = self.get(Self::SCOPE) as u32 ^ key[F::A + 1] as u32;
        differ | ports | u64::from(scope) == 0
    }

    /// Tick of the last frame.
    #[inline(always)]
    pub(crate) fn last(self) -> u64 {
        self.get(Self::LAST)
    }

    /// The bytes around, by the state: forward and back in units of [`SPILL`].
    fn spilled(self, state: u64) -> u64 {
        let word = if state & SPILLED == 0 { None } else { self.spill.get(self.number as usize) };
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Sets the spill, unless it is zero already; returns the state with it.
    fn spill(self, state: u64, around: u64) -> u64 {
        if state & SPILLED == 0 && around == 0 {
            return state;
        }
        if let Some(word) = self.spill.get(self.number as usize) {
            word.store(around, Ordering::Relaxed);
        }
        if around == 0 {
            state & !SPILLED
        } else {
            state | SPILLED
        }
    }

    /// Runs a write of the worker so that readers see all of it or nothing (a seqlock: Boehm, "Can seqlocks get along with
    /// programming language memory models?", MSPC 2012).
    #[inline(always)]
    fn write(self, writes: impl FnOnce(Self)) {
        let version = self.get(Self::SCOPE);
        self.set(Self::SCOPE, version.wrapping_add(WRITING));
        fence(Ordering::Release);
        writes(self);
        self.words[Self::SCOPE].store(version.wrapping_add(2 * WRITING), Ordering::Release);
    }

    /// Whether a frame counts as the way back.
    #[inline(always)]
    pub(crate) fn is_back(self, packet: PackedFacts) -> bool {
        packet.back() ^ self.get(Self::PORTS) & REVERSED != 0
    }

    /// Counts a frame of the flow in the slot. Other frames need [`Self::count_turn`].
    #[inline(always)]
    #[must_use]
    pub(crate) fn count(self, packet: PackedFacts, now: u64) -> bool {
        let packets = self.get(Self::PACKETS);
        let back = packet.back() ^ self.get(Self::PORTS) & REVERSED;
        let way = if back != 0 { Self::BACK } else { Self::FORWARD };
        let bytes = self.get(way);
        let turn = (packet.0 & (!bytes | TURNS << FLAGS)) >> FLAGS;
        if turn | Self::high(packets, bytes) | bytes & AROUND_HIGH != 0 {
            return false;
        }
        self.write(|slot| {
            slot.set(Self::LAST, now);
            slot.set(Self::PACKETS, packets + (1_u64 << 32 >> (32 * back)));
            slot.set(way, bytes + packet.bytes());
        });
        true
    }

    /// Non-zero when the slot has no packets (the first tick must be set) or when packets or IP bytes may soon overflow.
    #[inline(always)]
    fn high(packets: u64, bytes: u64) -> u64 {
        packets.wrapping_sub(1) & FORWARD_HIGH | packets & BACK_HIGH | bytes & IP_HIGH
    }

    /// Counts a frame that changes more than the counters. If the frame ends a record, the record is taken out first.
    #[inline(never)]
    pub(crate) fn count_turn(
        self,
        packet: PackedFacts,
        ingress: u8,
        now: u64,
        biflow: bool,
        walls: Walls,
    ) -> Option<(F::Raw, EndReason)> {
        let flags = packet.0 >> FLAGS;
        // A new connection on the ports of an ended connection.
        let anew = self.get(Self::PORTS) & CLOSED != 0 && flags & TURNS == SYN;
        let cut = match (anew, self.high_of_both()) {
            (true, _) => self.cut(EndReason::EndOfFlow, walls),
            (_, true) => self.cut(EndReason::Active, walls),
            _ => None,
        };
        let packets = self.get(Self::PACKETS);
        let ports = self.get(Self::PORTS);
        // The way's word with what is in it, the other one's, and the rest of the ports' word.
        let (ports, seen) = if anew { (ports & !0xffff | Self::begin(packet, ingress, walls), 0) } else { (ports, !0) };
        let back = packet.back() ^ ports & REVERSED;
        let (way, other) = if back != 0 { (Self::BACK, Self::FORWARD) } else { (Self::FORWARD, Self::BACK) };
        let bytes = (self.get(way) & seen) | flags << FLAGS;
        let closed = Self::closed(bytes >> FLAGS, (self.get(other) & seen) >> FLAGS, biflow);
        let unit = u64::from(bytes & AROUND_HIGH != 0) << 32 >> (32 * back);
        let around = self.spilled(ports) + unit;
        self.write(|slot| {
            let ports = slot.spill(ports, around);
            slot.set(Self::PORTS, if closed { ports | CLOSED } else { ports });
            if packets == 0 {
                slot.set(Self::FIRST, now);
            }
            slot.set(Self::LAST, now);
            slot.set(Self::PACKETS, packets + (1_u64 << 32 >> (32 * back)));
            slot.set(way, (bytes & !AROUND_HIGH) + packet.bytes());
            slot.set(other, slot.get(other) & seen);
        });
        cut
    }

    /// The flow begins at this tick at the latest.
    pub(crate) fn begin_by(self, tick: u64) {
        if tick < self.get(Self::FIRST) {
            self.write(|slot| slot.set(Self::FIRST, tick));
        }
    }

    /// Whether TCP has ended a flow with these flags each way: both sides have sent FIN (the one side, where flows have one
    /// direction), or one RST.
    fn closed(one: u64, other: u64, biflow: bool) -> bool {
        let fin = if biflow { one & other } else { one };
        (one | other) & RST | fin & FIN != 0
    }

    fn high_of_both(self) -> bool {
        let packets = self.get(Self::PACKETS);
        packets != 0 && Self::high(packets, self.get(Self::FORWARD) | self.get(Self::BACK)) != 0
    }

    /// ToS and state of a new flow with this first frame.
    fn begin(packet: PackedFacts, ingress: u8, walls: Walls) -> u64 {
        let state = walls.now() << WALL | packet.back();
        packet.tos() << 8 | state | u64::from(ingress & 1) << 1
    }

    /// Puts a new flow in, with its first frame.
    #[inline]
    pub(crate) fn fill(self, key: &[u64], packet: PackedFacts, ingress: u8, now: u64, biflow: bool, walls: Walls) {
        let flags = packet.0 >> FLAGS;
        let closed = if Self::closed(flags, 0, biflow) { CLOSED } else { 0 };
        let version = self.get(Self::SCOPE) & !(WRITING - 1) | key[F::A + 1];
        self.set(Self::SCOPE, version.wrapping_add(WRITING));
        fence(Ordering::Release);
        (0..F::A).for_each(|i| self.set(i, key[i]));
        self.set(Self::PORTS, key[F::A] | Self::begin(packet, ingress, walls) | closed);
        self.set(Self::FIRST, now);
        self.set(Self::LAST, now);
        self.set(Self::PACKETS, 1 << 32);
        self.set(Self::FORWARD, packet.to_add());
        self.set(Self::BACK, 0);
        self.words[Self::SCOPE].store(version.wrapping_add(2 * WRITING), Ordering::Release);
    }

    /// Why the flow must be recorded now; `None`: not yet.
    #[inline]
    pub(crate) fn due(self, now: u64, idle: u64, active: u64, linger: u64) -> Option<EndReason> {
        let quiet = now.saturating_sub(self.last());
        let closed = self.get(Self::PORTS) & CLOSED != 0;
        if closed && quiet >= linger {
            Some(EndReason::EndOfFlow)
        } else if quiet >= idle {
            Some(EndReason::Idle)
        } else if now.saturating_sub(self.get(Self::FIRST)) >= active && self.get(Self::PACKETS) != 0 {
            Some(EndReason::Active)
        } else {
            None
        }
    }

    /// Takes the counts out as a record and keeps the key, the state and the times; `None` when nothing was counted.
    pub(crate) fn cut(self, reason: EndReason, walls: Walls) -> Option<(F::Raw, EndReason)> {
        if self.get(Self::PACKETS) == 0 {
            return None;
        }
        let raw = self.copy(reason as u64);
        let state = self.get(Self::PORTS);
        let wall = (state & STATE) >> WALL;
        let state = state & !(0xf << WALL) | walls.next(wall) << WALL;
        self.write(|slot| {
            slot.set(Self::PORTS, slot.spill(state, 0));
            slot.set(Self::PACKETS, 0);
            [Self::FORWARD, Self::BACK].into_iter().for_each(|way| slot.set(way, slot.get(way) >> FLAGS << FLAGS));
        });
        Some((raw, reason))
    }

    /// The words as a record, with this number of an end reason.
    #[inline(always)]
    fn copy(self, reason: u64) -> F::Raw {
        let mut raw = F::EMPTY;
        let words = raw.as_mut();
        words.iter_mut().zip(self.words).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
        words[Self::SCOPE] = words[Self::SCOPE] & (WRITING - 1) | reason << 32;
        words[Self::AROUND] = self.spilled(words[Self::PORTS]);
        raw
    }

    /// All words at one instant, for any thread. `None` when the slot has nothing to show, or when the worker was writing at
    /// every try.
    pub(crate) fn read(self) -> Option<F::Raw> {
        for _ in 0..TRIES {
            let before = self.words[Self::SCOPE].load(Ordering::Acquire);
            let raw = self.copy(0);
            fence(Ordering::Acquire);
            if before & WRITING == 0 && self.get(Self::SCOPE) == before {
                return (raw.as_ref()[Self::PACKETS] != 0).then_some(raw);
            }
            std::hint::spin_loop();
        }
        None
    }
}
