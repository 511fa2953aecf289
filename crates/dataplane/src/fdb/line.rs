//! A cache line of entries: how a word says which station it is and where.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Bits of a key: 12 of the domain, 48 of the MAC address.
pub(super) const KEY_BITS: u32 = 60;
/// Fewest bits of a bucket's number: the rest of the key, the endpoint and two flags fill a word.
pub(super) const MIN_BITS: u32 = 14;
/// Entries in a line.
pub(super) const SLOTS: usize = 5;

/// The word of an empty slot.
pub(super) const EMPTY: u64 = 0;

const USED: u64 = 1;
const STATIC: u64 = 2;
const ENDPOINT: u32 = 2;
const REST: u32 = ENDPOINT + 16;
/// The bits that say which station it is.
const STATION: u64 = u64::MAX << REST | USED;

const _: () = assert!(KEY_BITS - MIN_BITS + REST == u64::BITS && size_of::<Line>() == 64);

/// A cache line of entries. No order between words is needed: each is whole by itself.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Line {
    words: [AtomicU64; SLOTS],
    /// In seconds.
    seen: [AtomicU32; SLOTS],
}

/// What a slot held when it was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit {
    pub word: u64,
    pub slot: usize,
}

/// The word of a station, without its endpoint.
#[inline]
pub(super) fn want(rest: u64) -> u64 {
    rest << REST | USED
}

#[inline]
pub(super) fn word(want: u64, endpoint: u16, fixed: bool) -> u64 {
    want | u64::from(endpoint) << ENDPOINT | if fixed { STATIC } else { 0 }
}

impl Hit {
    #[inline]
    pub fn is_used(self) -> bool {
        self.word & USED != 0
    }

    #[inline]
    pub fn is_static(self) -> bool {
        self.word & STATIC != 0
    }

    #[inline]
    pub fn endpoint(self) -> u16 {
        (self.word >> ENDPOINT) as u16
    }

    #[inline]
    pub fn matches(self, want: u64) -> bool {
        (self.word ^ want) & STATION == 0
    }

    /// The part of the key that is not in the bucket's number.
    pub fn rest(self) -> u64 {
        self.word >> REST
    }
}

impl Line {
    /// The first word; any would do.
    #[inline]
    pub fn first(&self) -> u64 {
        self.words[0].load(Relaxed)
    }

    /// The slots as they are now, empty ones included.
    pub fn hits(&self) -> impl Iterator<Item = Hit> + '_ {
        self.words.iter().enumerate().map(|(slot, word)| Hit { word: word.load(Relaxed), slot })
    }

    /// The first slot with this station. Without branches, since which slot it is cannot be predicted.
    #[inline]
    pub fn find(&self, want: u64) -> Option<Hit> {
        let mut hit = Hit { word: EMPTY, slot: 0 };
        for slot in (0..SLOTS).rev() {
            let here = Hit { word: self.words[slot].load(Relaxed), slot };
            hit = if here.matches(want) { here } else { hit };
        }
        hit.is_used().then_some(hit)
    }

    /// Seconds since the entry was seen: negative when another lcore's clock is ahead.
    #[inline]
    pub fn age(&self, hit: Hit, now_s: u32) -> i32 {
        self.seen.get(hit.slot).map_or(0, |seen| now_s.wrapping_sub(seen.load(Relaxed)) as i32)
    }

    /// Notes when the entry was seen.
    pub fn seen(&self, hit: Hit, now_s: u32) {
        if let Some(seen) = self.seen.get(hit.slot) {
            seen.store(now_s, Relaxed);
        }
    }

    /// Puts another word in the slot, unless it has changed since it was read.
    pub fn replace(&self, hit: Hit, word: u64) -> bool {
        let slot = self.words.get(hit.slot);
        slot.is_some_and(|slot| slot.compare_exchange(hit.word, word, Relaxed, Relaxed).is_ok())
    }
}
