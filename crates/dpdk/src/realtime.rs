//! Real-time scheduling of polling lcores, and of the thread that controls them.
//!
//! A thread is raised for as long as it polls or waits for loops that poll, and gets its own scheduling back afterwards.
//! Threads that it starts meanwhile are ordinary ones.

use std::ffi::c_int;

use dpdk_sys as sys;

use crate::{log, DpdkError};

/// Priority of lcores at work: the lowest, below every real-time thread of the kernel.
const POLLING: c_int = 1;
/// Priority of the thread that waits for them, which must always be able to end their loops.
const CONTROL: c_int = 2;

/// How lcores at work are scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheduling {
    /// As every thread, or as the process was started (`chrt`).
    #[default]
    Ordinary,
    /// First in, first out (`SCHED_FIFO`): only a thread of a higher priority takes the core away.
    Realtime,
}

/// Whether the calling thread has a real-time policy now, whoever gave it.
pub fn is_realtime() -> bool {
    get().is_ok_and(|own| own.is_realtime())
}

/// Tries whether the calling thread may have the priorities that [`Scheduling::Realtime`] needs.
///
/// # Errors
///
/// [`DpdkError::Realtime`] with the kernel's reason.
pub fn check_realtime() -> Result<(), DpdkError> {
    raise(CONTROL).map(drop).map_err(|errno| DpdkError::Realtime { why: log::errno_text(errno) })
}

/// What a thread is scheduled by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Own {
    /// With its flag.
    policy: c_int,
    priority: c_int,
}

impl Own {
    fn is_realtime(self) -> bool {
        let kinds = [sys::LR_SCHED_FIFO, sys::LR_SCHED_RR, sys::LR_SCHED_DEADLINE];
        kinds.contains(&(self.policy as u32 & !sys::LR_SCHED_RESET_ON_FORK))
    }
}

fn get() -> Result<Own, c_int> {
    let (mut policy, mut priority) = (0, 0);
    // SAFETY: both point to live integers.
    match unsafe { sys::lr_sched_get(&mut policy, &mut priority) } {
        0 => Ok(Own { policy, priority }),
        errno => Err(errno),
    }
}

fn set(policy: c_int, priority: c_int) -> Result<(), c_int> {
    // SAFETY: changes the scheduling of the calling thread only.
    match unsafe { sys::lr_sched_set(policy, priority) } {
        0 => Ok(()),
        errno => Err(errno),
    }
}

/// Gives the calling thread its own scheduling back when dropped, on the same thread.
pub(crate) struct Raised {
    before: Own,
    // Not Send: another thread would change its own scheduling.
    here: std::marker::PhantomData<*const ()>,
}

impl Drop for Raised {
    fn drop(&mut self) {
        let Own { policy, priority } = self.before;
        // Without CAP_SYS_NICE the flag stays where it was once set. It changes nothing for an ordinary thread.
        let _ = set(policy, priority).or_else(|_| set(policy | RESET_ON_FORK, priority));
    }
}

const RESET_ON_FORK: c_int = sys::LR_SCHED_RESET_ON_FORK as c_int;

fn raise(priority: c_int) -> Result<Raised, c_int> {
    let before = get()?;
    set(sys::LR_SCHED_FIFO as c_int | RESET_ON_FORK, priority)?;
    Ok(Raised { before, here: std::marker::PhantomData })
}

/// Raises the thread that controls lcores; `None` when it is not wanted or not allowed: lcores must not be raised then.
pub(crate) fn raise_control(wanted: Scheduling) -> Option<Raised> {
    (wanted == Scheduling::Realtime).then(|| raise(CONTROL).ok()).flatten()
}

/// Raises an lcore.
pub(crate) fn raise_polling(wanted: Scheduling) -> Option<Raised> {
    (wanted == Scheduling::Realtime).then(|| raise(POLLING).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_thread_gets_its_own_scheduling_back() {
        let before = get().unwrap();
        let Some(raised) = raise_polling(Scheduling::Realtime) else {
            assert!(matches!(check_realtime(), Err(DpdkError::Realtime { .. })), "neither raised nor refused");
            return;
        };
        assert!(is_realtime());
        // A thread started meanwhile is an ordinary one.
        assert!(!std::thread::spawn(is_realtime).join().unwrap());
        let control = raise_control(Scheduling::Realtime).unwrap();
        assert_eq!(get().unwrap().priority, CONTROL);
        drop(control);
        assert_eq!(get().unwrap().priority, POLLING);
        drop(raised);
        assert_eq!(get().unwrap(), before);
        assert!(raise_polling(Scheduling::Ordinary).is_none() && raise_control(Scheduling::Ordinary).is_none());
    }
}
