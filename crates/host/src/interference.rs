//! The kernel's counters of what disturbs a core.

use std::fs;

use crate::{Roots, ThreadTime};

/// Counters of one CPU and the thread polling on it, to be taken before and after a trial and subtracted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CpuSnapshot {
    /// Nanoseconds the hypervisor ran something else while this CPU had work (10 ms steps).
    pub steal_ns: Option<u64>,
    /// Nanoseconds that the thread was ready and another thread had the CPU.
    pub waited_ns: Option<u64>,
    /// Interrupts taken by the CPU, all sources.
    pub interrupts: Option<u64>,
    /// Times the thread was switched out against its will.
    pub involuntary_switches: Option<u64>,
    /// Thermal throttle events of the core.
    pub throttles: Option<u64>,
    /// Current frequency.
    pub frequency_mhz: Option<f64>,
}

impl CpuSnapshot {
    /// Reads the counters of `cpu` and of thread `tid` of this process.
    pub fn read(roots: &Roots, cpu: Option<u32>, tid: Option<u32>) -> Self {
        let of_cpu = |f: &dyn Fn(u32) -> Option<u64>| cpu.and_then(f);
        Self {
            steal_ns: of_cpu(&|cpu| steal(&roots.proc("stat")?, cpu)),
            waited_ns: tid.and_then(|tid| {
                ThreadTime::parse(&roots.proc(&format!("self/task/{tid}/schedstat"))?).map(|time| time.waited_ns)
            }),
            interrupts: of_cpu(&|cpu| interrupts(&roots.proc("interrupts")?, cpu)),
            involuntary_switches: tid.and_then(|tid| {
                let status = roots.proc(&format!("self/task/{tid}/status"))?;
                status.lines().find_map(|l| l.strip_prefix("nonvoluntary_ctxt_switches:"))?.trim().parse().ok()
            }),
            throttles: of_cpu(&|cpu| {
                roots.sys(&format!("devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count"))
            }),
            frequency_mhz: cpu.and_then(|cpu| {
                let khz: f64 = roots.sys(&format!("devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"))?;
                Some(khz / 1e3)
            }),
        }
    }

    /// What happened between `self` and `later`; the frequency is the later one.
    pub fn until(&self, later: &Self) -> Self {
        let diff = |a: Option<u64>, b: Option<u64>| Some(b?.saturating_sub(a?));
        Self {
            steal_ns: diff(self.steal_ns, later.steal_ns),
            waited_ns: diff(self.waited_ns, later.waited_ns),
            interrupts: diff(self.interrupts, later.interrupts),
            involuntary_switches: diff(self.involuntary_switches, later.involuntary_switches),
            throttles: diff(self.throttles, later.throttles),
            frequency_mhz: later.frequency_mhz,
        }
    }
}

/// The kernel's id of the calling thread, for [`CpuSnapshot::read`].
pub fn current_tid() -> Option<u32> {
    fs::read_link("/proc/thread-self").ok()?.file_name()?.to_str()?.parse().ok()
}

/// The eighth figure of the CPU's line in `/proc/stat`, in ticks of 10 ms (USER_HZ is 100 on every Linux we run on).
fn steal(stat: &str, cpu: u32) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let line = stat.lines().find(|l| l.split_ascii_whitespace().next() == Some(&name))?;
    let ticks: u64 = line.split_ascii_whitespace().nth(8)?.parse().ok()?;
    ticks.checked_mul(10_000_000)
}

/// The sum of the CPU's column in `/proc/interrupts`; its header names the CPUs that are online.
fn interrupts(table: &str, cpu: u32) -> Option<u64> {
    interrupts_of(table, cpu, |_| true)
}

/// The same of the rows whose name is wanted, such as `LOC`.
pub(crate) fn interrupts_of(table: &str, cpu: u32, wanted: impl Fn(&str) -> bool) -> Option<u64> {
    let mut lines = table.lines();
    let column = lines.next()?.split_ascii_whitespace().position(|h| h == format!("CPU{cpu}"))?;
    let count = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let name = words.next()?.trim_end_matches(':');
        words.nth(column).filter(|_| wanted(name))?.parse::<u64>().ok()
    };
    Some(lines.filter_map(count).fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  1 2 3 4 5 6 7 30 0 0\ncpu0 1 2 3 4 5 6 7 10 0 0\ncpu1 1 2 3 4 5 6 7 20 0 0\nintr 5\n";
    const IRQS: &str = "           CPU0       CPU2\n  0:         10          3   IO-APIC   2-edge  timer\nLOC:        100        200   Local timer interrupts\nERR:          7\n";

    #[test]
    fn figures_are_those_of_the_cpu_asked_for() {
        assert_eq!(steal(STAT, 1), Some(200_000_000));
        assert_eq!(steal(STAT, 9), None);
        assert_eq!(interrupts(IRQS, 2), Some(203));
        assert_eq!(interrupts(IRQS, 1), None);
    }

    #[test]
    fn a_tree_without_counters_gives_none() {
        let dir = tempfile::tempdir().unwrap();
        let snap = CpuSnapshot::read(&Roots::at(dir.path()), Some(0), Some(1));
        assert_eq!(snap, CpuSnapshot::default());
    }

    #[test]
    fn this_machine_counts_its_own_thread() {
        let tid = current_tid().unwrap();
        let snap = CpuSnapshot::read(&Roots::default(), Some(0), Some(tid));
        assert!(snap.involuntary_switches.is_some());
        assert_eq!(snap.until(&snap).interrupts, Some(0));
        assert_eq!(snap.until(&CpuSnapshot { waited_ns: snap.waited_ns.map(|ns| ns + 7), ..snap }).waited_ns, Some(7));
    }
}
