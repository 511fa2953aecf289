//! The forwarding database: where stations are, shared by all lcores and the control side without a lock.
//!
//! A bucket is a pair of cache lines of five entries each; a station's bucket is found by hashing. One 64-bit word
//! says which station and where it is, so that nothing can be read half old, half new: the word holds the endpoint and
//! those bits of the key that the bucket's number does not already give. When a station was last seen stands beside it
//! and only ever makes an entry a little older or younger than it is.

mod control;
mod line;
#[cfg(test)]
mod tests;

use std::hint::black_box;

pub use control::{Entry, Flush};
use line::{Hit, Line, MIN_BITS, SLOTS};
use packet::MacAddr;

/// Most bits of a bucket's number: 2 GiB of table.
const MAX_BITS: u32 = 24;
/// Stations a bucket is sized for, of the ten it holds: with so many, one in a thousand finds it full.
const PER_BUCKET: usize = 4;
/// Odd, from the digits of the golden ratio. Fixed, so that two runs with the same frames do the same.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// What learning a station came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    /// It was known to be there, or is static.
    Known,
    /// It was not known, or its entry had aged out.
    New,
    /// It was known to be elsewhere.
    Moved,
    /// Not learned: its bucket holds only live entries.
    Full,
}

/// Where a key's entry is to be looked for, and what its word begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    line: u32,
    want: u64,
}

/// MAC addresses by domain (a VID, or the number of a VXLAN network; 12 bits) with their endpoints and their age
/// (IEEE 802.1Q 8.8).
///
/// All methods may be called from any thread at any time. `now_s` is in seconds from any start, the same for all
/// callers to a second or two.
#[derive(Debug)]
pub struct Fdb {
    /// Two to a bucket.
    lines: Box<[Line]>,
    /// Bits of a bucket's number.
    bits: u32,
    ageing_s: u32,
}

impl Fdb {
    /// The ageing time unless another is set, in seconds (IEEE 802.1Q table 8-6).
    pub const AGEING_S: u32 = 300;

    /// An empty table with room for about this many stations: at least 65536, which takes 2 MiB. Nothing is allocated
    /// later.
    pub fn new(entries: usize) -> Self {
        let buckets = entries.div_ceil(PER_BUCKET).max(1);
        let bits = buckets.checked_next_power_of_two().map_or(MAX_BITS, usize::trailing_zeros);
        let bits = bits.clamp(MIN_BITS, MAX_BITS);
        Self { lines: (0..2usize << bits).map(|_| Line::default()).collect(), bits, ageing_s: Self::AGEING_S }
    }

    /// The same with this ageing time in seconds, up to 2^31 - 1: older learned entries are as good as none.
    pub fn with_ageing(self, seconds: u32) -> Self {
        Self { ageing_s: seconds.min(i32::MAX as u32), ..self }
    }

    /// The ageing time in seconds.
    pub fn ageing_s(&self) -> u32 {
        self.ageing_s
    }

    /// Where the station is, when that is known and not too long ago.
    #[inline]
    pub fn lookup(&self, domain: u16, mac: MacAddr, now_s: u32) -> Option<u16> {
        self.lookup_at(self.place(domain, mac), now_s)
    }

    /// Takes note that the station was seen at this endpoint. Writes nothing when that was known this second.
    #[inline]
    pub fn learn(&self, domain: u16, mac: MacAddr, endpoint: u16, now_s: u32) -> Learned {
        self.learn_at(self.place(domain, mac), endpoint, now_s)
    }

    /// Hashes a key, for [`Self::warm`], [`Self::lookup_at`] and [`Self::learn_at`].
    #[inline]
    pub(crate) fn place(&self, domain: u16, mac: MacAddr) -> Place {
        let [a, b, c, d, e, f] = mac.0;
        self.place_key(u64::from(domain & 0xfff) << 48 | u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    /// [`Self::place`] of a key that is one number: the domain in bits 48 to 59, below it the MAC address.
    #[inline]
    pub(crate) fn place_key(&self, key: u64) -> Place {
        // The bucket is the key's low bits changed by a hash of its high ones: these two give the key back, and
        // addresses numbered one by one, as they often are, fall into one bucket each.
        let rest = key >> self.bits;
        let line = (key << 1) ^ self.hash(rest);
        Place { line: line as u32 & ((2 << self.bits) - 1), want: line::want(rest) }
    }

    /// Reads from the first line of a bucket, so that it is in the cache when it is needed. To be done for a whole
    /// burst before the first lookup: the reads then wait together.
    #[inline]
    pub(crate) fn warm(&self, place: Place) {
        if let Some(line) = self.lines.get(place.line as usize) {
            black_box(line.first());
        }
    }

    /// [`Self::lookup`] of a hashed key.
    #[inline]
    pub(crate) fn lookup_at(&self, place: Place, now_s: u32) -> Option<u16> {
        let (line, hit) = self.find(place)?;
        (!self.aged(line, hit, now_s)).then_some(hit.endpoint())
    }

    /// [`Self::learn`] of a hashed key.
    #[inline]
    pub(crate) fn learn_at(&self, place: Place, endpoint: u16, now_s: u32) -> Learned {
        let line = self.lines.get(place.line as usize);
        if let Some((line, hit)) = line.and_then(|line| Some((line, line.find(place.want)?))) {
            if hit.endpoint() == endpoint && line.age(hit, now_s) <= 0 {
                return Learned::Known;
            }
        }
        self.learn_slow(place, endpoint, now_s)
    }

    #[inline(never)]
    fn learn_slow(&self, place: Place, endpoint: u16, now_s: u32) -> Learned {
        let word = line::word(place.want, endpoint, false);
        // Another lcore can change the slot in between only so often; a station not learned now is learned later.
        for _ in 0..SLOTS {
            if let Some((line, hit)) = self.find(place) {
                let aged = self.aged(line, hit, now_s);
                if hit.is_static() {
                    return Learned::Known;
                }
                if hit.endpoint() == endpoint || line.replace(hit, word) {
                    let moved = hit.endpoint() != endpoint;
                    if line.age(hit, now_s) > 0 {
                        line.seen(hit, now_s);
                    }
                    return match (aged, moved) {
                        (true, _) => Learned::New,
                        (false, true) => Learned::Moved,
                        (false, false) => Learned::Known,
                    };
                }
                continue;
            }
            let Some((line, hit)) = self.spare(place, |_| false).or_else(|| self.spare_aged(place, now_s)) else {
                return Learned::Full;
            };
            if line.replace(hit, word) {
                line.seen(hit, now_s);
                // Another lcore may have learned the same station into another slot; then this one goes. Should both
                // do so, the station's next frame puts it right.
                if self.matches(place) > 1 {
                    line.replace(Hit { word, ..hit }, line::EMPTY);
                }
                return Learned::New;
            }
        }
        Learned::Full
    }

    /// The two lines of a bucket, the one to look at first in front.
    #[inline]
    fn bucket(&self, place: Place) -> impl Iterator<Item = &Line> {
        [place.line, place.line ^ 1].into_iter().filter_map(|line| self.lines.get(line as usize))
    }

    #[inline]
    fn find(&self, place: Place) -> Option<(&Line, Hit)> {
        let line = self.lines.get(place.line as usize)?;
        match line.find(place.want) {
            Some(hit) => Some((line, hit)),
            None => self.find_second(place),
        }
    }

    #[inline(never)]
    fn find_second(&self, place: Place) -> Option<(&Line, Hit)> {
        let line = self.lines.get((place.line ^ 1) as usize)?;
        line.find(place.want).map(|hit| (line, hit))
    }

    /// A slot of the bucket that is empty, or else one that may be taken.
    fn spare(&self, place: Place, may_go: impl Fn(Hit) -> bool) -> Option<(&Line, Hit)> {
        let slots = || self.bucket(place).flat_map(|line| line.hits().map(move |hit| (line, hit)));
        slots().find(|(_, hit)| !hit.is_used()).or_else(|| slots().find(|&(_, hit)| may_go(hit)))
    }

    fn spare_aged(&self, place: Place, now_s: u32) -> Option<(&Line, Hit)> {
        let mut slots = self.bucket(place).flat_map(|line| line.hits().map(move |hit| (line, hit)));
        slots.find(|&(line, hit)| self.aged(line, hit, now_s))
    }

    fn matches(&self, place: Place) -> usize {
        self.bucket(place).flat_map(Line::hits).filter(|hit| hit.matches(place.want)).count()
    }

    /// Whether a used slot's entry is too old.
    #[inline]
    fn aged(&self, line: &Line, hit: Hit, now_s: u32) -> bool {
        line.age(hit, now_s) > self.ageing_s as i32 && !hit.is_static()
    }

    /// A line's number's worth of bits.
    #[inline]
    fn hash(&self, rest: u64) -> u64 {
        rest.wrapping_mul(MULTIPLIER) >> (64 - self.bits - 1)
    }
}
