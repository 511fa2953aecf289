//! Pools of mbufs.

use std::{
    ffi::CString,
    fmt,
    ptr::NonNull,
    sync::{
        atomic::{AtomicU32, Ordering},
        Arc,
    },
};

use dpdk_sys as sys;
use packet::{Alloc, Burst};

use crate::{
    eal::Alive,
    log,
    mbuf::{headroom, room_behind_headroom, spare},
    DpdkError, Eal, Mbuf,
};

/// A pool of equally large mbufs. Clones share it.
///
/// Freed when the last clone is gone and every mbuf is back; if mbufs are still out then, its memory stays reserved
/// to the end of the process, because an [`Mbuf`] must be able to go home at any time.
#[derive(Clone)]
pub struct Mempool(Arc<Inner>);

struct Inner {
    pool: NonNull<sys::rte_mempool>,
    name: String,
    capacity: usize,
    data_room: usize,
    _alive: Alive,
}

// SAFETY: rte_mempool with its default flags (many producers, many consumers) is made to be used from all threads.
unsafe impl Send for Inner {}
// SAFETY: as above; the pointer itself never changes.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the pool is live. If it is full, nobody holds an mbuf and, this being the last handle, nobody can
        // get one.
        unsafe {
            if sys::lr_pool_avail(self.pool.as_ptr()) as usize == self.capacity {
                sys::lr_pool_free(self.pool.as_ptr());
            } else {
                self._alive.leak();
            }
        }
    }
}

impl fmt::Debug for Mempool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mempool({}, {} of {} free)", self.name(), self.avail(), self.capacity())
    }
}

impl Mempool {
    /// A pool of `count` mbufs (best one less than a power of two) with `data_room` bytes for a frame behind
    /// 128 bytes of headroom, and a cache of `cache` mbufs (at most 512, and `count` / 1.5) per lcore.
    ///
    /// Size the pool for everything that can hold frames at once: the descriptors of all rings, the depth of wires,
    /// one cache and a half per lcore, and the bursts in hand. `name` only has to be readable; it is made unique.
    pub fn new(eal: &'static Eal, name: &str, count: u32, data_room: u16, cache: u32) -> Result<Self, DpdkError> {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let what = || format!("memory pool {name:?} of {count} x {data_room} bytes");
        let alive = eal.alive()?;
        let room = usize::from(data_room) + headroom();
        let Some(room) = u16::try_from(room).ok().filter(|_| data_room >= 64) else {
            return Err(DpdkError::Config { what: what(), why: "the data room must be 64 to 65407 bytes".into() });
        };
        if count == 0 || cache > 512 || u64::from(cache) * 3 > u64::from(count) * 2 {
            let why = "the cache must be at most 512 and two thirds of the count, which must not be zero".into();
            return Err(DpdkError::Config { what: what(), why });
        }
        // Names of pools are limited to 26 bytes, and a serial number makes them unique.
        let short: String = name.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
        let unique = format!("{short}_{}", SERIAL.fetch_add(1, Ordering::Relaxed));
        let c_name = CString::new(unique.clone()).unwrap_or_default();
        log::mark();
        // SAFETY: the EAL runs, the name is NUL-terminated and copied.
        let pool = unsafe { sys::lr_pool_create(c_name.as_ptr(), count, cache, room) };
        let Some(pool) = NonNull::new(pool) else {
            return Err(DpdkError::NoMemory { what: what(), reason: log::errno_text(log::errno()) });
        };
        let inner = Inner { pool, name: unique, capacity: count as usize, data_room: usize::from(room), _alive: alive };
        Ok(Self(Arc::new(inner)))
    }

    /// The pool's unique name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// How many mbufs it has.
    pub fn capacity(&self) -> usize {
        self.0.capacity
    }

    /// How many of them are not in use now, per-lcore caches included. Walks all caches: not for the packet path.
    pub fn avail(&self) -> usize {
        // SAFETY: the pool is live.
        unsafe { sys::lr_pool_avail(self.as_ptr()) as usize }
    }

    /// The longest frame, in bytes without FCS, that fits an mbuf behind its headroom.
    pub fn max_frame_len(&self) -> usize {
        room_behind_headroom(self.0.data_room)
    }

    /// Something to allocate from; make one for each lcore.
    pub fn handle(&self) -> PoolHandle {
        PoolHandle { pool: self.0.pool, room: self.max_frame_len(), _keep: self.clone() }
    }

    /// Writes `template` behind the headroom of every mbuf, so that allocated frames already hold it.
    ///
    /// For the control side, while no frame of the pool is in flight. Errors when mbufs are out, or the template is
    /// longer than [`Mempool::max_frame_len`].
    pub fn fill_all(&self, template: &[u8]) -> Result<(), DpdkError> {
        let what = || format!("filling pool {}", self.name());
        if template.len() > self.max_frame_len() {
            let why = format!("{} bytes given, at most {} fit", template.len(), self.max_frame_len());
            return Err(DpdkError::Config { what: what(), why });
        }
        let out = self.capacity() - self.avail().min(self.capacity());
        if out > 0 {
            return Err(DpdkError::Config { what: what(), why: format!("{out} frames are in flight") });
        }
        // SAFETY: the template fits the room behind the headroom, and all mbufs lie in the pool, so nobody owns them.
        unsafe { sys::lr_pool_fill(self.as_ptr(), template.as_ptr(), template.len() as u16) }
        Ok(())
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::rte_mempool {
        self.0.pool.as_ptr()
    }

    /// Whether all mbufs lie in one piece of memory, as AF_XDP wants them.
    pub(crate) fn is_one_chunk(&self) -> bool {
        // SAFETY: the pool is live.
        unsafe { sys::lr_pool_chunks(self.as_ptr()) == 1 }
    }
}

/// Allocates frames from a pool, a burst at a time. Fast on EAL's lcores, which have a cache; slow elsewhere.
#[derive(Clone)]
pub struct PoolHandle {
    pool: NonNull<sys::rte_mempool>,
    room: usize,
    _keep: Mempool,
}

// SAFETY: the pool may be used from any thread, and the handle keeps it alive.
unsafe impl Send for PoolHandle {}

impl PoolHandle {
    /// The longest frame it allocates, in bytes without FCS.
    pub fn max_frame_len(&self) -> usize {
        self.room
    }
}

impl Alloc for PoolHandle {
    type Buf = Mbuf;

    #[inline]
    fn alloc(&mut self, burst: &mut Burst<Mbuf>, n: usize, len: usize) -> usize {
        let have = burst.len();
        if n > burst.remaining_capacity() || len > self.room {
            return 0;
        }
        // SAFETY: there is room for n pointers behind the `have` ones; on success the shim wrote n owned mbufs whose
        // data room holds `len` bytes, on failure none.
        unsafe {
            if sys::lr_mbuf_alloc_bulk(self.pool.as_ptr(), spare(burst).add(have), n as u32, len as u16) != 0 {
                return 0;
            }
            burst.set_len(have + n);
        }
        n
    }
}
