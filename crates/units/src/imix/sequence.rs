//! A mix: a sequence of frame sizes, named once and kept.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, PoisonError},
};

use super::{order::Range, text::wrong};
use crate::{FrameSize, UnitError};

/// Different mixes that a program may name: each is kept for good, and files may name as many as they like.
const MAX_KNOWN: usize = 1024;

/// Every mix named so far. A mix is named once, by a plan or a result, and kept for good, so that it is copied as a
/// frame size is.
static KNOWN: Mutex<Vec<&'static Sequence>> = Mutex::new(Vec::new());

/// A sequence of frame sizes, sent over and over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Imix(pub(super) &'static Sequence);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Sequence {
    pub(super) name: String,
    pub(super) sizes: Vec<FrameSize>,
    pub(super) way: Way,
    /// Of what is drawn at random.
    pub(super) seed: Option<u64>,
    /// How often it has what its text tells, which is shuffled then.
    pub(super) times: usize,
}

/// How a text tells a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Way {
    /// It is written out: a genome, counts.
    Written,
    /// By the share of each size.
    Spread,
    /// All sizes between two; with a seed some of them.
    Range(Range),
}

impl Imix {
    /// What `imix` alone stands for: the simple mix of 7 to 4 to 1.
    pub const SIMPLE: &'static str = "7x64:4x570:1x1518";

    /// The sizes in the order sent; never empty.
    pub fn sizes(&self) -> &'static [FrameSize] {
        &self.0.sizes
    }

    /// As it was given: `aaafg`, `AAB:A=78:B=1400`, `7x64:4x570:1x1518`, `70%x64:30%x1518`, `64-1518:seed=7`, `IMIX_v4`.
    pub fn name(&self) -> &'static str {
        &self.0.name
    }

    /// The seed of a mix that is drawn at random.
    pub fn seed(&self) -> Option<u64> {
        self.0.seed
    }

    /// Frames of each size in the sequence, from the smallest size up (RFC 6985 §6.2); none for a range, whose algorithm
    /// tells.
    pub fn frames_by_size(&self) -> BTreeMap<FrameSize, usize> {
        if matches!(self.0.way, Way::Range(_)) {
            return BTreeMap::new();
        }
        self.sizes().iter().fold(BTreeMap::new(), |mut frames, size| {
            *frames.entry(*size).or_default() += 1;
            frames
        })
    }

    /// The algorithm by which anybody gets the same sequence (RFC 6985 §6.3 to §6.5); `None` of one that is written out.
    pub fn algorithm(&self) -> Option<String> {
        let (frames, random) = (self.sizes().len(), "r are successive numbers of SplitMix64 from the seed");
        let sequence = match (self.0.way, self.0.seed) {
            (Way::Range(Range { low, step, .. }), None) => {
                return Some(format!("place n (0 to {}) has {low} + n * {step} bytes", frames - 1))
            }
            (Way::Range(range), Some(_)) => {
                let place = format!("{} + floor(r * {} / 2^64) * {} bytes", range.low, range.len(), range.step);
                return Some(format!("place n (0 to {}) has {place}; {random}", frames - 1));
            }
            (Way::Spread, _) => Some(
                "each size has c frames of N: its share of the shortest sequence that has all shares exactly, or of 4096 by \
                 largest remainder; place n (0 to N - 1) gets, of the sizes whose next frame j (0 to c - 1) has \
                 floor(j * N / c) <= n, that of the least ceil((j + 1) * N / c), the first of them in the table"
                    .to_owned(),
            ),
            (Way::Written, _) => None,
        };
        if self.0.seed.is_none() {
            return sequence;
        }
        let shuffle = format!(
            "the sequence {} times over, shuffled: for i from {} down to 1 places i and floor(r * (i + 1) / 2^64) change \
             (Fisher-Yates); {random}",
            self.0.times,
            frames - 1
        );
        Some(sequence.into_iter().chain([shuffle]).collect::<Vec<_>>().join("; then "))
    }

    /// Keeps a sequence, or finds it among those kept.
    pub(super) fn known(sequence: Sequence) -> Result<Self, UnitError> {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.iter().find(|one| ***one == sequence) {
            return Ok(Self(same));
        }
        if known.len() >= MAX_KNOWN {
            let legal = format!("must be one of at most {MAX_KNOWN} different mixes");
            return Err(wrong(&sequence.name, legal));
        }
        let kept = Box::leak(Box::new(sequence));
        known.push(kept);
        Ok(Self(kept))
    }
}

impl fmt::Debug for Imix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Imix({})", self.name())
    }
}
