//! The trait of a buffer, and bursts of buffers.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use arrayvec::ArrayVec;

/// The most frames handled at once.
pub const BURST: usize = 64;

/// Owned frames on their way through a stage: nothing allocated, nothing copied but pointers.
///
/// Receiving fills spare room; sending removes what was sent and leaves the unsent in front, still owned.
pub type Burst<B> = ArrayVec<B, BURST>;

/// What a capture says of each frame of the burst that a receive queue handed out last. Only a queue that reads a capture
/// knows that; it writes here, and who takes its bursts reads, on one thread.
#[derive(Debug)]
pub struct Captured {
    times: [AtomicU64; BURST],
    on_wire: [AtomicU32; BURST],
}

impl Default for Captured {
    fn default() -> Self {
        Self { times: [const { AtomicU64::new(0) }; BURST], on_wire: [const { AtomicU32::new(0) }; BURST] }
    }
}

impl Captured {
    /// Keeps what is known of frame `i` of the burst: when it was captured, in ns since the Unix epoch, and its bytes on the
    /// wire without FCS, of which the capture may hold fewer.
    #[inline]
    pub fn set(&self, i: usize, ns: u64, on_wire: u32) {
        if let (Some(time), Some(bytes)) = (self.times.get(i), self.on_wire.get(i)) {
            time.store(ns, Ordering::Relaxed);
            bytes.store(on_wire, Ordering::Relaxed);
        }
    }

    /// What was kept of frame `i`: its time and its bytes on the wire.
    #[inline]
    pub fn get(&self, i: usize) -> Option<(u64, u32)> {
        Some((self.times.get(i)?.load(Ordering::Relaxed), self.on_wire.get(i)?.load(Ordering::Relaxed)))
    }
}

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
