//! When the threads of an outside device wait for a CPU that another thread has.
//!
//! The kernel counts the time a thread waits, not when. So the counts are read every millisecond of a trial: what was
//! waited lies between two readings.

use failure::Failure;
use host::{Roots, ThreadTime, ThreadWaits};
use packet::Absence;

/// A wait of less between two readings is none, nanoseconds.
const LEAST_NS: u64 = 20_000;
/// A thread is of the data plane if it ran or wanted to for this share of the trial. Others wait without harm.
const BUSY: f64 = 0.5;

/// The counts at a moment.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    /// The moment, in ticks.
    pub(crate) at: u64,
    pub(crate) times: Vec<ThreadTime>,
}

/// The threads behind the ports: those of the processes named, or else those pinned to the CPU named. `None` where neither
/// is named, and where nothing is pinned to the CPU.
///
/// # Errors
///
/// (usage) for a process that is not there.
pub(crate) fn threads(roots: &Roots, pids: &[u32], cpu: Option<u32>) -> Result<Option<ThreadWaits>, Failure> {
    if !pids.is_empty() {
        return ThreadWaits::of(roots, pids).map(Some).map_err(|pid| {
            Failure::usage(format!("--dut-pid {pid}: no such process, or the kernel does not count its waits: give the id of a process of the device"))
        });
    }
    Ok(cpu.map(|cpu| ThreadWaits::pinned_to(roots, cpu)).filter(|threads| !threads.is_empty()))
}

/// The stretches between readings in which a busy thread waited, and the longest time that one of them waited in all,
/// nanoseconds.
pub(crate) fn absences(readings: &[Reading], hz: u64) -> (Vec<Absence>, u64) {
    let (Some(first), Some(last)) = (readings.first(), readings.last()) else { return (Vec::new(), 0) };
    let lasted_ns = last.at.saturating_sub(first.at) as f64 / hz.max(1) as f64 * 1e9;
    let is_busy = |thread: usize| {
        let spent = |of: &Reading| of.times.get(thread).map_or(0, |time| time.ran_ns + time.waited_ns);
        spent(last).saturating_sub(spent(first)) as f64 >= BUSY * lasted_ns
    };
    let busy: Vec<usize> = (0..last.times.len()).filter(|&thread| is_busy(thread)).collect();
    let waited = |from: &Reading, to: &Reading| {
        let of = |reading: &Reading, thread: usize| reading.times.get(thread).map_or(0, |time| time.waited_ns);
        busy.iter().map(|&thread| of(to, thread).saturating_sub(of(from, thread))).max().unwrap_or(0)
    };
    let pairs = readings.windows(2).filter_map(|pair| match pair {
        [from, to] if waited(from, to) >= LEAST_NS => Some(Absence { from: from.at, to: to.at }),
        _ => None,
    });
    (pairs.collect(), waited(first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: u64, times: &[(u64, u64)]) -> Reading {
        let times = times.iter().map(|&(ran_ns, waited_ns)| ThreadTime { ran_ns, waited_ns }).collect();
        Reading { at, times }
    }

    #[test]
    fn waits_of_busy_threads_are_between_readings() {
        const HZ: u64 = 1_000_000_000;
        // The second thread wants a CPU now and then, and waits long for it.
        let readings = [
            reading(0, &[(0, 0), (0, 0)]),
            reading(1_000_000, &[(1_000_000, 0), (0, 100_000)]),
            reading(2_000_000, &[(1_400_000, 600_000), (0, 200_000)]),
            reading(3_000_000, &[(2_390_000, 610_000), (0, 300_000)]),
            reading(4_000_000, &[(3_300_000, 700_000), (0, 400_000)]),
        ];
        let (away, longest) = absences(&readings, HZ);
        let away: Vec<(u64, u64)> = away.iter().map(|a| (a.from, a.to)).collect();
        assert_eq!(away, [(1_000_000, 2_000_000), (3_000_000, 4_000_000)]);
        assert_eq!(longest, 700_000);
        assert_eq!(absences(&[], HZ), (Vec::new(), 0));
        // A thread that ran for less than that is busy if it wanted to run: what it waited counts with what it ran.
        let starved = [reading(0, &[(0, 0)]), reading(1_000_000, &[(300_000, 700_000)])];
        assert_eq!(absences(&starved, HZ).1, 700_000);
        // The product of both is not their sum: a thread that ran once and waited for little is idle.
        let idle = [reading(0, &[(0, 0)]), reading(1_000_000, &[(2_000, 2_000)])];
        assert_eq!(absences(&idle, HZ).1, 0);
    }

    #[test]
    fn a_process_that_is_not_there_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let refused = threads(&Roots::at(dir.path()), &[7], Some(1)).unwrap_err();
        assert_eq!(refused.exit, failure::Exit::Usage);
        assert!(threads(&Roots::at(dir.path()), &[], Some(1)).unwrap().is_none());
    }
}
