//! Random numbers by frame number.

/// 2^64 divided by the golden ratio: the step between the inputs of [`mix`] for consecutive frames.
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64: random enough, without state, so that frame `n` is found without frames before it.
#[inline(always)]
pub(crate) fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}
