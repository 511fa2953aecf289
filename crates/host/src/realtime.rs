//! What keeps real-time threads from taking a CPU for themselves.

use crate::{cpu_list::parse_cpu_list, Roots};

/// From this version on, the kernel runs ordinary threads for 50 ms in each second on a CPU where real-time threads leave
/// them nothing (`fair_server`).
pub(crate) const FAIR_SERVER_SINCE: (u32, u32) = (6, 12);

/// The kernel's limits of real-time threads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RealtimeLimits {
    /// Microseconds that real-time threads may run on a CPU, of how many; `None` without a limit
    /// (`kernel.sched_rt_runtime_us`).
    pub runtime_us: Option<(u64, u64)>,
    /// Whether the kernel takes time from real-time threads for ordinary ones that wait, and only then.
    pub fair_server: bool,
    /// CPUs of the machine that are on, rising.
    pub online: Vec<u32>,
}

impl RealtimeLimits {
    /// Reads them. A limit that cannot be read counts as the kernel's default: 0.95 s of each second.
    pub fn read(roots: &Roots) -> Self {
        let number = |name: &str| roots.proc(&format!("sys/kernel/{name}"))?.trim().parse::<i64>().ok();
        let runtime = number("sched_rt_runtime_us").unwrap_or(950_000);
        let period = number("sched_rt_period_us").and_then(|us| u64::try_from(us).ok()).unwrap_or(1_000_000);
        let online = parse_cpu_list(&roots.sys::<String>("devices/system/cpu/online").unwrap_or_default());
        let release = roots.proc("sys/kernel/osrelease").unwrap_or_default();
        // Reading needs root and debugfs. What cannot be read is taken to be there.
        let server = |cpu: &u32| roots.sys::<u64>(&format!("kernel/debug/sched/fair_server/cpu{cpu}/runtime"));
        let switched_off = !online.is_empty() && online.iter().all(|cpu| server(cpu) == Some(0));
        Self {
            runtime_us: u64::try_from(runtime).ok().filter(|&us| us < period).map(|us| (us, period)),
            fair_server: version(&release) >= FAIR_SERVER_SINCE && !switched_off,
            online,
        }
    }

    /// Whether ordinary threads get some time on each CPU, whatever real-time threads do.
    pub fn keeps_machine_alive(&self) -> bool {
        self.runtime_us.is_some() || self.fair_server
    }
}

/// The first two numbers of a release such as `6.1.0-18-amd64`; zeros where there are none.
pub(crate) fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.trim().split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn machine(release: &str, runtime: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/osrelease", release);
        write("proc/sys/kernel/sched_rt_runtime_us", runtime);
        write("proc/sys/kernel/sched_rt_period_us", "1000000\n");
        write("sys/devices/system/cpu/online", "0-1\n");
        dir
    }

    fn read(root: &Path) -> RealtimeLimits {
        RealtimeLimits::read(&Roots::at(root))
    }

    #[test]
    fn both_limits_are_seen() {
        let old = machine("6.1.0-18-amd64\n", "950000\n");
        let limits = read(old.path());
        assert_eq!(limits.runtime_us, Some((950_000, 1_000_000)));
        assert_eq!((limits.fair_server, limits.online.len()), (false, 2));
        assert!(limits.keeps_machine_alive());
        assert!(!read(machine("6.1.0", "-1").path()).keeps_machine_alive());
        assert!(!read(machine("6.1.0", "1000000").path()).keeps_machine_alive());
        let new = machine("6.12.3", "-1");
        assert!(read(new.path()).fair_server);
        for cpu in 0..2 {
            let file = new.path().join(format!("sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime"));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "0\n").unwrap();
        }
        assert!(!read(new.path()).fair_server, "switched off on every CPU");
    }

    #[test]
    fn a_tree_without_files_has_the_default_limit() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).runtime_us, Some((950_000, 1_000_000)));
        assert_eq!(version("next"), (0, 0));
        assert!(version("7.0.1") >= FAIR_SERVER_SINCE);
    }
}
