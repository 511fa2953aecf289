//! Threads on one CPU.

use std::io;

use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

/// Pins the thread that calls to a CPU, for good.
///
/// # Errors
///
/// As the system says: no such CPU, or it may not be used.
pub fn pin(cpu: u32) -> io::Result<()> {
    if cpu as usize >= CpuSet::MAX_CPU {
        let why = format!("CPUs from {} on cannot be chosen", CpuSet::MAX_CPU);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut only = CpuSet::new();
    only.set(cpu as usize);
    Ok(sched_setaffinity(None, &only)?)
}

/// The thread that calls on one CPU; back where it was when dropped.
#[derive(Debug)]
pub struct Pinned(CpuSet);

impl Pinned {
    /// Moves the thread there.
    ///
    /// # Errors
    ///
    /// As [`pin`].
    pub fn to(cpu: u32) -> io::Result<Self> {
        let before = sched_getaffinity(None)?;
        pin(cpu)?;
        Ok(Self(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // A thread that cannot go back stays where it is.
        let _ = sched_setaffinity(None, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_goes_to_a_cpu_and_back() {
        let before = sched_getaffinity(None).unwrap();
        let cpu = (0..CpuSet::MAX_CPU).find(|&cpu| before.is_set(cpu)).unwrap();
        let there = Pinned::to(cpu as u32).unwrap();
        assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
        drop(there);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        assert!(Pinned::to(CpuSet::MAX_CPU as u32).is_err());
    }
}
