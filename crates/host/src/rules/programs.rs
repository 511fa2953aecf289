//! Programs that work against a plan, and limits of this one.

use crate::{
    audit::{Asked, Context, Group, Mend, Out, Rule, Verdict},
    Fact,
};

/// TLP sets values at boot and when the plug is pulled, and no process of it stays: it leaves this file.
const TLP: &str = "/run/tlp/last_pwr";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "programs.quota",
        group: Group::Programs,
        why: "the kernel stops this process when its control group has used its time, for up to 100 ms",
        effect: None,
        asked: &[Asked::Csit],
        bare_metal: false,
        check: |cx, out| match cx.machine.quota_cpus {
            None => out.ok("/sys/fs/cgroup", "no limit"),
            Some(cpus) => {
                out.found(Verdict::Bad, "/sys/fs/cgroup", format!("{cpus:.2} CPUs"), "no limit").hand(
                    "take cpu.max (cgroup v1: cpu.cfs_quota_us) away from the control group (Kubernetes with CRI-O: cpu-quota.crio.io: disable)",
                );
            }
        },
    },
    Rule {
        id: "programs.container",
        group: Group::Programs,
        why: "in a container most settings belong to the host",
        effect: None,
        asked: &[],
        bare_metal: false,
        check: |cx, out| match &cx.machine.container {
            None => out.not_applicable("", "not a container"),
            Some(sign) => out.noted(sign, "a container: tune the host"),
        },
    },
    Rule {
        id: "programs.read_only",
        group: Group::Programs,
        why: "settings below /sys and /proc cannot be changed from here",
        effect: None,
        asked: &[],
        bare_metal: false,
        check: |cx, out| {
            let mounts = cx.roots.fact("/proc/mounts").known().unwrap_or_default();
            let read_only = |at: &str| {
                let last = mounts.lines().rev().find(|line| line.split_ascii_whitespace().nth(1) == Some(at));
                last.and_then(|line| line.split_ascii_whitespace().nth(3))
                    .is_some_and(|flags| flags.split(',').any(|flag| flag == "ro"))
            };
            let fixed: Vec<&str> = ["/sys", "/proc/sys"].into_iter().filter(|at| read_only(at)).collect();
            match fixed.is_empty() {
                true => out.ok("/proc/mounts", "may be changed, with the rights"),
                false => out.noted("/proc/mounts", format!("{} read-only: tune the host", fixed.join(" and "))),
            }
        },
    },
    Rule {
        id: "programs.tuned",
        group: Group::Programs,
        why: "a profile sets some of these values, and sets them again",
        effect: None,
        asked: &[Asked::TwoVm("4.1.6")],
        bare_metal: false,
        check: tuned,
    },
    Rule {
        id: "programs.power_savers",
        group: Group::Programs,
        why: "it changes governor and frequency while a trial runs",
        effect: None,
        asked: &[Asked::TwoVm("4.1.6"), Asked::LowLatency("BIOS Configuration")],
        bare_metal: false,
        check: |cx, out| {
            service(
                cx,
                out,
                Verdict::Warn,
                &[(TLP, "tlp"), ("power-profiles-", "power-profiles-daemon"), ("thermald", "thermald")],
            )
        },
    },
    Rule {
        id: "programs.same_pages",
        group: Group::Programs,
        why: "it switches the joining of equal pages on",
        effect: None,
        asked: &[Asked::TwoVm("4.1.2"), Asked::Tuned],
        bare_metal: false,
        check: |cx, out| service(cx, out, Verdict::Warn, &[("ksmtuned", "ksmtuned")]),
    },
    Rule {
        id: "programs.firewall",
        group: Group::Programs,
        why: "its rules are looked at for each frame that the kernel forwards",
        effect: None,
        asked: &[Asked::Onp("3.5"), Asked::Onp("10.1")],
        bare_metal: false,
        check: |cx, out| {
            note(cx, out, &["firewalld"]);
            // Only there while the kernel tracks connections, which rules of any program may ask for.
            let count = cx.roots.fact("/proc/sys/net/netfilter/nf_conntrack_count");
            let got = if count == Fact::Absent { "connections are not tracked" } else { "connections are tracked" };
            out.noted("/proc/sys/net/netfilter/nf_conntrack_count", got);
        },
    },
    Rule {
        id: "programs.network",
        group: Group::Programs,
        why: "it sends frames of its own on test ports, and changes them",
        effect: None,
        asked: &[Asked::Onp("3.5")],
        bare_metal: false,
        check: |cx, out| note(cx, out, &["NetworkManager", "dhclient", "dhcpcd"]),
    },
    Rule {
        id: "programs.crash_dump",
        group: Group::Programs,
        why: "memory that is kept for a crash dump is nobody's: less is left for hugepages",
        effect: None,
        asked: &[Asked::TwoVm("4.1.1")],
        bare_metal: false,
        check: |cx, out| {
            cx.note(out, "/sys/kernel/kexec_crash_loaded");
            cx.note(out, "/sys/kernel/kexec_crash_size");
        },
    },
    Rule {
        id: "programs.clock",
        group: Group::Clock,
        why: "it moves the clock: latency between hosts, and flow times, follow it",
        effect: None,
        asked: &[],
        bare_metal: false,
        check: |cx, out| note(cx, out, &["chronyd", "ntpd", "systemd-timesyn", "phc2sys", "ptp4l"]),
    },
];

/// The profile that is set, and whether it suits.
fn tuned(cx: &Context<'_>, out: &mut Out) {
    const SUITABLE: [&str; 5] =
        ["network-latency", "latency-performance", "cpu-partitioning", "realtime", "realtime-virtual-host"];
    let profile = cx.roots.fact("/etc/tuned/active_profile").known().filter(|profile| !profile.is_empty());
    match (cx.runs("tuned"), profile) {
        (false, _) => out.not_applicable("tuned", "does not run"),
        (true, None) => out.noted("/etc/tuned/active_profile", "no profile"),
        (true, Some(profile))
            if profile
                .split_ascii_whitespace()
                .any(|name| SUITABLE.contains(&name) || name.starts_with("linerate")) =>
        {
            out.ok("/etc/tuned/active_profile", profile);
        }
        (true, Some(profile)) => {
            out.found(Verdict::Warn, "/etc/tuned/active_profile", profile, "network-latency")
                .mended_by(Mend::Command { command: "tuned-adm profile network-latency".to_owned() });
        }
    }
}

fn service(cx: &Context<'_>, out: &mut Out, wrong: Verdict, programs: &[(&str, &str)]) {
    let runs = |name: &str| if name.starts_with('/') { cx.roots.is_there(name) } else { cx.runs(name) };
    let running = programs.iter().filter(|(name, _)| runs(name));
    let mut any = false;
    for (_, service) in running {
        any = true;
        out.found(wrong, service, "runs", "stopped").mended_by(Mend::Stop { service: format!("{service}.service") });
    }
    if !any {
        out.ok(
            "",
            format!("none runs: {}", programs.iter().map(|(_, service)| *service).collect::<Vec<_>>().join(", ")),
        );
    }
}

fn note(cx: &Context<'_>, out: &mut Out, programs: &[&str]) {
    let running: Vec<&str> = programs.iter().copied().filter(|name| cx.runs(name)).collect();
    match running.is_empty() {
        true => out.ok("", format!("none runs: {}", programs.join(", "))),
        false => out.noted("", format!("{} runs", running.join(", "))),
    }
}
