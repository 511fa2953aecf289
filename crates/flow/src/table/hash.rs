//! The keyed hash of flow keys.
//!
//! Multilinear hashing: the top 64 bits of `k0 + k1 x1 + ... + kn xn` modulo 2^128, with secret random 128-bit `k` and
//! 64-bit words `x`. It is strongly universal (Lemire and Kaser, "Strongly universal string hashing is fast", The Computer
//! Journal 57(11), 2014, theorem 3.1): without knowing `k`, the hashes of two different keys are uniform and
//! independent, so two chosen keys share a bucket no more often than by chance. A bijective mix keeps this property and
//! breaks up the regular steps of regular keys.

use super::TableError;

/// Most words of a flow key (IPv6).
const WORDS: usize = 6;

/// The secret, new for each table.
pub(crate) struct Hasher {
    start: u128,
    by: [u128; WORDS],
}

impl Hasher {
    /// A secret from the operating system.
    pub(crate) fn random() -> Result<Self, TableError> {
        let secret = || {
            let mut bytes = [0; 16];
            getrandom::fill(&mut bytes).map(|()| u128::from_ne_bytes(bytes)).map_err(TableError::Random)
        };
        let start = secret()?;
        let mut by = [0; WORDS];
        for k in &mut by {
            *k = secret()?;
        }
        Ok(Self { start, by })
    }

    /// The hash of the words of a key. The last word (the scope) is mostly zero.
    #[inline(always)]
    pub(crate) fn hash(&self, key: &[u64]) -> u64 {
        let mut sum = self.start;
        let Some((&scope, rest)) = key.split_last() else { return 0 };
        for (&word, k) in rest.iter().zip(&self.by[1..]) {
            sum = sum.wrapping_add(k.wrapping_mul(word.into()));
        }
        if scope != 0 {
            sum = sum.wrapping_add(self.by[0].wrapping_mul(scope.into()));
        }
        mix((sum >> 64) as u64)
    }
}

/// A bijection in which every bit of the result depends on every bit above it and on the folded half.
#[inline(always)]
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^ x >> 32
}
