//! Which worker lcores are at work.

use std::sync::atomic::{AtomicBool, Ordering};

use dpdk_sys as sys;

/// Which lcores have work. EAL's own state lags: an lcore is idle there only after it has left our function.
static BUSY: [AtomicBool; sys::LR_MAX_LCORE as usize] = [const { AtomicBool::new(false) }; sys::LR_MAX_LCORE as usize];

/// The flag of an lcore; `None` when DPDK has no such number.
pub(crate) fn flag(lcore: u32) -> Option<&'static AtomicBool> {
    BUSY.get(lcore as usize)
}

/// Whether any worker is at work.
pub(crate) fn any_busy() -> bool {
    BUSY.iter().any(|b| b.load(Ordering::Acquire))
}
