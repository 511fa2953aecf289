//! What the firmware set. Most of it can be read by a person only; what comes of it is looked at elsewhere.

use crate::{
    audit::{Asked, Context, Group, Out, Rule, Verdict},
    Fact,
};

/// A setting of the firmware as a document has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Its name in the menu.
    pub name: &'static str,
    /// What it was set to in the two-VM document's newer server (table 7, Xeon Gold 6152).
    pub gen10: Option<&'static str>,
    /// In its older one (table 8, Xeon E5-2695 v4).
    pub gen9: Option<&'static str>,
    /// In the ONP report (table 3-3).
    pub onp: Option<&'static str>,
}

const fn both(name: &'static str, value: &'static str) -> Setting {
    Setting { name, gen10: Some(value), gen9: Some(value), onp: None }
}

const fn newer(name: &'static str, value: &'static str) -> Setting {
    Setting { name, gen10: Some(value), gen9: None, onp: None }
}

const fn older(name: &'static str, value: &'static str) -> Setting {
    Setting { name, gen10: None, gen9: Some(value), onp: None }
}

const fn onp(name: &'static str, value: &'static str) -> Setting {
    Setting { name, gen10: None, gen9: None, onp: Some(value) }
}

/// All settings of the firmware that the documents name.
pub const SETTINGS: &[Setting] = &[
    newer("Workload Profile", "Custom"),
    newer("Dynamic Power Capping Functionality", "Disabled"),
    newer("Opportunistic Self-Refresh", "Disabled"),
    newer("Memory Remap", "No Action"),
    newer("Persistent Memory Backup Power Policy", "Wait for Backup Power on Boot"),
    newer("Persistent Memory Integrity Check", "Enabled"),
    newer("Persistent Memory Address Range Scrub", "Enabled"),
    newer("Power Regulator", "Static High Performance Mode"),
    newer("Minimum Processor Idle Power Core C-State", "No C-states"),
    newer("Minimum Processor Idle Power Package C-State", "No Package State"),
    Setting {
        name: "Intel Turbo Boost Technology",
        gen10: Some("Enabled"),
        gen9: Some("Enabled"),
        onp: Some("Disabled"),
    },
    both("Energy/Performance Bias", "Maximum Performance"),
    both("Collaborative Power Control", "Disabled"),
    both("Intel DMI Link Frequency", "Auto"),
    both("NUMA Group Size Optimization", "Clustered"),
    both("Intel Performance Monitoring Support", "Disabled"),
    newer("Uncore Frequency Scaling", "Maximum"),
    newer("Sub-NUMA Clustering", "Disabled"),
    Setting { name: "Energy Efficient Turbo", gen10: Some("Disabled"), gen9: None, onp: Some("Disabled") },
    newer("Local/Remote Threshold", "Auto"),
    newer("LLC Dead Line Allocation", "Enabled"),
    newer("Stale A to S", "Disabled"),
    both("HW Prefetcher", "Enabled"),
    both("Adjacent Sector Prefetch", "Enabled"),
    both("DCU Stream Prefetcher", "Enabled"),
    both("DCU IP Prefetcher", "Enabled"),
    newer("LLC Prefetch", "Disabled"),
    newer("XPT Prefetcher", "Auto"),
    both("ACPI SLIT", "Enabled"),
    both("Intel NIC DMA Channels (IOAT)", "Enabled"),
    both("Memory Proximity Reporting for I/O", "Enabled"),
    newer("Intel UPI Link Enablement", "Auto"),
    newer("Intel UPI Link Power Management", "Disabled"),
    newer("Intel UPI Link Frequency", "Auto"),
    newer("UPI Prefetcher", "Disabled"),
    newer("Direct to UPI (D2K)", "Auto"),
    newer("Processor Jitter Control", "Disabled"),
    both("Redundant Power Supply Mode", "Balanced Mode"),
    newer("Mixed Power Supply Reporting", "Enabled"),
    both("High Precision Event Timer (HPET) ACPI Support", "Disabled"),
    Setting {
        name: "Thermal Configuration",
        gen10: Some("Optimal Cooling"),
        gen9: Some("Increased Cooling"),
        onp: None,
    },
    both("Thermal Shutdown", "Enabled"),
    both("Fan Installation Requirements", "Enable Messaging"),
    both("Fan Failure Policy", "Shutdown/Halt on Critical Fan Failures"),
    both("Extended Ambient Temperature Support", "Disabled"),
    both("Memory Pre-Failure Notification", "Disabled"),
    both("Advanced RAS Recovery Support", "Enabled"),
    both("BDAT ACPI Support", "Disabled"),
    Setting { name: "Processor Monitor/Mwait Support", gen10: Some("Disabled"), gen9: Some("Enabled"), onp: None },
    Setting {
        name: "Intel Hyper-Threading Technology",
        gen10: Some("Disabled"),
        gen9: Some("Disabled"),
        onp: Some("Enabled and Disabled"),
    },
    both("Processor x2APIC Support", "Enabled"),
    Setting {
        name: "Intel Virtualization Technology (Intel VT)",
        gen10: Some("Enabled"),
        gen9: Some("Enabled"),
        onp: Some("Enabled"),
    },
    both("Intel Virtualization Technology for Directed I/O (Intel VT-d)", "Enabled"),
    both("SR-IOV", "Enabled"),
    both("Advanced Memory Protection", "Advanced ECC Support"),
    older("Power Profile", "Maximum Performance"),
    older("Intel QPI Link Power Management", "Disabled"),
    older("Intel QPI Link Frequency", "Auto"),
    older("Intel QPI Link Enablement", "Auto"),
    both("Maximum Memory Bus Frequency", "Auto"),
    both("Channel Interleaving", "Enabled"),
    older("Maximum PCI Express Speed", "Maximum Supported"),
    older("Dynamic Power Savings Mode Response", "Fast"),
    both("Node Interleaving", "Disabled"),
    older("QPI Snoop Configuration", "Early Snoop"),
    older("QPI Home Snoop Optimization", "Directory + OSB Enabled"),
    older("QPI Bandwidth Optimization (RTID)", "Balanced"),
    older("I/O Non-posted Prefetching", "Enabled"),
    older("Processor Power and Utilization Monitoring", "Disabled"),
    older("Shared Memory Communication", "Enabled"),
    both("Memory Patrol Scrubbing", "Disabled"),
    both("Memory Refresh Rate", "1x Refresh"),
    older("Primary Riser PCIe x16 Bifurcation", "PCIe x16 Slot"),
    older("Hardware P-State Control", "Disabled"),
    onp("C-state", "Disabled"),
    onp("P-state", "Disabled"),
    onp("Enhanced Intel SpeedStep Technology", "Disabled"),
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "firmware.version",
        group: Group::Firmware,
        why: "machine and firmware, to tell results apart",
        effect: None,
        asked: &[Asked::TwoVm("3"), Asked::LowLatency("BIOS Configuration"), Asked::Onp("3.1")],
        bare_metal: false,
        check: |cx, out| {
            let file = |name: &str| cx.roots.fact(format!("/sys/class/dmi/id/{name}")).known();
            let parts: Vec<String> = ["sys_vendor", "product_name", "bios_vendor", "bios_version", "bios_date"]
                .into_iter()
                .filter_map(file)
                .collect();
            match parts.is_empty() {
                true => out.not_applicable("/sys/class/dmi/id", "absent"),
                false => out.noted("/sys/class/dmi/id", parts.join(", ")),
            }
        },
    },
    Rule {
        id: "firmware.processor",
        group: Group::Firmware,
        why: "processor and microcode, to tell results apart",
        effect: None,
        asked: &[Asked::TwoVm("4.1.1"), Asked::LowLatency("BIOS Configuration"), Asked::Onp("3.1")],
        bare_metal: false,
        check: |cx, out| {
            let cpuinfo = cx.roots.fact("/proc/cpuinfo").known().unwrap_or_default();
            let microcode = cpuinfo.lines().find_map(|line| line.strip_prefix("microcode")?.split_once(": "));
            let microcode = microcode.map(|(_, version)| format!(", microcode {version}")).unwrap_or_default();
            out.noted("/proc/cpuinfo", format!("{}{microcode}", cx.machine.cpu_model));
        },
    },
    Rule {
        id: "firmware.settings",
        group: Group::Firmware,
        why: "what the documents set in the firmware's menus",
        effect: None,
        asked: &[Asked::TwoVm("Appendix A"), Asked::LowLatency("BIOS Configuration"), Asked::Onp("3.3")],
        bare_metal: true,
        check: settings,
    },
    Rule {
        id: "firmware.memory",
        group: Group::Firmware,
        why: "a memory channel that is empty, or slower than it could be, limits every frame",
        effect: Some("\"one of the most direct effects on performance\" (DPDK, nic_perf_intel_platform)"),
        asked: &[Asked::TwoVm("3"), Asked::TwoVm("Appendix A"), Asked::Onp("3.1"), Asked::Dpdk],
        bare_metal: true,
        check: memory,
    },
    Rule {
        id: "clock.source",
        group: Group::Clock,
        why: "latency is measured with the TSC: without an invariant one it is withheld",
        effect: None,
        asked: &[Asked::LowLatency("Kernel Boot Configuration"), Asked::TwoVm("4.1.1")],
        bare_metal: false,
        check: |cx, out| {
            let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
            let invariant = cx.machine.has_flag("constant_tsc") && cx.machine.has_flag("nonstop_tsc");
            if !invariant && !cx.machine.cpu_flags.is_empty() {
                out.found(Verdict::Bad, "/proc/cpuinfo", "the TSC is not invariant", "constant_tsc and nonstop_tsc")
                    .hand("in a virtual machine: let it have the host's TSC (QEMU: -cpu host,+invtsc)");
            }
            match cx.roots.fact(path) {
                Fact::Known(source) if source == "tsc" => out.ok(path, source),
                // It follows from the above.
                Fact::Known(source) if !invariant => out.noted(path, source),
                Fact::Known(source) => {
                    let found = out.found(Verdict::Warn, path, source, "tsc");
                    let others =
                        cx.roots.fact("/sys/devices/system/clocksource/clocksource0/available_clocksource").known();
                    if others.is_some_and(|all| all.split_ascii_whitespace().any(|one| one == "tsc")) {
                        found.write(path, "tsc");
                    } else {
                        found.hand("look why the kernel gave it up: dmesg | grep -i tsc (firmware, or tsc=reliable)");
                    }
                }
                Fact::Absent => out.not_applicable(path, "absent"),
                Fact::Unreadable(why) => out.unknown(path, why),
            }
        },
    },
];

/// Settings that a driver of the vendor shows.
fn settings(cx: &Context<'_>, out: &mut Out) {
    const DIR: &str = "/sys/class/firmware-attributes";
    let mut seen = 0;
    for driver in cx.roots.names(DIR) {
        let all = format!("{DIR}/{driver}/attributes");
        for attribute in cx.roots.names(&all) {
            let file = |file: &str| cx.roots.fact(format!("{all}/{attribute}/{file}"));
            let shown = file("display_name").known().unwrap_or_else(|| attribute.clone());
            // Vendors leave out whose technology it is.
            let name = |name: &str| plain(name).replace("intel", "");
            let Some(setting) = SETTINGS.iter().find(|setting| name(setting.name) == name(&shown)) else { continue };
            seen += 1;
            let wanted: Vec<&str> = [setting.gen10, setting.gen9, setting.onp].into_iter().flatten().collect();
            match file("current_value") {
                // Some say Enable, others Enabled.
                Fact::Known(value) if wanted.iter().any(|want| same(want, &value)) => out.ok(&shown, value),
                Fact::Known(value) => {
                    out.found(Verdict::Noted, &shown, value, wanted[0])
                        .hand(format!("{shown} in the firmware's menus"));
                }
                Fact::Absent => {}
                Fact::Unreadable(why) => out.unknown(&shown, why),
            }
        }
    }
    if seen == 0 {
        let wanted = SETTINGS.len();
        out.unknown(
            DIR,
            format!("no driver shows the firmware's settings; docs/host.md lists the {wanted} of the documents"),
        );
    }
}

/// Letters and digits only: vendors write names in their own way.
fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

fn same(a: &str, b: &str) -> bool {
    plain(a).trim_end_matches('d') == plain(b).trim_end_matches('d')
}

fn memory(cx: &Context<'_>, out: &mut Out) {
    const PATH: &str = "/sys/firmware/dmi/tables/DMI";
    match Fact::from(cx.roots.bytes(PATH)) {
        Fact::Absent => out.not_applicable(PATH, "absent"),
        Fact::Unreadable(why) => out.unknown(PATH, why),
        Fact::Known(table) => {
            let slots = crate::smbios::memory(&table);
            let used: Vec<_> = slots.iter().filter(|slot| slot.mib > 0).collect();
            if used.is_empty() {
                return out.unknown(PATH, "does not name memory");
            }
            let gib: u64 = used.iter().map(|slot| slot.mib).sum::<u64>() / 1024;
            let got = format!("{} of {} slots, {gib} GiB", used.len(), slots.len());
            let empty: Vec<&str> = crate::smbios::empty_channels(&slots).into_iter().map(|c| c.name.as_str()).collect();
            if let [first, ..] = empty[..] {
                let what = format!("{got}; no module on {}", empty.join(", "));
                out.found(Verdict::Warn, first, what, "a module on each channel")
                    .hand("memory of one kind on every channel: each that is empty is bandwidth that nobody has");
            }
            match used.iter().find(|slot| slot.configured_mts < slot.fastest_mts) {
                Some(slow) => {
                    let want = format!("{} MT/s", slow.fastest_mts);
                    out.found(Verdict::Warn, &slow.place, format!("{got}; {} MT/s", slow.configured_mts), want)
                        .hand("memory of one kind, at its full speed where the processor has it");
                }
                None if empty.is_empty() => out.noted("", format!("{got}, {} MT/s", used[0].configured_mts)),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_is_there_once_and_has_a_value() {
        for (n, setting) in SETTINGS.iter().enumerate() {
            assert!(SETTINGS[..n].iter().all(|other| plain(other.name) != plain(setting.name)), "{}", setting.name);
            assert!(setting.gen10.or(setting.gen9).or(setting.onp).is_some(), "{}", setting.name);
        }
        let of = |f: fn(&Setting) -> Option<&str>| SETTINGS.iter().filter(|setting| f(setting).is_some()).count();
        // As many as tables 7 and 8 of the document, and table 3-3 of the report, have lines.
        assert_eq!((of(|s| s.gen10), of(|s| s.gen9), of(|s| s.onp)), (60, 49, 7));
        let page = include_str!("../../../../docs/host.md");
        for Setting { name, gen10, gen9, onp } in SETTINGS {
            let [gen10, gen9, onp] = [gen10, gen9, onp].map(|value| value.unwrap_or_default());
            let row = format!("| {name} | {gen10} | {gen9} | {onp} |");
            assert!(page.contains(&row), "{row}");
        }
    }
}
