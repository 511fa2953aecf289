//! Parking DPDK's interrupt thread while lcores poll.

use std::{
    ffi::c_void,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use dpdk_sys as sys;

use crate::Eal;

/// How long the interrupt thread may take to come by. It sleeps in epoll, so it is a matter of microseconds.
const PATIENCE: Duration = Duration::from_millis(200);

/// Keeps DPDK's interrupt thread away from ports while lcores poll them; dropped, lets it go on.
///
/// When the peer of a memif port dies, that thread unmaps the rings they share, whoever may be in the middle of a burst
/// over them (22.11 `memif_disconnect`). With the thread parked the memory stays, a dead peer's rings simply stand
/// still, and the disconnection is handled when polling is over.
#[derive(Debug)]
pub struct Parked(Arc<Park>);

#[derive(Debug, Default)]
struct Park {
    stage: Mutex<Stage>,
    changed: Condvar,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Asked,
    Parked,
    Released,
}

impl Park {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Eal {
    /// Parks the interrupt thread. `None` when it did not come by in time; it is then not held up later either.
    ///
    /// Ports cannot be opened or closed, and links of socket ports do not change, until the guard is dropped.
    pub fn park_interrupts(&'static self) -> Option<Parked> {
        let park = Arc::new(Park::default());
        let arg = Arc::into_raw(Arc::clone(&park)).cast_mut().cast::<c_void>();
        // SAFETY: the EAL runs; `wait` takes the reference back, exactly once, if and only if the alarm was set.
        if unsafe { sys::lr_alarm(Some(wait), arg) } != 0 {
            // SAFETY: the alarm was not set, so the reference is still ours.
            drop(unsafe { Arc::from_raw(arg.cast::<Park>()) });
            return None;
        }
        let asked = |stage: &mut Stage| *stage == Stage::Asked;
        let (mut stage, late) =
            park.changed.wait_timeout_while(park.stage(), PATIENCE, asked).unwrap_or_else(PoisonError::into_inner);
        if late.timed_out() && *stage == Stage::Asked {
            *stage = Stage::Released;
            return None;
        }
        drop(stage);
        Some(Parked(park))
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        *self.0.stage() = Stage::Released;
        self.0.changed.notify_all();
    }
}

/// Runs on the interrupt thread.
extern "C" fn wait(arg: *mut c_void) {
    // SAFETY: `arg` is the reference that `park_interrupts` gave away, and this runs once for it.
    let park = unsafe { Arc::from_raw(arg.cast::<Park>().cast_const()) };
    let mut stage = park.stage();
    if *stage == Stage::Asked {
        *stage = Stage::Parked;
        park.changed.notify_all();
    }
    let released = park.changed.wait_while(stage, |stage| *stage != Stage::Released);
    drop(released.unwrap_or_else(PoisonError::into_inner));
}
