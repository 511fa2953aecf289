//! The only module that touches the fields of an mbuf.

use std::{fmt, ptr::NonNull};

use dpdk_sys as sys;
use packet::{Buffer, Burst};

/// One frame in DPDK memory, owned: dropping it gives it back to its pool.
///
/// Of a frame in several segments (jumbo frames from some drivers into small buffers) [`Buffer::data`] is the first
/// segment only; [`Mbuf::frame_len`] is the length of all. Ports opened by this crate use buffers that hold a frame.
#[repr(transparent)]
pub struct Mbuf(NonNull<sys::rte_mbuf>);

// SAFETY: an mbuf may be used and freed on any thread, and there is exactly one owner. It is not Sync: NonNull is not.
unsafe impl Send for Mbuf {}

const HEADROOM: usize = sys::LR_HEADROOM as usize;

impl Mbuf {
    #[inline(always)]
    fn field<T: Copy>(&self, offset: u32) -> T {
        // SAFETY: `offset` is an offsetof of a field of type T inside a live rte_mbuf that only we own.
        unsafe { self.0.as_ptr().cast::<u8>().add(offset as usize).cast::<T>().read() }
    }

    #[inline(always)]
    fn set_field<T: Copy>(&mut self, offset: u32, value: T) {
        // SAFETY: as for `field`; the mbuf is borrowed mutably.
        unsafe { self.0.as_ptr().cast::<u8>().add(offset as usize).cast::<T>().write(value) }
    }

    #[inline(always)]
    fn data_off(&self) -> usize {
        usize::from(self.field::<u16>(sys::LR_MBUF_OFF_DATA_OFF))
    }

    #[inline(always)]
    fn data_len(&self) -> usize {
        usize::from(self.field::<u16>(sys::LR_MBUF_OFF_DATA_LEN))
    }

    #[inline(always)]
    fn buf_len(&self) -> usize {
        usize::from(self.field::<u16>(sys::LR_MBUF_OFF_BUF_LEN))
    }

    #[inline(always)]
    fn start(&self) -> *mut u8 {
        let base: *mut u8 = self.field(sys::LR_MBUF_OFF_BUF_ADDR);
        // SAFETY: data_off never exceeds the buffer's length.
        unsafe { base.add(self.data_off()) }
    }

    /// Moves the front and sets the length of the first segment; the frame's length follows by the difference.
    #[inline(always)]
    fn set_bounds(&mut self, off: usize, len: usize) {
        let others = self.field::<u32>(sys::LR_MBUF_OFF_PKT_LEN).wrapping_sub(self.data_len() as u32);
        self.set_field(sys::LR_MBUF_OFF_DATA_OFF, off as u16);
        self.set_field(sys::LR_MBUF_OFF_DATA_LEN, len as u16);
        self.set_field(sys::LR_MBUF_OFF_PKT_LEN, others.wrapping_add(len as u32));
    }

    /// Number of segments the frame is in; one, unless a driver scattered it.
    #[inline]
    pub fn segments(&self) -> usize {
        usize::from(self.field::<u16>(sys::LR_MBUF_OFF_NB_SEGS))
    }

    /// Length of the frame over all its segments, without the FCS.
    #[inline]
    pub fn frame_len(&self) -> usize {
        self.field::<u32>(sys::LR_MBUF_OFF_PKT_LEN) as usize
    }
}

impl Drop for Mbuf {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the only owner gives the mbuf back, once.
        unsafe { sys::lr_mbuf_free(self.0.as_ptr()) }
    }
}

impl fmt::Debug for Mbuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mbuf").field("len", &self.frame_len()).field("segments", &self.segments()).finish()
    }
}

impl Buffer for Mbuf {
    #[inline(always)]
    fn data(&self) -> &[u8] {
        // SAFETY: data_off + data_len lies in the buffer, whose memory was zeroed when mapped, so it is initialised.
        unsafe { std::slice::from_raw_parts(self.start(), self.data_len()) }
    }

    #[inline(always)]
    fn data_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `data`; the mbuf, and with it the buffer, is owned and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.data_len()) }
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.data_len()
    }

    #[inline(always)]
    fn prepend(&mut self, n: usize) -> bool {
        let (off, len) = (self.data_off(), self.data_len());
        let fits = n <= off && len + n <= usize::from(u16::MAX);
        if fits {
            self.set_bounds(off - n, len + n);
        }
        fits
    }

    #[inline(always)]
    fn trim_front(&mut self, n: usize) -> bool {
        let (off, len) = (self.data_off(), self.data_len());
        let fits = n <= len;
        if fits {
            self.set_bounds(off + n, len - n);
        }
        fits
    }

    /// Refused for a frame in several segments: only the last of them has an end.
    #[inline(always)]
    fn set_len(&mut self, len: usize) -> bool {
        let off = self.data_off();
        let fits = off + len <= self.buf_len() && self.segments() == 1;
        if fits {
            self.set_bounds(off, len);
        }
        fits
    }

    #[inline(always)]
    fn prefetch(&self) {
        // Where a frame just received starts in an mbuf of our pools, told without a look into the mbuf. Elsewhere it is a
        // fetch in vain.
        prefetch(self.0.as_ptr().cast::<u8>().wrapping_add(sys::LR_MBUF_SIZE as usize + HEADROOM));
    }

    #[inline(always)]
    fn prefetch_tail(&self) {
        prefetch(self.start().wrapping_add(self.data_len()).wrapping_sub(1));
    }

    #[inline]
    fn discard(burst: &mut Burst<Self>) {
        let n = burst.len() as u32;
        // SAFETY: the first n entries are owned mbufs; the burst forgets them before they are given back.
        unsafe {
            burst.set_len(0);
            sys::lr_mbuf_free_bulk(spare(burst), n);
        }
    }
}

/// Where the burst keeps its mbufs, as DPDK sees it.
#[inline(always)]
pub(crate) fn spare(burst: &mut Burst<Mbuf>) -> *mut *mut sys::rte_mbuf {
    // `Mbuf` is a transparent pointer.
    burst.as_mut_ptr().cast()
}

/// The largest frame, without FCS, that a data room holds behind the headroom.
pub(crate) fn room_behind_headroom(data_room: usize) -> usize {
    data_room.saturating_sub(HEADROOM)
}

/// Bytes in front of a fresh frame.
pub(crate) const fn headroom() -> usize {
    HEADROOM
}

#[inline(always)]
pub(crate) fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint and never faults; SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
