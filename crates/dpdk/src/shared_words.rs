//! Memory of DPDK that threads share as atomic words.

use std::{fmt, ops::Deref, ptr::NonNull, sync::atomic::AtomicU64};

use dpdk_sys as sys;

use crate::{eal::Alive, log, DpdkError, Eal};

/// Words of DPDK's memory, zero at first, shared by threads: a table in hugepages where there are any, in ordinary pages
/// otherwise. The first lies at the start of a cache line. Given back when dropped.
pub struct SharedWords {
    words: NonNull<AtomicU64>,
    len: usize,
    _alive: Alive,
}

// SAFETY: the memory belongs to this value alone and has no thread affinity.
unsafe impl Send for SharedWords {}
// SAFETY: it is only ever seen as atomics.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// So many words. Errors when DPDK's memory does not hold them in one piece: it has what the EAL was started with, and
    /// with hugepages what else of them is free.
    pub fn new(eal: &'static Eal, len: usize) -> Result<Self, DpdkError> {
        let alive = eal.alive()?;
        let bytes = len.checked_mul(size_of::<AtomicU64>()).filter(|&b| b > 0 && b <= isize::MAX as usize);
        let Some(bytes) = bytes else {
            let why = "must be at least one word, and less than the address space".into();
            return Err(DpdkError::Config { what: format!("a table of {len} words"), why });
        };
        log::mark();
        // SAFETY: the EAL runs; asks for memory of its own.
        let memory = unsafe { sys::lr_zalloc(bytes) };
        let Some(words) = NonNull::new(memory.cast::<AtomicU64>()) else {
            let (what, reason) = (format!("a table of {} MiB", bytes.div_ceil(1 << 20)), "it does not fit".into());
            return Err(DpdkError::NoMemory { what, reason });
        };
        Ok(Self { words, len, _alive: alive })
    }
}

impl Deref for SharedWords {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: `len` aligned words that DPDK zeroed, which is a valid value, live as long as this does.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.len) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: allocated by `lr_zalloc` and not freed before; nobody borrows it any more.
        unsafe { sys::lr_free(self.words.as_ptr().cast()) }
    }
}

impl fmt::Debug for SharedWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedWords({})", self.len)
    }
}

/// Hints that this is read or written soon: its first cache line is fetched. Changes nothing and costs one instruction.
#[inline(always)]
pub fn prefetch<T: ?Sized>(what: &T) {
    crate::mbuf::prefetch(std::ptr::from_ref(what).cast());
}
