//! Numbers that look random: sizes and payloads of messages.

use std::ops::RangeInclusive;

/// Vigna's xorshift64.
#[derive(Debug, Clone)]
pub struct Noise(u64);

impl Default for Noise {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Noise {
    /// The next number; never 0.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A size out of these.
    pub fn size(&mut self, sizes: &RangeInclusive<usize>) -> usize {
        let (least, most) = (*sizes.start(), *sizes.end());
        if least >= most {
            return most;
        }
        least + (self.number() % (most - least + 1) as u64) as usize
    }

    /// Fills a payload.
    pub fn fill(&mut self, payload: &mut [u8]) {
        payload.iter_mut().for_each(|byte| *byte = self.number() as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_range_are_all_used() {
        let mut noise = Noise::default();
        let mut seen = [false; 5];
        (0..200).for_each(|_| seen[noise.size(&(14..=18)) - 14] = true);
        assert_eq!(seen, [true; 5]);
        assert_eq!(noise.size(&(20..=20)), 20);
        let mut payload = [0; 64];
        noise.fill(&mut payload);
        assert!(payload.iter().any(|byte| *byte != payload[0]));
    }
}
