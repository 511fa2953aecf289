//! Counters of one CPU and of the thread that polls on it: who took the time.

use crate::{interference::interrupts_of, CpuSnapshot, Roots};

/// What [`CpuSnapshot`] has, and what tells causes apart. To be taken twice and subtracted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CoreCounters {
    /// Steal, waits, interrupts, switches, frequency.
    pub kernel: CpuSnapshot,
    /// Interrupts of the local timer.
    pub timer_interrupts: Option<u64>,
}

impl CoreCounters {
    /// Reads the counters of `cpu` and of thread `tid` of this process.
    pub fn read(roots: &Roots, cpu: u32, tid: Option<u32>) -> Self {
        Self {
            kernel: CpuSnapshot::read(roots, Some(cpu), tid),
            timer_interrupts: roots.proc("interrupts").and_then(|table| interrupts_of(&table, cpu, |row| row == "LOC")),
        }
    }

    /// What happened between `self` and `later`.
    pub fn until(&self, later: &Self) -> Self {
        let diff = |a: Option<u64>, b: Option<u64>| Some(b?.saturating_sub(a?));
        Self {
            kernel: self.kernel.until(&later.kernel),
            timer_interrupts: diff(self.timer_interrupts, later.timer_interrupts),
        }
    }

    /// Whether thread `tid` of this process has real-time priority; `None` when nobody can tell.
    pub fn is_real_time(roots: &Roots, tid: Option<u32>) -> Option<bool> {
        let stat = roots.proc(&format!("self/task/{}/stat", tid?))?;
        // Field 41 of proc(5): 1 is FIFO, 2 round robin.
        let policy: u32 = stat.rsplit_once(") ")?.1.split_ascii_whitespace().nth(41 - 3)?.parse().ok()?;
        Some(matches!(policy, 1 | 2))
    }

    /// Nanoseconds so far in which this CPU was not idle: user, system and interrupts.
    pub fn busy_ns(roots: &Roots, cpu: u32) -> Option<u64> {
        let stat = roots.proc("stat")?;
        let name = format!("cpu{cpu}");
        let line = stat.lines().find(|l| l.split_ascii_whitespace().next() == Some(&name))?;
        let field = |n: usize| line.split_ascii_whitespace().nth(n)?.parse::<u64>().ok();
        // user, nice, system, irq, softirq, in ticks of 10 ms.
        let ticks = [1, 2, 3, 6, 7].into_iter().filter_map(field).fold(0, u64::saturating_add);
        ticks.checked_mul(10_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::current_tid;

    #[test]
    fn this_machine_says_how_long_a_thread_waited() {
        let (roots, tid) = (Roots::default(), current_tid());
        let counters = CoreCounters::read(&roots, 0, tid);
        assert_eq!(counters.until(&counters).kernel.waited_ns, Some(0));
        assert_eq!(CoreCounters::is_real_time(&roots, tid), Some(false));
        assert!(CoreCounters::busy_ns(&roots, 0).is_some());
    }

    #[test]
    fn a_tree_without_counters_gives_none() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots::at(dir.path());
        assert_eq!(CoreCounters::read(&roots, 0, Some(1)), CoreCounters::default());
        assert_eq!(CoreCounters::is_real_time(&roots, Some(1)), None);
        assert_eq!(CoreCounters::busy_ns(&roots, 0), None);
    }
}
