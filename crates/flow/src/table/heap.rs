//! Memory of a table on the heap.

use std::ops::Deref;

use super::sync::AtomicU64;

/// Memory for a table on the heap, aligned to 64 bytes.
pub struct Heap {
    words: Box<[AtomicU64]>,
    from: usize,
}

impl Heap {
    /// This many words of zero.
    pub fn new(words: usize) -> Self {
        let words: Box<[AtomicU64]> = (0..words.saturating_add(7)).map(|_| AtomicU64::new(0)).collect();
        let from = words.as_ptr().align_offset(64).min(7);
        Self { words, from }
    }
}

impl Deref for Heap {
    type Target = [AtomicU64];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU64] {
        self.words.get(self.from..self.words.len() - 7 + self.from).unwrap_or_default()
    }
}

/// This many words of zero, of which the system gives memory only to those that are written.
#[cfg(not(feature = "loom"))]
pub(crate) fn untouched(words: usize) -> Box<[AtomicU64]> {
    bytemuck::zeroed_slice_box(words)
}

#[cfg(feature = "loom")]
pub(crate) fn untouched(words: usize) -> Box<[AtomicU64]> {
    (0..words).map(|_| AtomicU64::new(0)).collect()
}
