//! Which packets are counted: all, or one in so many.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Of which packets the records are: one in so many. Written `1/100` or `1/100,random`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sampling {
    /// One packet in this many is counted; at least one.
    pub interval: u32,
    /// Which one.
    pub mode: SamplingMode,
}

/// Which packets are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplingMode {
    /// Every n-th: systematic count-based sampling (RFC 5475 5.1).
    Deterministic,
    /// One of each n in a row, whichever: random n-out-of-N sampling (RFC 5475 5.2.1).
    Random,
}

/// The text is not a sampling.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} must be 1/N for every N-th packet, or 1/N,random for a random one of each N; N from 1 to 16777216")]
pub struct SamplingError(String);

/// The largest interval: collectors have 24 bits for it (`samplingInterval` of RFC 3954 8 has more).
const MOST: u32 = 1 << 24;

impl FromStr for Sampling {
    type Err = SamplingError;

    fn from_str(text: &str) -> Result<Self, SamplingError> {
        let error = || SamplingError(text.to_owned());
        let (share, mode) = match text.split_once(',') {
            None => (text, SamplingMode::Deterministic),
            Some((share, "random")) => (share, SamplingMode::Random),
            Some(_) => return Err(error()),
        };
        let interval = share.strip_prefix("1/").filter(|n| n.bytes().all(|byte| byte.is_ascii_digit()));
        let interval = interval.and_then(|n| n.parse().ok()).filter(|n| (1..=MOST).contains(n));
        Ok(Self { interval: interval.ok_or_else(error)?, mode })
    }
}

impl fmt::Display for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let random = if self.mode == SamplingMode::Random { ",random" } else { "" };
        write!(f, "1/{}{random}", self.interval)
    }
}

impl TryFrom<String> for Sampling {
    type Error = SamplingError;

    fn try_from(text: String) -> Result<Self, SamplingError> {
        text.parse()
    }
}

impl From<Sampling> for String {
    fn from(sampling: Sampling) -> Self {
        sampling.to_string()
    }
}

/// Says of each packet whether it is counted.
#[derive(Debug, Clone)]
pub struct Sampler {
    sampling: Sampling,
    /// Packets left of this interval, and of them those before the one that is counted.
    left: u32,
    before: u32,
    state: u64,
}

impl Sampler {
    /// Begins an interval. The seed decides which packets are random.
    pub fn new(sampling: Sampling, seed: u64) -> Self {
        Self { sampling, left: 0, before: 0, state: seed }
    }

    /// Whether this packet is counted: exactly one of each interval.
    #[inline(always)]
    pub fn takes(&mut self) -> bool {
        if self.left == 0 {
            self.left = self.sampling.interval.max(1);
            self.before = match self.sampling.mode {
                SamplingMode::Deterministic => self.left - 1,
                SamplingMode::Random => self.below(self.left),
            };
        }
        self.left -= 1;
        let takes = self.before == 0;
        self.before = self.before.wrapping_sub(1);
        takes
    }

    /// A random number below `n` (SplitMix64: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014;
    /// scaled as by Lemire, "Fast Random Integer Generation in an Interval", 2019, without the rejection: off by less than
    /// 2^-40).
    fn below(&mut self, n: u32) -> u32 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * u128::from(n)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(sampling: &str, packets: usize) -> Vec<usize> {
        let mut sampler = Sampler::new(sampling.parse().unwrap(), 7);
        (0..packets).filter(|_| sampler.takes()).collect()
    }

    #[test]
    fn every_interval_gives_one_packet() {
        assert_eq!(taken("1/1", 5), [0, 1, 2, 3, 4]);
        assert_eq!(taken("1/3", 10), [2, 5, 8]);
        let random = taken("1/10,random", 100_000);
        assert!(random.iter().enumerate().all(|(i, at)| at / 10 == i));
        // Each place in the interval has its share: 1,000 on average, with a deviation of 30.
        for place in 0..10 {
            let n = random.iter().filter(|at| *at % 10 == place).count();
            assert!((850..1150).contains(&n), "{n} at {place}");
        }
        assert_eq!(taken("1/1,random", 3), [0, 1, 2]);
    }

    #[test]
    fn random_numbers_are_those_of_splitmix64() {
        // The published generator's first outputs from 0 are e220a8397b1dcdaf, 6e789e6aa1b965f4 and 06c45d188009454f.
        let mut sampler = Sampler::new("1/2,random".parse().unwrap(), 0);
        assert_eq!([(); 3].map(|()| sampler.below(1 << 31)), [0x7110_541c, 0x373c_4f35, 0x0362_2e8c]);
    }

    #[test]
    fn the_text_form_is_strict() {
        for text in ["1/1", "1/100", "1/16777216,random"] {
            assert_eq!(text.parse::<Sampling>().unwrap().to_string(), text);
        }
        for text in ["", "100", "1/0", "1/", "1/+3", "2/3", "1/16777217", "1/3,", "1/3,Random", "1/-1", "1/ 3"] {
            assert!(text.parse::<Sampling>().is_err(), "{text}");
        }
    }
}
