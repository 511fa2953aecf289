//! What the kernel does by itself.

use crate::{
    audit::{Asked, Context, Group, Out, Rule, Verdict},
    core_plan::Purpose,
    cpu_set::{self, CpuSet},
    realtime::FAIR_SERVER_SINCE,
    Fact,
};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "kernel.realtime_throttling",
        group: Group::Kernel,
        why: "real-time threads, such as our polling ones, are stopped for 50 ms in each second",
        effect: None,
        asked: &[Asked::LowLatency("Software Settings")],
        bare_metal: false,
        check: |cx, out| {
            let path = "/proc/sys/kernel/sched_rt_runtime_us";
            // Then this setting takes no time any more (but from groups of threads, CONFIG_RT_GROUP_SCHED, which Debian leaves out).
            if cx.machine.kernel_version() >= FAIR_SERVER_SINCE {
                return out.not_applicable(path, "since Linux 6.12 the fair server takes that time: kernel.fair_server");
            }
            // Polling threads of a switch, and guests, are not real-time threads unless somebody makes them so.
            let wrong = if cx.plan.purpose == Purpose::NfviTwoVm { Verdict::Warn } else { Verdict::Bad };
            let period = cx.roots.value::<i64>("/proc/sys/kernel/sched_rt_period_us").unwrap_or(1_000_000);
            match cx.roots.value::<i64>(path) {
                Some(runtime) if runtime >= period => out.ok(path, runtime.to_string()),
                _ => cx.file(out, wrong, path, &["-1"]),
            }
        },
    },
    Rule {
        id: "kernel.fair_server",
        group: Group::Kernel,
        why: "ordinary threads take 50 ms in each second from a real-time thread, if any wait on its core",
        effect: None,
        asked: &[Asked::LowLatency("Software Settings")],
        bare_metal: false,
        check: |cx, out| {
            if cx.machine.kernel_version() < FAIR_SERVER_SINCE {
                return out.not_applicable("", "kernels before 6.12 do not have it");
            }
            if cx.own().is_empty() {
                return out.not_applicable("", "the plan leaves no core to itself");
            }
            let debug = "/sys/kernel/debug";
            let file = |cpu: u32| format!("{debug}/sched/fair_server/cpu{cpu}/runtime");
            let is_absent = cx.own().first().is_some_and(|&cpu| matches!(cx.roots.fact(file(cpu)), Fact::Absent));
            if is_absent && cx.roots.names(debug).is_empty() {
                return out.unknown(debug, "debugfs is not mounted: mount -t debugfs none /sys/kernel/debug");
            }
            for cpu in cx.own() {
                cx.file(out, Verdict::Warn, &file(cpu), &["0"]);
            }
        },
    },
    Rule {
        id: "kernel.watchdog",
        group: Group::Kernel,
        why: "a thread of the highest priority looks after every core, every four seconds",
        effect: None,
        asked: &[Asked::TwoVm("4.1.1"), Asked::LowLatency("Software Settings"), Asked::Dpdk, Asked::Csit],
        bare_metal: false,
        check: |cx, out| watchdog(cx, out, "/proc/sys/kernel/watchdog", &["nosoftlockup", "nowatchdog"]),
    },
    Rule {
        id: "kernel.nmi_watchdog",
        group: Group::Kernel,
        why:
            "a counter of the processor interrupts every core about every ten seconds, and is missing for measurements",
        effect: None,
        asked: &[Asked::LowLatency("Software Settings"), Asked::Dpdk, Asked::Csit],
        bare_metal: false,
        check: |cx, out| watchdog(cx, out, "/proc/sys/kernel/nmi_watchdog", &["nmi_watchdog=0"]),
    },
    Rule {
        id: "kernel.machine_checks",
        group: Group::Kernel,
        why: "the kernel looks for corrected errors on every core, every five minutes, and on each error",
        effect: None,
        asked: &[Asked::TwoVm("4.1.1"), Asked::LowLatency("Software Settings"), Asked::Tuned],
        bare_metal: true,
        check: |cx, out| {
            if cx.machine.boot.value("mce") == Some("ignore_ce") || cx.machine.boot.value("mce") == Some("off") {
                return out.ok("/proc/cmdline", "mce=ignore_ce");
            }
            for cpu in cx.busy() {
                let at = format!("/sys/devices/system/machinecheck/machinecheck{cpu}");
                if cx.roots.fact(format!("{at}/ignore_ce")).known().as_deref() == Some("1") {
                    out.ok(&format!("{at}/ignore_ce"), "1");
                } else {
                    cx.file(out, Verdict::Warn, &format!("{at}/check_interval"), &["0"]);
                }
            }
        },
    },
    Rule {
        id: "kernel.statistics",
        group: Group::Kernel,
        why: "a worker collects memory statistics on every core, each second",
        effect: None,
        asked: &[Asked::Tuned],
        bare_metal: false,
        check: |cx, out| cx.number(out, Verdict::Warn, "/proc/sys/vm/stat_interval", 10..=3600, "10"),
    },
    Rule {
        id: "kernel.sessions",
        group: Group::Kernel,
        why: "the kernel shares a CPU by terminal session: a thread, also one of the kernel, may wait for minutes beside a session that sleeps often",
        effect: Some(
            "beside an emulated guest a thread of the tester waited for 21 to 430 s, now and then (Linux 6.18, own measurement)",
        ),
        asked: &[],
        bare_metal: false,
        check: |cx, out| {
            const PATH: &str = "/proc/sys/kernel/sched_autogroup_enabled";
            // On cores that the plan keeps free, nobody waits for anybody.
            match cx.own().len() < cx.busy().len() {
                true => cx.file(out, Verdict::Warn, PATH, &["0"]),
                false => cx.note(out, PATH),
            }
        },
    },
    Rule {
        id: "kernel.bpf_statistics",
        group: Group::Kernel,
        why: "each run of a BPF program is timed: XDP and traffic control cost more",
        effect: None,
        asked: &[Asked::Csit],
        bare_metal: false,
        check: |cx, out| cx.number(out, Verdict::Warn, "/proc/sys/kernel/bpf_stats_enabled", 0..=0, "0"),
    },
    Rule {
        id: "kernel.address_layout",
        group: Group::Kernel,
        why: "programs are laid out anew at each start: results spread from run to run",
        effect: None,
        asked: &[Asked::Onp("3.5"), Asked::Onp("10.1"), Asked::Csit],
        bare_metal: false,
        check: |cx, out| cx.note(out, "/proc/sys/kernel/randomize_va_space"),
    },
    Rule {
        id: "kernel.forwarding",
        group: Group::Kernel,
        why: "the kernel forwards between test ports by itself",
        effect: None,
        asked: &[Asked::Onp("3.5"), Asked::Onp("10.1")],
        bare_metal: false,
        check: |cx, out| cx.note(out, "/proc/sys/net/ipv4/ip_forward"),
    },
    Rule {
        id: "kernel.modules",
        group: Group::Kernel,
        why: "management hardware is asked over slow buses, and raises interrupts of the system's management",
        effect: None,
        asked: &[Asked::Onp("3.5"), Asked::Onp("10.1")],
        bare_metal: true,
        check: |cx, out| {
            const ASKED: [&str; 5] = ["ipmi_si", "ipmi_devintf", "ipmi_msghandler", "lpc_ich", "bridge"];
            let loaded: Vec<&str> =
                ASKED.into_iter().filter(|name| cx.roots.is_there(format!("/sys/module/{name}/refcnt"))).collect();
            if loaded.is_empty() {
                out.ok("/sys/module", format!("none of {}", ASKED.join(", ")));
            } else {
                out.noted("/sys/module", format!("{}; the ONP report removes them by rmmod", loaded.join(", ")));
            }
        },
    },
    Rule {
        id: "kernel.preemption",
        group: Group::Kernel,
        why: "how soon the kernel gives a core to another thread, and how often it looks",
        effect: None,
        asked: &[Asked::LowLatency("Kernel Build Configuration")],
        bare_metal: false,
        check: |cx, out| {
            let path = format!("/boot/config-{}", cx.machine.kernel);
            match cx.roots.fact(&path) {
                Fact::Known(config) => {
                    let set = |name: &str| config.lines().any(|line| line == format!("{name}=y"));
                    let hz = config.lines().find_map(|line| line.strip_prefix("CONFIG_HZ=")).unwrap_or("?").to_owned();
                    let kinds =
                        ["CONFIG_PREEMPT_RT", "CONFIG_PREEMPT", "CONFIG_PREEMPT_VOLUNTARY", "CONFIG_PREEMPT_NONE"];
                    let kind = kinds.into_iter().find(|kind| set(kind)).unwrap_or("no CONFIG_PREEMPT");
                    let tickless = if set("CONFIG_NO_HZ_FULL") { "with" } else { "without" };
                    out.noted(&path, format!("{kind}, {hz} ticks a second, {tickless} CONFIG_NO_HZ_FULL"));
                }
                Fact::Absent => out.not_applicable(&path, "absent"),
                Fact::Unreadable(why) => out.unknown(&path, why),
            }
        },
    },
];

/// A watchdog that is off, or keeps away from busy cores.
fn watchdog(cx: &Context<'_>, out: &mut Out, path: &str, words: &[&str]) {
    if cx.roots.fact(path).known().as_deref() == Some("1") {
        let mask = cx.roots.fact("/proc/sys/kernel/watchdog_cpumask").known();
        let mask: CpuSet = mask.map(|list| cpu_set::from_list(&list)).unwrap_or_else(|| cx.machine.online());
        if cx.busy_in(&mask).is_none() {
            return out.ok(path, format!("on CPU {} only", cpu_set::to_list(&mask)));
        }
    }
    let boot = words.first().filter(|_| !words.iter().any(|word| cx.machine.boot.has(word)));
    cx.file(out, Verdict::Warn, path, &["0"]);
    if let (Some(word), Some(found)) = (boot, out.last_open()) {
        found.boot(*word);
    }
}
