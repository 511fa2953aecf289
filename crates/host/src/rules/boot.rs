//! Words of the boot line that have no effect of their own that could be read.

use crate::{
    audit::{Asked, Context, Group, Out, Rule, Verdict},
    Fact,
};

/// From this version on, the kernel leaves a TSC alone that is invariant and has a register for adjustments, on machines of
/// at most two nodes (commit b50db7095fe0).
const TSC_TRUSTED_SINCE: (u32, u32) = (5, 17);

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "boot.tsc_reliable",
        group: Group::Clock,
        why: "the kernel checks the TSC against another clock twice a second, on every core in turn",
        effect: None,
        asked: &[Asked::LowLatency("Kernel Boot Configuration"), Asked::Tuned],
        bare_metal: false,
        check: |cx, out| {
            // The features say what the kernel found out by itself; where it trusts the TSC there is nothing to check.
            match (cx.machine.boot.has("tsc=reliable"), cx.machine.has_flag("tsc_reliable")) {
                (true, _) => out.ok("/proc/cmdline", "tsc=reliable"),
                (_, true) => out.ok("/proc/cpuinfo", "tsc_reliable"),
                _ if !cx.machine.has_flag("nonstop_tsc") => out.not_applicable("", "the TSC is not invariant"),
                _ if cx.machine.has_flag("constant_tsc")
                    && cx.machine.has_flag("tsc_adjust")
                    && cx.machine.nodes.len() <= 2
                    && cx.machine.kernel_version() >= TSC_TRUSTED_SINCE
                    && !cx.machine.boot.has("tsc=watchdog") =>
                {
                    out.ok("/proc/cpuinfo", "tsc_adjust: this kernel trusts it");
                }
                _ => {
                    out.found(Verdict::Warn, "/proc/cmdline", "absent", "tsc=reliable").boot("tsc=reliable");
                }
            }
        },
    },
    Rule {
        id: "boot.hpet",
        group: Group::Clock,
        why: "a slow clock that the kernel may fall back to",
        effect: None,
        asked: &[Asked::TwoVm("4.1.1"), Asked::TwoVm("Appendix A")],
        bare_metal: true,
        check: |cx, out| match cx.roots.fact("/sys/devices/system/clocksource/clocksource0/available_clocksource") {
            Fact::Known(clocks) if clocks.split_ascii_whitespace().any(|clock| clock == "hpet") => {
                out.noted("", "there; hpet=disable takes it away")
            }
            Fact::Known(_) => out.noted("", "off"),
            Fact::Absent => out.not_applicable("", "absent"),
            Fact::Unreadable(why) => out.unknown("", why),
        },
    },
    Rule {
        id: "boot.skew_tick",
        group: Group::Kernel,
        why: "all cores take their tick at once, and wait for each other's locks",
        effect: None,
        asked: &[Asked::TwoVm("4.1.2"), Asked::Tuned],
        bare_metal: false,
        check: |cx, out| word(cx, out, "skew_tick=1"),
    },
    Rule {
        id: "boot.audit",
        group: Group::Kernel,
        why: "each system call costs more: the kernel's own forwarding and sockets",
        effect: None,
        asked: &[Asked::TwoVm("4.1.1"), Asked::LowLatency("Kernel Boot Configuration")],
        bare_metal: false,
        check: |cx, out| {
            out.noted(
                "/proc/cmdline",
                if cx.machine.boot.has("audit=0") { "audit=0" } else { "audit is not switched off" },
            )
        },
    },
    Rule {
        id: "boot.selinux",
        group: Group::Kernel,
        why: "each system call costs more: the kernel's own forwarding and sockets",
        effect: None,
        asked: &[
            Asked::TwoVm("4.1.1"),
            Asked::LowLatency("Kernel Boot Configuration"),
            Asked::Onp("3.5"),
            Asked::Onp("10.1"),
        ],
        bare_metal: false,
        check: |cx, out| match cx.roots.fact("/sys/fs/selinux/enforce") {
            Fact::Absent => out.noted("", "off"),
            Fact::Unreadable(why) => out.unknown("/sys/fs/selinux/enforce", why),
            Fact::Known(enforce) => out.noted("", if enforce == "0" { "permissive" } else { "enforcing" }),
        },
    },
    Rule {
        id: "boot.iommu",
        group: Group::Nic,
        why: "each access of the NIC to memory is translated, and buffers are mapped one by one",
        effect: Some(
            "small reads lose most once the working set exceeds the IOMMU's own cache (pcie-bench, SIGCOMM 2018)",
        ),
        asked: &[
            Asked::TwoVm("4.1.1"),
            Asked::TwoVm("Appendix A"),
            Asked::Onp("10.2"),
            Asked::SmallRouter,
            Asked::Dpdk,
        ],
        bare_metal: true,
        check: iommu,
    },
    Rule {
        id: "boot.aspm",
        group: Group::Nic,
        why: "a link of PCIe that sleeps takes microseconds to wake up",
        effect: None,
        asked: &[Asked::Dpdk, Asked::LowLatency("BIOS Configuration")],
        bare_metal: true,
        check: |cx, out| {
            if cx.machine.boot.has("pcie_aspm=off") {
                return out.ok("/proc/cmdline", "pcie_aspm=off");
            }
            cx.file(out, Verdict::Warn, "/sys/module/pcie_aspm/parameters/policy", &["performance"]);
        },
    },
    Rule {
        id: "boot.mitigations",
        group: Group::Kernel,
        why: "what guards against the processor's faults costs system calls: the same on both sides of a comparison",
        effect: None,
        asked: &[Asked::Csit],
        bare_metal: false,
        check: |cx, out| {
            const DIR: &str = "/sys/devices/system/cpu/vulnerabilities";
            let (mut guarded, mut open) = (0, Vec::new());
            for name in cx.roots.names(DIR) {
                let state = cx.roots.fact(format!("{DIR}/{name}")).known().unwrap_or_default();
                if state.starts_with("Vulnerable") {
                    open.push(name);
                } else if state.starts_with("Mitigation") {
                    guarded += 1;
                }
            }
            match (guarded, open.len()) {
                (0, 0) => out.not_applicable(DIR, "none needed, or absent"),
                (_, 0) => out.noted(DIR, format!("{guarded} guarded against")),
                _ => out.noted(DIR, format!("{guarded} guarded against, not: {}", open.join(", "))),
            }
        },
    },
    Rule {
        id: "boot.avx512",
        group: Group::Firmware,
        why: "wide instructions lower the frequency of some processors; RHEL 7.5 ran faster without them",
        effect: None,
        asked: &[Asked::TwoVm("4.1.1")],
        bare_metal: false,
        check: |cx, out| match (cx.machine.has_flag("avx512f"), cx.machine.boot.value("clearcpuid")) {
            (_, Some(value)) => out.noted("/proc/cmdline", format!("clearcpuid={value}")),
            (true, None) => out.noted("/proc/cpuinfo", "avx512f is on"),
            (false, None) => out.not_applicable("/proc/cpuinfo", "no avx512f"),
        },
    },
    Rule {
        id: "boot.line",
        group: Group::Kernel,
        why: "kernel and boot line, to tell results apart",
        effect: None,
        asked: &[
            Asked::TwoVm("4.1.2"),
            Asked::LowLatency("Kernel Boot Configuration"),
            Asked::Onp("3.2"),
            Asked::Onp("10.2"),
        ],
        bare_metal: false,
        check: |cx, out| {
            out.noted("/proc/sys/kernel/osrelease", cx.machine.kernel.clone());
            cx.note(out, "/proc/cmdline");
        },
    },
];

fn word(cx: &Context<'_>, out: &mut Out, word: &str) {
    if cx.machine.boot.has(word) {
        out.ok("/proc/cmdline", word);
    } else {
        out.found(Verdict::Warn, "/proc/cmdline", "absent", word).boot(word);
    }
}

/// Whether an IOMMU translates, and how.
fn iommu(cx: &Context<'_>, out: &mut Out) {
    let boot = &cx.machine.boot;
    let units = cx.roots.names("/sys/class/iommu");
    if units.is_empty() {
        return out.ok("/sys/class/iommu", "off");
    }
    if boot.has("iommu=pt") || boot.has("iommu.passthrough=1") {
        return out.ok("/proc/cmdline", "iommu=pt");
    }
    // What the kernel chose for the NICs counts.
    let kinds: Vec<String> = cx
        .plan_nics()
        .filter_map(|nic| cx.roots.fact(format!("/sys/bus/pci/devices/{}/iommu_group/type", nic.address)).known())
        .collect();
    if !kinds.is_empty() && kinds.iter().all(|kind| kind == "identity") {
        return out.ok("/sys/class/iommu", "identity");
    }
    let got = kinds.first().cloned().unwrap_or_else(|| "on".to_owned());
    // The kernel shows units only of an IOMMU that is on.
    out.found(Verdict::Warn, "/sys/class/iommu", got, "off, or pass-through (iommu=pt)").boot("iommu=pt");
}
