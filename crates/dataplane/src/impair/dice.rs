//! Seeded random numbers for impairments.

use units::Ratio;

/// A seeded random sequence (SplitMix64) that draws true with a given probability.
#[derive(Debug, Clone)]
pub(crate) struct Dice {
    state: u64,
    /// Yes when the draw is below; `None` when always.
    below: Option<u64>,
}

impl Dice {
    /// Dice of a ratio. `lane` keeps the dice of one seed apart.
    pub(crate) fn new(ratio: Ratio, seed: u64, lane: u64) -> Self {
        let below = (ratio.get() < 1.0).then_some((ratio.get() * 2f64.powi(64)) as u64);
        let mut dice = Self { state: seed ^ lane.wrapping_mul(0xd6e8_feb8_6659_fd93), below };
        dice.draw();
        dice
    }

    /// Whether it can ever say yes.
    pub(crate) fn live(&self) -> bool {
        self.below != Some(0)
    }

    #[inline]
    pub(crate) fn roll(&mut self) -> bool {
        match self.below {
            Some(0) => false,
            Some(below) => self.draw() < below,
            None => true,
        }
    }

    #[inline]
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `most`, both included, all as likely.
    #[inline]
    pub(crate) fn up_to(&mut self, most: u64) -> u64 {
        ((u128::from(self.draw()) * (u128::from(most) + 1)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_comes_out_and_a_seed_repeats() {
        let count = |ratio, seed| {
            let mut dice = Dice::new(Ratio::new(ratio).unwrap(), seed, 1);
            (0..1_000_000).filter(|_| dice.roll()).count()
        };
        assert_eq!((count(0.0, 7), count(1.0, 7)), (0, 1_000_000));
        // Six standard deviations of a binomial.
        assert!(count(0.01, 7).abs_diff(10_000) < 600);
        assert_eq!(count(0.01, 7), count(0.01, 7));
        assert_ne!(count(0.01, 7), count(0.01, 8));
    }

    #[test]
    fn uniform_numbers_reach_both_ends() {
        let mut dice = Dice::new(Ratio::ZERO, 1, 1);
        let seen: std::collections::BTreeSet<_> = (0..1_000).map(|_| dice.up_to(5)).collect();
        assert_eq!(seen, (0..=5).collect());
    }
}
