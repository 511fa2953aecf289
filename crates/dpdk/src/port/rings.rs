//! The rings inside a software cable.

use std::{
    ffi::CString,
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering},
};

use dpdk_sys as sys;

use crate::{eal::Alive, log, DpdkError, Eal};

/// The rings of a cable, one for each direction and queue, freed with what is in them after both ports.
pub(super) struct Rings {
    rings: [Vec<Ring>; 2],
}

struct Ring {
    ring: NonNull<sys::rte_ring>,
    _alive: Alive,
}

// SAFETY: only passed to DPDK, which uses each side of a ring from one queue at a time (SP/SC), as queues are handed
// out once.
unsafe impl Send for Ring {}
// SAFETY: as above; nothing here touches the ring while ports use it.
unsafe impl Sync for Ring {}

impl Rings {
    /// Makes `queues` rings of `depth` frames in each direction. Errors when DPDK's memory does not suffice.
    pub(super) fn new(eal: &'static Eal, queues: u16, depth: u32) -> Result<Self, DpdkError> {
        let one_way = || (0..queues).map(|_| ring(eal, depth)).collect::<Result<Vec<_>, _>>();
        Ok(Self { rings: [one_way()?, one_way()?] })
    }

    /// Queues of each end.
    pub(super) fn queues(&self) -> u16 {
        let [a, _] = &self.rings;
        a.len() as u16
    }

    /// The rings to receive from and the rings to send to, of one end.
    pub(super) fn ends(&self, end: usize) -> (Vec<*mut sys::rte_ring>, Vec<*mut sys::rte_ring>) {
        let [a, b] = &self.rings;
        let (rx, tx) = if end == 0 { (a, b) } else { (b, a) };
        let pointers = |rings: &[Ring]| rings.iter().map(|r| r.ring.as_ptr()).collect();
        (pointers(rx), pointers(tx))
    }
}

fn ring(eal: &'static Eal, depth: u32) -> Result<Ring, DpdkError> {
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    let alive = eal.alive()?;
    let name = CString::new(format!("lr_wire{}", SERIAL.fetch_add(1, Ordering::Relaxed))).unwrap_or_default();
    // SAFETY: the EAL runs; the name is NUL-terminated and copied.
    let ring = unsafe { sys::lr_ring_create(name.as_ptr(), depth) };
    match NonNull::new(ring) {
        Some(ring) => Ok(Ring { ring, _alive: alive }),
        None => {
            let what = format!("a ring of {depth} frames");
            Err(DpdkError::NoMemory { what, reason: log::errno_text(log::errno()) })
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: both ports that used the ring are closed; what is left inside is nobody else's.
        unsafe { sys::lr_ring_free(self.ring.as_ptr()) };
    }
}
