//! Facts of the machine.

use crate::{machine, Roots};

/// What the machine is, as far as it says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// Host name.
    pub hostname: String,
    /// Kernel release.
    pub kernel: String,
    /// CPU model name.
    pub cpu_model: String,
    /// CPUs that threads of this process may be put on, isolated ones too, rising.
    pub cpus_allowed: Vec<u32>,
    /// `virtual machine (vendor)` when the CPU says so.
    pub hypervisor: Option<String>,
    /// Whether the TSC runs at one rate in every power state.
    pub tsc_invariant: bool,
    /// The kernel's clock source.
    pub clocksource: Option<String>,
    /// Kernel boot line.
    pub boot_line: String,
    /// Free and total 2 MiB hugepages.
    pub hugepages_2m: (u64, u64),
    /// CPUs kept from the scheduler by `isolcpus`.
    pub isolated: String,
    /// Frequency governor of the first CPU, when there is one.
    pub governor: Option<String>,
}

impl Facts {
    /// Reads the machine. What cannot be read is empty or `None`.
    pub fn read(roots: &Roots) -> Self {
        let cpuinfo = roots.proc("cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            cpuinfo
                .lines()
                .find(|l| l.split(':').next().is_some_and(|k| k.trim() == name))
                .and_then(|l| l.split_once(':'))
                .map(|(_, v)| v.trim().to_owned())
                .unwrap_or_default()
        };
        let flags = field("flags");
        let has = |flag: &str| flags.split_ascii_whitespace().any(|f| f == flag);
        let vendor: Option<String> = roots.sys("class/dmi/id/sys_vendor");
        Self {
            hostname: line(roots, "sys/kernel/hostname"),
            kernel: line(roots, "sys/kernel/osrelease"),
            cpu_model: field("model name"),
            cpus_allowed: machine::may_go_to(roots).into_iter().collect(),
            hypervisor: has("hypervisor").then(|| vendor.unwrap_or_else(|| "virtual machine".to_owned())),
            tsc_invariant: has("constant_tsc") && has("nonstop_tsc"),
            clocksource: roots.sys("devices/system/clocksource/clocksource0/current_clocksource"),
            boot_line: line(roots, "cmdline"),
            hugepages_2m: (
                roots.sys("kernel/mm/hugepages/hugepages-2048kB/free_hugepages").unwrap_or(0),
                roots.sys("kernel/mm/hugepages/hugepages-2048kB/nr_hugepages").unwrap_or(0),
            ),
            isolated: roots.sys("devices/system/cpu/isolated").unwrap_or_default(),
            governor: roots.sys("devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        }
    }
}

fn line(roots: &Roots, path: &str) -> String {
    roots.proc(path).unwrap_or_default().trim().to_owned()
}
