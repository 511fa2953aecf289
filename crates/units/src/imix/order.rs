//! Sequences of sizes that are not written out (RFC 6985 §6.2 to §6.5). A text means the same sequence on every machine
//! and forever, so nothing here may change: `docs/units.md` says it in words.

use super::text::MAX_FRAMES;
use crate::{FrameSize, SplitMix64};

/// Sizes from one to another by equal steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Range {
    pub(super) low: FrameSize,
    pub(super) high: FrameSize,
    pub(super) step: u32,
}

impl Range {
    /// How many sizes there are.
    pub(super) fn len(self) -> u32 {
        (self.high.bytes() - self.low.bytes()) / self.step + 1
    }

    fn at(self, place: u32) -> Option<FrameSize> {
        FrameSize::new(self.low.bytes() + place * self.step).ok()
    }

    /// From the smallest up (§6.3).
    pub(super) fn rising(self) -> Vec<FrameSize> {
        (0..self.len()).filter_map(|place| self.at(place)).collect()
    }

    /// As many as a sequence may have, each drawn from all of them (§6.4).
    pub(super) fn drawn(self, seed: u64) -> Vec<FrameSize> {
        let mut rng = SplitMix64::new(seed);
        (0..MAX_FRAMES).filter_map(|_| self.at(rng.below(self.len().into()) as u32)).collect()
    }
}

/// How many frames each of these shares of their sum gets: of the shortest sequence that has them exactly; of the longest,
/// by largest remainder, where that is longer than a sequence may be (§6.2).
pub(super) fn frames_of(shares: &[u64]) -> Vec<usize> {
    let divisor = shares.iter().copied().fold(0, gcd).max(1);
    let total = shares.iter().sum::<u64>().max(1);
    if total / divisor <= MAX_FRAMES as u64 {
        return shares.iter().map(|share| (share / divisor) as usize).collect();
    }
    let most = MAX_FRAMES as u64;
    let mut frames: Vec<usize> = shares.iter().map(|share| (share * most / total) as usize).collect();
    let mut by_remainder: Vec<usize> = (0..shares.len()).collect();
    by_remainder.sort_by_key(|&i| std::cmp::Reverse(shares[i] * most % total));
    let left = MAX_FRAMES - frames.iter().sum::<usize>();
    by_remainder.iter().take(left).for_each(|&i| frames[i] += 1);
    frames
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

/// Each size evenly over the N frames: frame j (0, 1, ...) of c may stand in places floor(j N / c) to before
/// ceil((j + 1) N / c), and each place gets the size that must stand first, in the order of the table. A size is so nowhere
/// a whole frame before or behind its share (Tijdeman's chairmen; 1980).
pub(super) fn spread(counts: &[(usize, FrameSize)]) -> Vec<FrameSize> {
    let all: usize = counts.iter().map(|(count, _)| count).sum();
    let mut stood = vec![0; counts.len()];
    let next = |place: usize| {
        let may = |(i, &(count, size)): (usize, &(usize, FrameSize))| {
            let j = stood[i];
            (j < count && j * all / count <= place).then(|| (((j + 1) * all).div_ceil(count), i, size))
        };
        let (_, i, size) = counts.iter().enumerate().filter_map(may).min()?;
        stood[i] += 1;
        Some(size)
    };
    (0..all).filter_map(next).collect()
}

/// The sequence as often as it fits, and so often, shuffled (Fisher and Yates): sizes drawn without putting them back, so
/// that the shares stay (§6.5).
pub(super) fn shuffled(sequence: &[FrameSize], seed: u64) -> (usize, Vec<FrameSize>) {
    let times = MAX_FRAMES / sequence.len().max(1);
    let mut sizes = sequence.repeat(times);
    let mut rng = SplitMix64::new(seed);
    for i in (1..sizes.len()).rev() {
        sizes.swap(i, rng.below(i as u64 + 1) as usize);
    }
    (times, sizes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn size(bytes: u32) -> FrameSize {
        FrameSize::new(bytes).unwrap()
    }

    fn bytes(sizes: &[FrameSize]) -> Vec<u32> {
        sizes.iter().map(|s| s.bytes()).collect()
    }

    fn by_size(sizes: &[FrameSize]) -> BTreeMap<FrameSize, usize> {
        sizes.iter().fold(BTreeMap::new(), |mut counts, size| {
            *counts.entry(*size).or_default() += 1;
            counts
        })
    }

    /// Shares that come to all: cuts of the whole.
    fn shares() -> impl Strategy<Value = Vec<u64>> {
        let cuts = prop_oneof![
            proptest::collection::btree_set(1_u64..1_000_000, 0..12),
            Just((1..100).map(|c| c * 10_000).collect())
        ];
        cuts.prop_map(|cuts| {
            let ends: Vec<u64> = [0].into_iter().chain(cuts).chain([1_000_000]).collect();
            ends.windows(2).map(|w| w[1] - w[0]).collect()
        })
    }

    proptest! {
        #[test]
        fn shares_are_exact_or_within_a_frame(shares in shares(), tenths in any::<bool>()) {
            // Rounded to tenths of a percent they fit in a sequence.
            let shares: Vec<u64> = shares.iter().map(|s| if tenths { s.div_ceil(1_000) } else { *s }).collect();
            let (frames, total) = (frames_of(&shares), shares.iter().sum::<u64>());
            let all = frames.iter().sum::<usize>() as u64;
            prop_assert!((1..=MAX_FRAMES as u64).contains(&all));
            for (&frames, &share) in frames.iter().zip(&shares) {
                let off = (frames as u64 * total).abs_diff(share * all);
                prop_assert!(off == 0 || (all == MAX_FRAMES as u64 && off < total), "{frames} of {all}, {share} of {total}");
            }
            prop_assert!(!tenths || frames.iter().zip(&shares).all(|(f, s)| *f as u64 * total == s * all));
        }

        #[test]
        fn no_size_is_a_frame_off_its_share_anywhere(counts in proptest::collection::vec(prop_oneof![1_usize..4, 1_usize..150], 1..14)) {
            let counts: Vec<_> = counts.into_iter().zip((64..).map(size)).collect();
            let (sizes, all) = (spread(&counts), counts.iter().map(|(count, _)| count).sum::<usize>());
            prop_assert_eq!(by_size(&sizes), counts.iter().map(|(count, size)| (*size, *count)).collect());
            let mut seen = BTreeMap::new();
            for (place, of) in sizes.iter().enumerate() {
                *seen.entry(*of).or_insert(0) += 1;
                for (count, size) in &counts {
                    let stood = seen.get(size).copied().unwrap_or(0);
                    prop_assert!((stood * all).abs_diff((place + 1) * count) < all, "{size} at {place}: {counts:?}");
                }
            }
        }

        #[test]
        fn a_shuffle_keeps_the_shares(lens in proptest::collection::vec(64_u32..9217, 1..300), seed: u64) {
            let sequence: Vec<_> = lens.into_iter().map(size).collect();
            let (times, sizes) = shuffled(&sequence, seed);
            prop_assert!(sizes.len() <= MAX_FRAMES && sizes.len() + sequence.len() > MAX_FRAMES);
            let once = by_size(&sequence).into_iter().map(|(size, count)| (size, count * times)).collect();
            prop_assert_eq!(by_size(&sizes), once);
            prop_assert_eq!(shuffled(&sequence, seed).1, sizes);
        }

        #[test]
        fn draws_are_of_the_range(low in 64_u32..9217, more in 0_u32..9000, step in 1_u32..3000, seed: u64) {
            let range = Range { low: size(low), high: size((low + more).min(9216)), step };
            let (sizes, all) = (range.drawn(seed), range.rising());
            prop_assert_eq!((sizes.len(), all.len()), (MAX_FRAMES, range.len() as usize));
            prop_assert!(all.windows(2).all(|w| w[1].bytes() - w[0].bytes() == step));
            prop_assert!(all[0] == range.low && all[all.len() - 1].bytes() + step > range.high.bytes());
            prop_assert!(sizes.iter().all(|size| all.binary_search(size).is_ok()));
        }
    }

    /// FNV-1a of the sizes, two bytes each.
    fn digest(sizes: &[FrameSize]) -> u64 {
        let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        sizes.iter().flat_map(|s| (s.bytes() as u16).to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, fold)
    }

    /// From a second program, written after docs/units.md: should one of these change, stored results are no longer what
    /// they say.
    #[test]
    fn a_seed_means_the_same_sequence_forever() {
        let simple: Vec<_> = [vec![size(64); 7], vec![size(570); 4], vec![size(1518)]].concat();
        let (times, sizes) = shuffled(&simple, 7);
        assert_eq!((times, sizes.len(), digest(&sizes)), (341, 4092, 0xaa01_87f1_9b26_bc30));
        assert_eq!(bytes(&sizes[..12]), [64, 64, 64, 64, 570, 64, 64, 64, 570, 64, 64, 64]);
        let genome = [64, 64, 64, 1280, 1518].map(size);
        assert_eq!(digest(&shuffled(&genome, i64::MAX as u64).1), 0x47b6_77ce_4215_77d7);
        let table: Vec<_> = [(23, 64), (67, 128), (10, 1000)].map(|(count, bytes)| (count, size(bytes))).to_vec();
        assert_eq!(digest(&shuffled(&spread(&table), 0).1), 0x1b3a_3877_2526_224d);
        let many: Vec<_> = [(2389, 64), (1365, 570), (342, 1518)].map(|(count, bytes)| (count, size(bytes))).to_vec();
        assert_eq!(digest(&spread(&many)), 0xc3c3_bdd3_9f56_9a71);
        let range = Range { low: size(64), high: size(1518), step: 1 };
        assert_eq!(bytes(&range.drawn(7)[..8]), [631, 88, 1374, 912, 722, 426, 744, 541]);
        assert_eq!(digest(&range.drawn(7)), 0xb83a_1ff2_ee5b_bdf1);
        let jumbo = Range { low: size(64), high: size(9216), step: 8 };
        assert_eq!(digest(&jumbo.drawn(7)), 0x16d5_5ef3_7e07_7bbd);
    }

    #[test]
    fn shares_are_spread_by_the_table() {
        let of =
            |counts: &[(usize, u32)]| bytes(&spread(&counts.iter().map(|&(c, b)| (c, size(b))).collect::<Vec<_>>()));
        assert_eq!(of(&[(2, 64), (1, 570), (1, 1518)]), [64, 570, 64, 1518]);
        assert_eq!(of(&[(1, 1518), (1, 64)]), [1518, 64]);
        assert_eq!(
            of(&[(23, 64), (67, 128), (10, 1000)])[..14],
            [128, 128, 64, 128, 128, 128, 64, 128, 1000, 128, 128, 64, 128, 128]
        );
        assert_eq!(frames_of(&[583_300, 333_300, 83_400]), [2389, 1365, 342], "of 4096, since 10,000 are too many");
        assert_eq!(frames_of(&[230_000, 670_000, 100_000]), [23, 67, 10]);
    }
}
