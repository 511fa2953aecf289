//! Weights of equal-cost paths, spread over the slots of a group.

/// Most slots of a group.
const SLOTS: u32 = 256;

/// Slots for paths of these weights: a power of two of them, at most 256, each path in as many as its weight asks for, to
/// within one, and in one at least.
pub(super) fn spread(paths: impl Iterator<Item = (u32, u8)>) -> Box<[u32]> {
    let paths: Vec<(u32, u32)> = paths.map(|(path, weight)| (path, u32::from(weight.max(1)))).take(64).collect();
    let divisor = paths.iter().fold(0, |a, &(_, weight)| gcd(a, weight)).max(1);
    let sum: u32 = paths.iter().map(|&(_, weight)| weight / divisor).sum();
    // Three equal paths in four slots would be 2:1:1; in 256 they are as good as equal.
    let slots = if sum.is_power_of_two() && sum <= SLOTS { sum } else { SLOTS };
    // Every path has one slot; the rest go, one by one, to the path furthest below its share.
    let mut counts = vec![1u32; paths.len()];
    for _ in paths.len()..slots as usize {
        let lacking = |&i: &usize| {
            let (_, weight) = paths.get(i).copied().unwrap_or((0, 1));
            // The share of the slots less what it has, times `sum`.
            i64::from(weight / divisor * slots) - i64::from(counts.get(i).copied().unwrap_or(0) * sum)
        };
        let Some(next) = (0..paths.len()).rev().max_by_key(lacking) else { break };
        if let Some(count) = counts.get_mut(next) {
            *count += 1;
        }
    }
    let slots = paths.iter().zip(counts).flat_map(|(&(path, _), n)| std::iter::repeat_n(path, n as usize));
    slots.collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counts(weights: &[u8]) -> Vec<usize> {
        let slots = spread((0..).zip(weights.iter().copied()));
        assert!(slots.len().is_power_of_two() && slots.len() <= 256);
        (0..weights.len() as u32).map(|path| slots.iter().filter(|&&p| p == path).count()).collect()
    }

    #[test]
    fn slots_are_as_the_weights() {
        assert_eq!(counts(&[1, 1]), [1, 1]);
        assert_eq!(counts(&[3, 1]), [3, 1]);
        assert_eq!(counts(&[200, 200, 200, 200]), [1, 1, 1, 1]);
        assert_eq!(counts(&[1, 1, 1]), [86, 85, 85]);
        assert_eq!(counts(&[255, 1]), [255, 1]);
    }

    proptest! {
        #[test]
        fn shares_are_within_a_slot_and_none_is_empty(weights in prop::collection::vec(1u8..=8, 2..16)) {
            let sum: usize = weights.iter().map(|&w| usize::from(w)).sum();
            let counts = counts(&weights);
            let slots: usize = counts.iter().sum();
            for (&weight, count) in weights.iter().zip(counts) {
                let share = usize::from(weight) as f64 * slots as f64 / sum as f64;
                prop_assert!((count as f64 - share).abs() <= 1.0 && count > 0, "{} of {}", count, share);
            }
        }
    }
}
