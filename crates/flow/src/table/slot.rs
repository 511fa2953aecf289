//! The slot of a flow: a row of words that one worker writes and any thread reads.
//!
//! From word `A` on, after the addresses (`A` is 1 for IPv4, 4 for IPv6):
//!
//! | word | holds, highest bits first |
//! |---|---|
//! | `A` | source port 16, destination port 16, protocol 8, port 8, ToS of the first frame 8, TCP flags seen 8 |
//! | `A + 1` | scope 32, version 32: odd while the worker writes |
//! | `A + 2`, `A + 3` | tick of the first and of the last frame |
//! | `A + 4` | packets forward 32, back 32; zero: hidden from readers |
//! | `A + 5` | state 16 (see below), bytes forward 48 |
//! | `A + 6` | end reason 16 (in a record of an ended flow), bytes back 48 |
//!
//! IPv4: 8 words, one cache line. IPv6: 11 words in rows of 12, in two cache lines.

use super::{
    sync::{fence, AtomicU64, Ordering},
    time::Walls,
};
use crate::{
    decode::{Packet4, Packet6},
    EndReason,
};

/// State bit: frames in the direction of the key count as the way back.
pub(crate) const REVERSED: u64 = 1 << 56;
/// State bits: FIN was sent forward, back.
pub(crate) const FIN: [u64; 2] = [1 << 57, 1 << 58];
/// State bit: TCP has ended the flow.
pub(crate) const CLOSED: u64 = 1 << 59;
/// Position of the ingress port in the state.
pub(crate) const INGRESS: u32 = 48;
/// Position of the number of the flow's wall clock: the highest four bits of the state.
pub(crate) const WALL: u32 = 60;

/// Mask of the byte count in its word.
pub(crate) const BYTES: u64 = (1 << 48) - 1;
/// From this count on, bytes or packets may soon overflow, and the record is cut.
const BYTES_HIGH: u64 = 1 << 47;
const FORWARD_HIGH: u64 = 1 << 63;
const BACK_HIGH: u64 = 1 << 31;

/// Tries of a reader before it skips a slot that the worker keeps writing.
const TRIES: usize = if cfg!(feature = "loom") { 2 } else { 1000 };

/// FIN, SYN and RST: flags that begin or end a connection.
pub(crate) const TURNS: u8 = 7;

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
    fn facts(packet: &Self::Packet) -> Facts;
}

/// Fields of a packet that are counted, besides the key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) bytes: u64,
    pub(crate) tos: u8,
    pub(crate) flags: u8,
    pub(crate) reversed: bool,
}

/// IPv4.
pub(crate) enum V4 {}
/// IPv6.
pub(crate) enum V6 {}

macro_rules! family {
    ($family:ty, $packet:ty, $a:literal, $stride:literal) => {
        impl Family for $family {
            type Packet = $packet;
            type Raw = [u64; $stride];
            const EMPTY: Self::Raw = [0; $stride];
            const A: usize = $a;
            const STRIDE: usize = $stride;

            #[inline(always)]
            fn key(packet: &Self::Packet) -> &[u64] {
                &packet.key.0
            }

            #[inline(always)]
            fn facts(packet: &Self::Packet) -> Facts {
                let Self::Packet { bytes, tos, tcp_flags: flags, reversed, .. } = *packet;
                Facts { bytes: bytes.into(), tos, flags, reversed }
            }
        }
    };
}
family!(V4, Packet4, 1, 8);
family!(V6, Packet6, 4, 12);

/// One slot.
pub(crate) struct Slot<'a, F> {
    words: &'a [AtomicU64],
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

    /// Slot `i` of a table.
    #[inline(always)]
    pub(crate) fn numbered(table: &'a [AtomicU64], i: u32) -> Option<Self> {
        let from = i as usize * F::STRIDE;
        Some(Self { words: table.get(from..from + F::STRIDE)?, family: std::marker::PhantomData })
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
        let scope = self.get(Self::SCOPE) >> 32 ^ key[F::A + 1];
        differ | ports | scope == 0
    }

    /// Tick of the last frame.
    #[inline(always)]
    pub(crate) fn last(self) -> u64 {
        self.get(Self::LAST)
    }

    /// Runs a write of the worker so that readers see all of it or nothing (a seqlock: Boehm, "Can seqlocks get along with
    /// programming language memory models?", MSPC 2012).
    #[inline(always)]
    fn write(self, writes: impl FnOnce(Self)) {
        let version = self.get(Self::SCOPE);
        let scope = version & 0xffff_ffff_0000_0000;
        self.set(Self::SCOPE, version | 1);
        fence(Ordering::Release);
        writes(self);
        let next = scope | u64::from((version as u32).wrapping_add(2));
        self.words[Self::SCOPE].store(next, Ordering::Release);
    }

    /// Counts a frame of the flow in the slot. Other frames need [`Self::count_turn`].
    #[inline(always)]
    #[must_use]
    pub(crate) fn count(self, packet: Facts, now: u64) -> bool {
        let seen = self.get(Self::PORTS);
        let packets = self.get(Self::PACKETS);
        let state = self.get(Self::FORWARD);
        let back = packet.reversed != (state & REVERSED != 0);
        let way = if back { Self::BACK } else { Self::FORWARD };
        let bytes = self.get(way);
        let turn = u64::from(packet.flags) & (!seen | u64::from(TURNS));
        if turn | Self::high(packets, bytes) != 0 {
            return false;
        }
        self.write(|slot| {
            slot.set(Self::LAST, now);
            slot.set(Self::PACKETS, packets + (1 << (32 * u32::from(!back))));
            slot.set(way, bytes + packet.bytes);
        });
        true
    }

    /// Non-zero when the slot has no packets (the first tick must be set) or when packets or bytes may soon overflow.
    #[inline(always)]
    fn high(packets: u64, bytes: u64) -> u64 {
        packets.wrapping_sub(1) & FORWARD_HIGH | packets & BACK_HIGH | bytes & BYTES_HIGH
    }

    /// Counts a frame that changes more than the counters. If the frame ends a record, the record is taken out first.
    #[inline(never)]
    pub(crate) fn count_turn(
        self,
        packet: Facts,
        ingress: u8,
        now: u64,
        biflow: bool,
        walls: Walls,
    ) -> Option<(F::Raw, EndReason)> {
        let state = self.get(Self::FORWARD);
        // A new connection on the ports of an ended connection.
        let anew = state & CLOSED != 0 && packet.flags & TURNS == 2;
        let high = self.high_of_both();
        let cut = match (anew, high) {
            (true, _) => self.cut(EndReason::EndOfFlow, walls),
            (_, true) => self.cut(EndReason::Active, walls),
            _ => None,
        };
        let state = if anew { Self::begin(packet, ingress, walls) } else { self.get(Self::FORWARD) };
        let packets = self.get(Self::PACKETS);
        let seen = self.get(Self::PORTS);
        let seen = if anew { seen & !0xffff | u64::from(packet.tos) << 8 } else { seen };
        let back = packet.reversed != (state & REVERSED != 0);
        let mut state = state;
        if packet.flags & 1 != 0 {
            state |= FIN[usize::from(back)];
        }
        let both = FIN[0] | if biflow { FIN[1] } else { 0 };
        if packet.flags & 4 != 0 || state & both == both {
            state |= CLOSED;
        }
        self.write(|slot| {
            slot.set(Self::PORTS, seen | u64::from(packet.flags));
            if packets == 0 {
                slot.set(Self::FIRST, now);
            }
            slot.set(Self::LAST, now);
            slot.set(Self::PACKETS, packets + (1 << (32 * u32::from(!back))));
            slot.set(Self::FORWARD, state + if back { 0 } else { packet.bytes });
            if back {
                slot.set(Self::BACK, slot.get(Self::BACK) + packet.bytes);
            }
        });
        cut
    }

    fn high_of_both(self) -> bool {
        let packets = self.get(Self::PACKETS);
        packets != 0 && Self::high(packets, self.get(Self::FORWARD) | self.get(Self::BACK)) != 0
    }

    /// The state of a new flow with this first frame.
    fn begin(packet: Facts, ingress: u8, walls: Walls) -> u64 {
        walls.now() << WALL | u64::from(ingress) << INGRESS | if packet.reversed { REVERSED } else { 0 }
    }

    /// Puts a new flow in, with its first frame.
    #[inline]
    pub(crate) fn fill(self, key: &[u64], packet: Facts, ingress: u8, now: u64, biflow: bool, walls: Walls) {
        let mut state = Self::begin(packet, ingress, walls) | packet.bytes;
        if packet.flags & 1 != 0 {
            state |= FIN[0];
        }
        if packet.flags & 4 != 0 || packet.flags & 1 != 0 && !biflow {
            state |= CLOSED;
        }
        let version = u64::from(self.get(Self::SCOPE) as u32);
        self.set(Self::SCOPE, version | 1 | key[F::A + 1] << 32);
        fence(Ordering::Release);
        (0..F::A).for_each(|i| self.set(i, key[i]));
        self.set(Self::PORTS, key[F::A] | u64::from(packet.tos) << 8 | u64::from(packet.flags));
        self.set(Self::FIRST, now);
        self.set(Self::LAST, now);
        self.set(Self::PACKETS, 1 << 32);
        self.set(Self::FORWARD, state);
        self.set(Self::BACK, 0);
        let next = key[F::A + 1] << 32 | u64::from((version as u32).wrapping_add(2));
        self.words[Self::SCOPE].store(next, Ordering::Release);
    }

    /// Why the flow must be recorded now; `None`: not yet.
    #[inline]
    pub(crate) fn due(self, now: u64, idle: u64, active: u64, linger: u64) -> Option<EndReason> {
        let quiet = now.saturating_sub(self.last());
        let closed = self.get(Self::FORWARD) & CLOSED != 0;
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
        let mut raw = F::EMPTY;
        raw.as_mut().iter_mut().zip(self.words).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
        raw.as_mut()[Self::BACK] |= (reason as u64) << 48;
        let state = self.get(Self::FORWARD) & !BYTES;
        let state = state << (64 - WALL) >> (64 - WALL) | walls.next(state >> WALL) << WALL;
        self.write(|slot| {
            slot.set(Self::PACKETS, 0);
            slot.set(Self::FORWARD, state);
            slot.set(Self::BACK, 0);
        });
        Some((raw, reason))
    }

    /// All words at one instant, for any thread. `None` when the slot has nothing to show, or when the worker was writing at
    /// every try.
    pub(crate) fn read(self) -> Option<F::Raw> {
        for _ in 0..TRIES {
            let before = self.words[Self::SCOPE].load(Ordering::Acquire);
            let mut raw = F::EMPTY;
            raw.as_mut().iter_mut().zip(self.words).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if before & 1 == 0 && self.get(Self::SCOPE) == before {
                return (raw.as_ref()[Self::PACKETS] != 0).then_some(raw);
            }
            std::hint::spin_loop();
        }
        None
    }
}
