//! What the table of stations said a moment ago, kept by each lcore for itself: most frames are from and to stations that
//! others were just now from and to.

use packet::MacAddr;

/// Stations remembered, at most.
const SLOTS: usize = 1024;
/// The key of no station: no network has so high a number.
const NONE: u64 = u64::MAX;

/// Endpoints by station. Forgotten all at once, so often that nobody sees the age.
#[derive(Debug)]
pub(super) struct Recent {
    keys: Box<[u64; SLOTS]>,
    endpoints: Box<[u16; SLOTS]>,
}

/// A station: MAC address (first byte lowest), and above it the network.
#[inline(always)]
pub(super) fn key(domain: u16, six_and_two: [u8; 8]) -> u64 {
    u64::from_le_bytes(six_and_two) & 0xffff_ffff_ffff | u64::from(domain) << 48
}

/// The address in a key.
#[inline]
pub(super) fn mac(key: u64) -> MacAddr {
    let [a, b, c, d, e, f, _, _] = key.to_le_bytes();
    MacAddr([a, b, c, d, e, f])
}

#[inline(always)]
fn slot(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % SLOTS
}

impl Recent {
    pub(super) fn new() -> Self {
        Self { keys: Box::new([NONE; SLOTS]), endpoints: Box::new([0; SLOTS]) }
    }

    /// The endpoint of a station, if it is remembered.
    #[inline(always)]
    pub(super) fn get(&self, key: u64) -> Option<u16> {
        let slot = slot(key);
        (self.keys[slot] == key).then_some(self.endpoints[slot])
    }

    /// Whether the station is remembered to be there.
    #[inline(always)]
    pub(super) fn is(&self, key: u64, endpoint: u16) -> bool {
        let slot = slot(key);
        (self.keys[slot] == key) & (self.endpoints[slot] == endpoint)
    }

    pub(super) fn insert(&mut self, key: u64, endpoint: u16) {
        let slot = slot(key);
        (self.keys[slot], self.endpoints[slot]) = (key, endpoint);
    }

    pub(super) fn remove(&mut self, key: u64) {
        let slot = slot(key);
        if self.keys[slot] == key {
            self.keys[slot] = NONE;
        }
    }

    pub(super) fn clear(&mut self) {
        self.keys.fill(NONE);
    }
}
