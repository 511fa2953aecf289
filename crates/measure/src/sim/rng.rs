//! Random numbers of the simulated device: the same for the same seed.

use units::SplitMix64;

/// Numbers from a seed, by law.
#[derive(Debug, Clone)]
pub struct Rng(SplitMix64);

impl Rng {
    /// A sequence of its own for each seed.
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Evenly from 0 to below 1.
    pub fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// How many of many rare, independent events happen where `mean` are expected (Poisson; above 30 its normal
    /// approximation).
    pub fn events(&mut self, mean: f64) -> u64 {
        if mean.is_nan() || mean <= 0.0 {
            return 0;
        }
        if mean > 30.0 {
            // Box-Muller; 1 - share is never zero.
            let radius = (-2.0 * (1.0 - self.share()).ln()).sqrt();
            let normal = radius * (std::f64::consts::TAU * self.share()).cos();
            return (mean + normal * mean.sqrt()).round().max(0.0) as u64;
        }
        let (limit, mut product, mut events) = ((-mean).exp(), self.share(), 0);
        while product > limit {
            product *= self.share();
            events += 1;
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_mean_and_the_variance_of_their_law() {
        for mean in [0.05, 0.7, 5.0, 200.0] {
            let mut rng = Rng::new(1);
            let drawn: Vec<f64> = (0..20_000).map(|_| rng.events(mean) as f64).collect();
            let average = drawn.iter().sum::<f64>() / drawn.len() as f64;
            let variance = drawn.iter().map(|d| (d - average).powi(2)).sum::<f64>() / drawn.len() as f64;
            assert!((average / mean - 1.0).abs() < 0.1, "{average} for {mean}");
            assert!((variance / mean - 1.0).abs() < 0.1, "{variance} for {mean}");
        }
        assert_eq!((Rng::new(1).events(0.0), Rng::new(1).events(-1.0), Rng::new(1).events(f64::NAN)), (0, 0, 0));
    }
}
