use std::{
    ffi::CString,
    ptr::NonNull,
    sync::{
        atomic::{AtomicU32, Ordering},
        Arc,
    },
};

use dpdk_sys as sys;

use crate::{eal::Alive, log, port::wire_end, DpdkError, Eal, Port, PortConfig};

/// A software cable: two ports over a pair of rings. It loses nothing: a full cable refuses frames.
pub struct Wire;

impl Wire {
    /// The two ends of a cable that holds `depth` frames in each direction and queue (1 to 65536). Of `config` the pool,
    /// the MTU and the number of queues count; both ends have as many of both kinds as the larger of the two numbers
    /// there, and what is sent to queue `q` comes out of queue `q`. Frames still inside go back to their pools when
    /// both ends are closed.
    ///
    /// Frames themselves pass, not copies: a frame received belongs to the pool the sender took it from.
    pub fn pair(eal: &'static Eal, name: &str, depth: u32, config: &PortConfig) -> Result<(Port, Port), DpdkError> {
        if !(1..=65536).contains(&depth) {
            let what = format!("wire {name:?} of depth {depth}");
            return Err(DpdkError::Config { what, why: "the depth must be 1 to 65536 frames".into() });
        }
        let queues = config.rx_queues.max(config.tx_queues);
        let most = sys::LR_MAX_QUEUES as u16;
        if !(1..=most).contains(&queues) {
            let what = format!("wire {name:?} of {queues} queues");
            return Err(DpdkError::Config { what, why: format!("legal are 1 to {most} queues") });
        }
        let one_way = || (0..queues).map(|_| ring(eal, depth)).collect::<Result<Vec<_>, _>>();
        let rings = Arc::new(Rings { rings: [one_way()?, one_way()?] });
        let near = wire_end(eal, name, Arc::clone(&rings), 0, config)?;
        Ok((near, wire_end(eal, name, rings, 1, config)?))
    }
}

/// The rings of a cable, one for each direction and queue, freed with what is in them after both ports.
pub(crate) struct Rings {
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
    /// Queues of each end.
    pub(crate) fn queues(&self) -> u16 {
        let [a, _] = &self.rings;
        a.len() as u16
    }

    /// The rings to receive from and the rings to send to, of one end.
    pub(crate) fn ends(&self, end: usize) -> (Vec<*mut sys::rte_ring>, Vec<*mut sys::rte_ring>) {
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
