//! A window of sequence numbers seen.

/// How many frames back a duplicate can be distinguished from a late first arrival.
pub(crate) const WINDOW: u64 = 1 << 16;

// Twice the window, so that a word may be cleared whole when its first frame comes while all of the window stands.
const WORDS: usize = 2 * WINDOW as usize / 64;

/// Which of the last frames of a stream have come: one bit each.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    words: Box<[u64; WORDS]>,
}

impl Default for Window {
    fn default() -> Self {
        Self { words: Box::new([0; WORDS]) }
    }
}

impl Window {
    #[inline(always)]
    fn word(&mut self, sequence: u64) -> &mut u64 {
        &mut self.words[(sequence / 64) as usize % WORDS]
    }

    /// Marks the frame one above all marked before.
    #[inline(always)]
    pub(crate) fn mark_next(&mut self, sequence: u64) {
        let word = self.word(sequence);
        let kept = if sequence.is_multiple_of(64) { 0 } else { *word };
        *word = kept | 1 << (sequence % 64);
    }

    /// Marks a frame above `next`, the one above all marked before.
    pub(crate) fn mark_ahead(&mut self, next: u64, sequence: u64) {
        let first = next.div_ceil(64);
        for word in first.max((sequence / 64).saturating_sub(WORDS as u64 - 1))..=sequence / 64 {
            *self.word(word * 64) = 0;
        }
        *self.word(sequence) |= 1 << (sequence % 64);
    }

    /// Marks a frame within the window; `false` when it was marked already.
    pub(crate) fn mark_within(&mut self, sequence: u64) -> bool {
        let word = self.word(sequence);
        let bit = 1 << (sequence % 64);
        let first = *word & bit == 0;
        *word |= bit;
        first
    }
}
