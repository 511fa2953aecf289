//! Flows drawn by a Zipf distribution.

/// Draws from weights in constant time: Vose's alias method, with the coin in 32 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draw {
    slots: Box<[Slot]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    /// The slot's own number is drawn when the coin is at most this.
    keep: u32,
    /// The number drawn otherwise.
    other: u32,
}

impl Draw {
    /// Numbers `0..flows`, number `i` with the weight `(i + 1)^-exponent`.
    pub(crate) fn zipf(flows: u64, exponent: f64) -> Self {
        let weights: Vec<f64> = (1..=flows).map(|i| (i as f64).powf(-exponent)).collect();
        Self::new(weights)
    }

    /// Weights are used up: brought to a mean of 1, each is its share of its slot.
    fn new(mut weights: Vec<f64>) -> Self {
        let mean = weights.iter().sum::<f64>() / weights.len().max(1) as f64;
        weights.iter_mut().for_each(|w| *w /= mean);
        let mut slots: Box<[Slot]> = (0..weights.len() as u32).map(|i| Slot { keep: u32::MAX, other: i }).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..weights.len() as u32).partition(|&i| weights.get(i as usize).is_some_and(|w| *w < 1.0));
        while let (Some(s), Some(&l)) = (small.pop(), large.last()) {
            let share = weights.get(s as usize).copied().unwrap_or(1.0);
            if let Some(slot) = slots.get_mut(s as usize) {
                *slot = Slot { keep: (share * 4_294_967_296.0) as u32, other: l };
            }
            if let Some(rest) = weights.get_mut(l as usize) {
                *rest -= 1.0 - share;
                if *rest < 1.0 {
                    large.pop();
                    small.push(l);
                }
            }
        }
        Self { slots }
    }

    /// Numbers drawn from.
    pub(crate) fn len(&self) -> u64 {
        self.slots.len() as u64
    }

    /// The number that these random bits draw.
    #[inline(always)]
    pub(crate) fn draw(&self, bits: u64) -> u64 {
        let at = ((bits >> 32) * self.slots.len() as u64) >> 32;
        match self.slots.get(at as usize) {
            Some(slot) if bits as u32 > slot.keep => slot.other.into(),
            _ => at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_share() {
        let draw = Draw::zipf(100, 1.1);
        let weights: Vec<f64> = (1..=100).map(|i| f64::from(i).powf(-1.1)).collect();
        let sum: f64 = weights.iter().sum();
        // The whole of the alias table, not a sample of it.
        let mut shares = vec![0.0; 100];
        for (i, slot) in draw.slots.iter().enumerate() {
            let keep = (f64::from(slot.keep) + 1.0) / 4_294_967_296.0;
            shares[i] += keep / 100.0;
            shares[slot.other as usize] += (1.0 - keep) / 100.0;
        }
        for (share, weight) in shares.iter().zip(&weights) {
            assert!((share - weight / sum).abs() < 1e-8, "{share} {}", weight / sum);
        }
        assert_eq!(Draw::zipf(1, 1.0).draw(u64::MAX), 0);
        assert!((0..1000u64).all(|i| draw.draw(u64::MAX - i.wrapping_mul(0x0123_4567_89ab_cdef)) < 100));
    }
}
