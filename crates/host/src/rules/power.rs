//! Frequency and sleep of cores.

use crate::{
    audit::{Asked, Context, Group, Out, Rule, Verdict},
    Fact,
};

/// Longest time, microseconds, that a core of ours may take to wake up.
const WAKE_US: u64 = 2;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "power.governor",
        group: Group::Power,
        why: "a core that is clocked down forwards as much less",
        effect: Some("1600 of 3500 MHz seen in an idle state (low-latency guide)"),
        asked: &[Asked::TwoVm("Appendix A"), Asked::LowLatency("BIOS Configuration"), Asked::LowLatency("Software Settings"), Asked::Onp("3.3"), Asked::Tuned, Asked::Csit],
        bare_metal: true,
        check: |cx, out| cx.each_busy(out, Verdict::Bad, "cpufreq/scaling_governor", &["performance"]),
    },
    Rule {
        id: "power.frequency",
        group: Group::Power,
        why: "a range of frequencies is a range of results",
        effect: None,
        asked: &[Asked::TwoVm("Appendix A"), Asked::LowLatency("BIOS Configuration"), Asked::Onp("3.3"), Asked::Tuned],
        bare_metal: true,
        check: |cx, out| {
            for cpu in cx.busy() {
                let at = |file: &str| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}");
                let khz = |file: &str| cx.roots.value::<u64>(at(file));
                match (khz("scaling_min_freq"), khz("scaling_max_freq")) {
                    (Some(least), Some(most)) if least == most => out.ok(&at("scaling_min_freq"), mhz(most)),
                    (Some(least), Some(most)) => {
                        let got = format!("{} to {}", mhz(least), mhz(most));
                        out.found(Verdict::Warn, &at("scaling_min_freq"), got, mhz(most)).write(at("scaling_min_freq"), most.to_string());
                    }
                    _ => out.not_applicable(&at("scaling_min_freq"), "absent"),
                }
            }
        },
    },
    Rule {
        id: "power.preference",
        group: Group::Power,
        why: "the processor saves energy on a core that polls",
        effect: None,
        asked: &[Asked::TwoVm("Appendix A"), Asked::Tuned],
        bare_metal: true,
        check: |cx, out| cx.each_busy(out, Verdict::Warn, "cpufreq/energy_performance_preference", &["performance"]),
    },
    Rule {
        id: "power.bias",
        group: Group::Power,
        why: "the processor saves energy on a core that polls",
        effect: None,
        asked: &[Asked::TwoVm("Appendix A"), Asked::Tuned],
        bare_metal: true,
        check: |cx, out| cx.each_busy(out, Verdict::Warn, "power/energy_perf_bias", &["0"]),
    },
    Rule {
        id: "power.turbo",
        group: Group::Power,
        why: "the frequency depends on how many cores are busy: the same in all runs that are compared, off where they have to repeat",
        effect: Some("x % more clock is x % more packets where the core is the limit; on in the two-VM document, off in ONP 2.1"),
        asked: &[Asked::TwoVm("Appendix A"), Asked::Onp("3.3"), Asked::Csit],
        bare_metal: true,
        check: |cx, out| {
            let file = |path: &str| cx.roots.fact(path).known();
            match (file("/sys/devices/system/cpu/intel_pstate/no_turbo"), file("/sys/devices/system/cpu/cpufreq/boost")) {
                (Some(off), _) => out.noted("", if off == "1" { "off" } else { "on" }),
                (_, Some(on)) => out.noted("", if on == "0" { "off" } else { "on" }),
                _ => out.not_applicable("", "no switch for it in /sys"),
            }
        },
    },
    Rule {
        id: "power.driver",
        group: Group::Power,
        why: "which driver sets frequencies, and whether the boot line keeps it from doing so",
        effect: None,
        asked: &[Asked::TwoVm("4.1.1"), Asked::Onp("3.3"), Asked::Tuned, Asked::Csit],
        bare_metal: true,
        check: |cx, out| {
            let boot = &cx.machine.boot;
            let word = ["intel_pstate", "amd_pstate"].iter().find_map(|key| Some(format!("{key}={}", boot.value(key)?)));
            let driver = cx.roots.fact("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver").known();
            match (driver, word) {
                (None, None) => out.not_applicable("", "no driver sets frequencies"),
                (driver, word) => {
                    let driver = driver.unwrap_or_else(|| "no driver".to_owned());
                    out.noted("", format!("{driver}{}", word.map(|word| format!(", booted with {word}")).unwrap_or_default()));
                }
            }
        },
    },
    Rule {
        id: "power.sleep",
        group: Group::Power,
        why: "a core that sleeps deeply takes that long to wake up for a frame",
        effect: None,
        asked: &[Asked::TwoVm("4.1.1"), Asked::TwoVm("Appendix A"), Asked::LowLatency("BIOS Configuration"), Asked::LowLatency("Kernel Boot Configuration"), Asked::Onp("3.3"), Asked::Tuned, Asked::Csit],
        bare_metal: true,
        check: sleep,
    },
    Rule {
        id: "power.idle_poll",
        group: Group::Power,
        why: "a core that spins while idle never sleeps, and takes turbo from busy ones; one that polls never idles",
        effect: None,
        asked: &[Asked::TwoVm("4.1.1")],
        bare_metal: true,
        check: |cx, out| out.noted("/proc/cmdline", if cx.machine.boot.has("idle=poll") { "idle=poll" } else { "not asked for" }),
    },
    Rule {
        id: "power.throttled",
        group: Group::Power,
        why: "the processor was too hot and slowed down",
        effect: None,
        asked: &[Asked::TwoVm("Appendix A"), Asked::SmallRouter],
        bare_metal: true,
        check: |cx, out| {
            for cpu in cx.busy() {
                let path = format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count");
                match cx.roots.fact(&path) {
                    Fact::Known(count) if count == "0" => out.ok(&path, "never since boot"),
                    Fact::Known(count) => {
                        out.found(Verdict::Warn, &path, format!("{count} times since boot"), "0").hand("look after its cooling");
                    }
                    Fact::Absent => out.not_applicable(&path, "absent"),
                    Fact::Unreadable(why) => out.unknown(&path, why),
                }
            }
        },
    },
];

fn mhz(khz: u64) -> String {
    format!("{} MHz", khz / 1000)
}

/// States deeper than [`WAKE_US`] that are not switched off; `n/a` in `pm_qos_resume_latency_us` switches all of them off, 0 in
/// `/dev/cpu_dma_latency` cannot be seen.
fn sleep(cx: &Context<'_>, out: &mut Out) {
    for cpu in cx.busy() {
        let at = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
        let states = cx.roots.names(&at);
        let place = format!("cpu {cpu}");
        if states.is_empty() {
            out.not_applicable(&place, "no sleep states");
            continue;
        }
        let wake = format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us");
        if cx.roots.fact(&wake).known().as_deref() == Some("n/a") {
            out.ok(&place, "kept awake (pm_qos_resume_latency_us)");
            continue;
        }
        let deep = states.iter().filter_map(|state| {
            let file = |file: &str| cx.roots.fact(format!("{at}/{state}/{file}")).known();
            let us: u64 = file("latency")?.parse().ok()?;
            let on = file("disable").is_none_or(|disable| disable == "0");
            (us > WAKE_US && on).then(|| (us, file("name").unwrap_or_else(|| state.clone())))
        });
        match deep.max() {
            None => out.ok(&place, format!("no state takes more than {WAKE_US} us to leave")),
            Some((us, name)) => {
                let found = out.found(
                    Verdict::Warn,
                    &place,
                    format!("{name} takes {us} us to leave"),
                    format!("at most {WAKE_US} us"),
                );
                if cx.roots.is_there(&wake) {
                    found.write(wake, "n/a");
                }
                if cx.machine.cpu_vendor == "GenuineIntel" {
                    found.boot("intel_idle.max_cstate=0");
                }
                found.boot("processor.max_cstate=1");
            }
        }
    }
}
