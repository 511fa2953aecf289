//! Threads on one CPU.

use std::io;

use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

use crate::cpu_set;

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

/// The CPUs that the thread that calls may use.
///
/// # Errors
///
/// As the system says.
pub fn may_run_on() -> io::Result<cpu_set::CpuSet> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).filter_map(|cpu| u32::try_from(cpu).ok()).collect())
}

/// Has the thread that calls run on these CPUs only.
///
/// # Errors
///
/// As the system says: none of them is there, or may be used.
pub fn run_on(cpus: &cpu_set::CpuSet) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|&&cpu| (cpu as usize) < CpuSet::MAX_CPU).for_each(|&cpu| set.set(cpu as usize));
    Ok(sched_setaffinity(None, &set)?)
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
        assert_eq!(may_run_on().unwrap(), [cpu as u32].into());
        drop(there);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        assert!(Pinned::to(CpuSet::MAX_CPU as u32).is_err());
        let all = may_run_on().unwrap();
        let there = Pinned::to(cpu as u32).unwrap();
        run_on(&all).unwrap();
        assert_eq!(may_run_on().unwrap(), all);
        assert!(run_on(&cpu_set::CpuSet::new()).is_err());
        drop(there);
    }
}
