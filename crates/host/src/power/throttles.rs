//! How often processors were slowed down because they were too hot.

use crate::{cpu_list::parse_cpu_list, Roots};

const CPUS: &str = "/sys/devices/system/cpu";

/// The kernel's counts of such events: one of each core, and one of each processor.
///
/// Their files are not kept open: a large machine has hundreds, as many as a process may have open.
#[derive(Debug)]
pub(super) struct Throttles {
    roots: Roots,
    counts: Vec<String>,
}

impl Throttles {
    pub(super) fn find(roots: &Roots) -> Self {
        let cpu = |name: &String| name.strip_prefix("cpu")?.parse::<u32>().ok();
        let mut counts = Vec::new();
        for cpu in roots.names(CPUS).iter().filter_map(cpu) {
            let at = format!("{CPUS}/cpu{cpu}");
            // Each CPU of a core, or of a processor, counts the same events: the first of them stands for all.
            let first = |lists: [&str; 2]| {
                let list = lists.iter().find_map(|list| roots.fact(format!("{at}/topology/{list}")).known());
                list.and_then(|list| parse_cpu_list(&list).first().copied()).is_none_or(|first| first == cpu)
            };
            for (what, lists) in [
                ("core", ["core_cpus_list", "thread_siblings_list"]),
                ("package", ["package_cpus_list", "core_siblings_list"]),
            ] {
                let path = format!("{at}/thermal_throttle/{what}_throttle_count");
                if first(lists) && roots.value::<u64>(&path).is_some() {
                    counts.push(path);
                }
            }
        }
        Self { roots: roots.clone(), counts }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Events so far; `None` if a count cannot be read, or there is none.
    pub(super) fn read(&self) -> Option<u64> {
        let counts: Option<Vec<u64>> = self.counts.iter().map(|path| self.roots.value(path)).collect();
        counts?.into_iter().reduce(u64::saturating_add)
    }
}
