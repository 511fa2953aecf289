//! What a plan may write, and what it may stop.

use std::{
    ffi::OsStr,
    path::{Component, Path},
};

/// Directories of settings that keep a value and can be set back. A plan that somebody sends is applied as root, so what is not
/// below one of these is not written: other files of the kernel load code, run programs, lead anywhere (`/proc/self/root`), or
/// act once.
const SETTINGS: [&str; 12] = [
    "/proc/irq",
    "/proc/sys/kernel",
    "/proc/sys/net",
    "/proc/sys/vm",
    "/sys/bus/workqueue/devices",
    "/sys/class/net",
    "/sys/devices/system/clocksource",
    "/sys/devices/system/cpu",
    "/sys/devices/system/machinecheck",
    "/sys/devices/system/node",
    "/sys/devices/virtual/workqueue",
    "/sys/kernel/mm",
];

/// Modules whose parameters are settings of this kind, below `/sys/module`.
const MODULES: [&str; 6] = ["kvm", "kvm_amd", "kvm_intel", "pcie_aspm", "vfio", "vfio_pci"];

/// Among them, files and directories that name a program, which the kernel runs as root.
const PROGRAMS: [&str; 6] = ["core_pattern", "hotplug", "modprobe", "poweroff_cmd", "uevent_helper", "usermodehelper"];

/// Files that act when they are written, instead of keeping a value: nothing could be taken back.
const TRIGGERS: [&str; 29] = [
    "bind",
    "bonding_masters",
    "cad_pid",
    "compact",
    "compact_memory",
    "delete",
    "delete_device",
    "demote",
    "drop_caches",
    "flush",
    "msg_next_id",
    "new_device",
    "new_id",
    "ns_last_pid",
    "probe",
    "release",
    "reload",
    "remove",
    "remove_id",
    "rescan",
    "reset",
    "sem_next_id",
    "shm_next_id",
    "stat_refresh",
    "sysrq",
    "sysrq-trigger",
    "uevent",
    "unbind",
    "unbind_clocksource",
];

/// Links out of the directories of settings: `device` leads to `config` and `driver_override` of a PCI device.
const LINKS: [&str; 6] = ["device", "driver", "firmware_node", "master", "physfn", "subsystem"];

/// Settings that the kernel does not set back before the next boot.
const FOR_GOOD: [&str; 8] = [
    "kexec_load_disabled",
    "kexec_load_limit_panic",
    "kexec_load_limit_reboot",
    "modules_disabled",
    "ptrace_scope",
    "stable_secret",
    "tainted",
    "unprivileged_bpf_disabled",
];

/// Whether a path is of a setting of the kernel that a plan may write.
pub fn is_setting(path: &Path) -> bool {
    let plain = |name: &OsStr| name.to_str().is_some_and(|name| !name.chars().any(char::is_control));
    let below = SETTINGS.iter().find_map(|top| path.strip_prefix(top).ok());
    let Some(rest) = below.or_else(|| parameter(path)) else { return false };
    let refused = |name: &OsStr| {
        let is_one_of = |names: &[&str]| name.to_str().is_some_and(|name| names.contains(&name));
        let leads_out = is_one_of(&LINKS)
            || name.to_str().is_some_and(|name| ["lower_", "upper_"].iter().any(|link| name.starts_with(link)));
        leads_out || is_one_of(&PROGRAMS) || is_one_of(&TRIGGERS) || is_one_of(&FOR_GOOD)
    };
    // Other spellings of a path, with `.` or `//` in it, are not names of settings.
    let is_plain = path.components().collect::<std::path::PathBuf>().as_os_str() == path.as_os_str();
    let mut parts = rest.components();
    is_plain
        && rest.components().next().is_some()
        && parts.all(|part| matches!(part, Component::Normal(name) if plain(name) && !refused(name)))
}

/// The name of a parameter of one of [`MODULES`].
fn parameter(path: &Path) -> Option<&Path> {
    let module = MODULES.iter().map(|module| Path::new("/sys/module").join(module).join("parameters"));
    module.into_iter().find_map(|parameters| path.strip_prefix(parameters).ok())
}

/// Whether a text is a unit's name, and not an option of systemctl.
pub(crate) fn is_unit(text: &str) -> bool {
    let of_name = |c: char| c.is_ascii_alphanumeric() || ":._@\\-".contains(c);
    !text.is_empty() && !text.starts_with(['-', '.']) && text.chars().all(of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_written_and_what_acts_or_runs_something_is_not() {
        for path in [
            "/proc/irq/24/smp_affinity_list",
            "/proc/irq/default_smp_affinity",
            "/proc/sys/kernel/nmi_watchdog",
            "/proc/sys/net/core/busy_poll",
            "/proc/sys/vm/stat_interval",
            "/sys/bus/workqueue/devices/writeback/cpumask",
            "/sys/class/net/eth0/queues/rx-0/rps_cpus",
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor",
            "/sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us",
            "/sys/devices/system/machinecheck/machinecheck0/check_interval",
            "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
            "/sys/devices/virtual/workqueue/cpumask",
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "/sys/module/kvm/parameters/halt_poll_ns",
            "/sys/module/pcie_aspm/parameters/policy",
        ] {
            assert!(is_setting(Path::new(path)), "{path}");
        }
        for path in [
            "/",
            "/etc/passwd",
            "/proc/self/root/etc/passwd",
            "/proc/sys",
            "/proc/sys/kernel",
            "/proc/sys/fs/binfmt_misc/register",
            "/proc/sys/kernel/./nmi_watchdog",
            "/proc/sys/kernel//nmi_watchdog",
            "/proc/sys/kernel/nmi_watchdog/",
            "/proc/sys/kernel/ns_last_pid",
            "/proc/sys/kernel/tainted",
            "/proc/sys/net/ipv6/conf/eth0/stable_secret",
            "/proc/sys/vm/stat_refresh",
            "/sys/class/net/bonding_masters",
            "/sys/devices/system/clocksource/clocksource0/unbind_clocksource",
            "/sys/devices/system/cpu/microcode/reload",
            "/sys/kernel/mm/hugepages/hugepages-2048kB/demote",
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/kernel/usermodehelper/bset",
            "/proc/sys/kernel/modules_disabled",
            "/proc/sys/kernel/kexec_load_disabled",
            "/proc/sys/kernel/unprivileged_bpf_disabled",
            "/proc/sys/kernel/yama/ptrace_scope",
            "/proc/sys/kernel/../../self/root/etc/passwd",
            "/proc/sys/net/ipv4/route/flush",
            "/proc/sys/vm/drop_caches",
            "/proc/sysrq-trigger",
            "/sys/../etc/passwd",
            "/sys/bus/pci/devices/0000:00:03.0/config",
            "/sys/bus/pci/devices/0000:00:03.0/driver_override",
            "/sys/bus/pci/drivers_probe",
            "/sys/class/net/eth0/device/remove",
            "/sys/class/net/eth0/device/config",
            "/sys/class/net/eth0/device/driver_override",
            "/sys/class/net/eth0/device/driver/new_id",
            "/sys/class/net/eth0/subsystem/eth1/mtu",
            "/sys/class/net/br0/lower_eth1/device/rescan",
            "/sys/devices/system/cpu/cpu0/firmware_node/x",
            "/sys/devices/system/cpu/probe",
            "/sys/devices/system/cpu/cpu1/uevent",
            "/sys/devices/system/memory/hard_offline_page",
            "/sys/devices/system/node/node0/compact",
            "/sys/firmware/acpi/x",
            "/sys/fs/cgroup/cgroup.kill",
            "/sys/fs/cgroup/cpu/release_agent",
            "/sys/module/firmware_class/parameters/path",
            "/sys/module/kvm",
            "/sys/module/kvm/uevent",
            "/sys/power/state",
        ] {
            assert!(!is_setting(Path::new(path)), "{path}");
        }
    }
}
