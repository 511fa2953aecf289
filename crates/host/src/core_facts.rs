//! What the kernel says of one CPU: who shares its core, and what it was told to keep away.

use crate::{cpu_list::parse_cpu_list, Roots};

/// One CPU as the kernel was told to use it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CoreFacts {
    /// Its number.
    pub cpu: u32,
    /// Kept from the scheduler by `isolcpus`.
    pub isolated: bool,
    /// Without the timer tick while one thread runs (`nohz_full`).
    pub tickless: bool,
    /// Frequency governor, where there is one.
    pub governor: Option<String>,
    /// Other CPUs on the same core (SMT).
    pub siblings: Vec<u32>,
}

impl CoreFacts {
    /// Reads the facts of one CPU. What cannot be read is `false`, `None` or empty.
    pub fn read(roots: &Roots, cpu: u32) -> Self {
        let listed = |path: &str| parse_cpu_list(&roots.sys::<String>(path).unwrap_or_default()).contains(&cpu);
        let own = |path: &str| roots.sys::<String>(&format!("devices/system/cpu/cpu{cpu}/{path}"));
        let mut siblings = parse_cpu_list(&own("topology/thread_siblings_list").unwrap_or_default());
        siblings.retain(|&sibling| sibling != cpu);
        Self {
            cpu,
            isolated: listed("devices/system/cpu/isolated"),
            tickless: listed("devices/system/cpu/nohz_full"),
            governor: own("cpufreq/scaling_governor"),
            siblings,
        }
    }
}

/// The share of the time that the kernel keeps from real-time threads (`kernel.sched_rt_runtime_us`); `None` where it
/// keeps none.
pub fn rt_throttle_share(roots: &Roots) -> Option<f64> {
    let number = |name: &str| roots.proc(&format!("sys/kernel/{name}"))?.trim().parse::<f64>().ok();
    let (runtime, period) = (number("sched_rt_runtime_us")?, number("sched_rt_period_us")?);
    (runtime >= 0.0 && period > runtime).then(|| 1.0 - runtime / period)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_fixture_tree_is_read_and_a_bare_one_survived() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let roots = Roots::at(dir.path());
        assert_eq!(CoreFacts::read(&roots, 3), CoreFacts { cpu: 3, ..CoreFacts::default() });
        assert_eq!(rt_throttle_share(&roots), None);
        write("sys/devices/system/cpu/isolated", "2-3\n");
        write("sys/devices/system/cpu/nohz_full", "(null)\n");
        write("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "powersave\n");
        write("sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "3,7\n");
        write("proc/sys/kernel/sched_rt_runtime_us", "950000\n");
        write("proc/sys/kernel/sched_rt_period_us", "1000000\n");
        let facts = CoreFacts::read(&roots, 3);
        assert_eq!((facts.isolated, facts.tickless, facts.siblings), (true, false, vec![7]));
        assert_eq!(facts.governor.as_deref(), Some("powersave"));
        assert!((rt_throttle_share(&roots).unwrap() - 0.05).abs() < 1e-9);
        write("proc/sys/kernel/sched_rt_runtime_us", "-1\n");
        assert_eq!(rt_throttle_share(&roots), None);
    }
}
