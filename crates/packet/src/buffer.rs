//! The trait of a buffer, and bursts of buffers.

use std::sync::{atomic::AtomicU64, Arc};

use arrayvec::ArrayVec;

/// The most frames handled at once.
pub const BURST: usize = 64;

/// Owned frames on their way through a stage: nothing allocated, nothing copied but pointers.
///
/// Receiving fills spare room; sending removes what was sent and leaves the unsent in front, still owned.
pub type Burst<B> = ArrayVec<B, BURST>;

/// When each frame of the burst was captured that a receive queue handed out last, in ns since the Unix epoch. Only a
/// queue that reads a capture knows that; it writes here, and who takes its bursts reads, on one thread.
pub type Captured = Arc<[AtomicU64; BURST]>;

/// One frame in memory, without its FCS, with room in front for headers to be added.
///
/// Owned: dropping it gives the memory back. Never `Clone`.
pub trait Buffer: Sized + Send {
    /// The frame's bytes, from the destination MAC to the last payload byte.
    fn data(&self) -> &[u8];
    /// The frame's bytes, to rewrite in place.
    fn data_mut(&mut self) -> &mut [u8];
    /// Length of the frame in bytes, without the FCS.
    #[inline]
    fn len(&self) -> usize {
        self.data().len()
    }
    /// Whether the frame has no bytes at all.
    #[inline]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Makes the frame `n` bytes longer in front; the new bytes are not initialised to anything in particular.
    /// `false`, and nothing changed, when there is no headroom.
    #[must_use]
    fn prepend(&mut self, n: usize) -> bool;
    /// Takes `n` bytes off the front. `false`, and nothing changed, when the frame is shorter.
    #[must_use]
    fn trim_front(&mut self, n: usize) -> bool;
    /// Makes the frame exactly `len` bytes long at its end; new bytes are not initialised.
    /// `false`, and nothing changed, when the memory is smaller.
    #[must_use]
    fn set_len(&mut self, len: usize) -> bool;
    /// Hints that the first bytes are read soon.
    #[inline]
    fn prefetch(&self) {}
    /// Hints that the last bytes, where the stamp is, are read soon.
    #[inline]
    fn prefetch_tail(&self) {}
    /// Gives all frames of a burst back at once, which is cheaper than one by one.
    #[inline]
    fn discard(burst: &mut Burst<Self>) {
        burst.clear();
    }
}
