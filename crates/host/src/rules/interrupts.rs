//! Interrupts that come to polling cores.

use crate::{
    audit::{Asked, Context, Group, Out, Rule, Verdict},
    cpu_set::{self, CpuSet},
    interrupt_table::{self, Row},
    Fact,
};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "interrupts.new",
        group: Group::Interrupts,
        why: "interrupts of devices that are opened from now on may come to these CPUs (a mask): to a polling core as well",
        effect: None,
        asked: &[
            Asked::LowLatency("Kernel Boot Configuration"),
            Asked::LowLatency("Software Settings"),
            Asked::Dpdk,
            Asked::Tuned,
        ],
        bare_metal: false,
        check: |cx, out| mask(cx, out, "/proc/irq/default_smp_affinity", "irqaffinity"),
    },
    Rule {
        id: "interrupts.each",
        group: Group::Interrupts,
        why: "an interrupt on a polling core takes a few microseconds, and what follows it more",
        effect: Some(
            "moving the management NIC's interrupts \"resulted in higher performance\" (two-VM document, 4.1.7)",
        ),
        asked: &[Asked::TwoVm("4.1.7"), Asked::LowLatency("Software Settings"), Asked::Tuned, Asked::Csit],
        bare_metal: false,
        check: each,
    },
    Rule {
        id: "interrupts.balancer",
        group: Group::Interrupts,
        why: "irqbalance moves interrupts back to polling cores within ten seconds",
        effect: None,
        asked: &[Asked::Onp("3.5"), Asked::Onp("10.1"), Asked::Tuned, Asked::Csit],
        bare_metal: false,
        check: |cx, out| {
            let own = cx.own();
            if !cx.runs("irqbalance") {
                return out.ok("irqbalance", "does not run");
            }
            if own.is_empty() {
                return out.not_applicable("irqbalance", "the plan leaves no core to itself");
            }
            let banned = banned(cx);
            if own.is_subset(&banned) {
                return out.ok("irqbalance", format!("keeps away from {}", cpu_set::to_list(&banned)));
            }
            out.found(Verdict::Bad, "irqbalance", "runs", "stopped, or kept away from busy cores")
                .mended_by(crate::audit::Mend::Stop { service: "irqbalance.service".to_owned() });
        },
    },
    Rule {
        id: "interrupts.work",
        group: Group::Interrupts,
        why: "work that the kernel put off runs on a polling core",
        effect: None,
        asked: &[Asked::Dpdk, Asked::Tuned],
        bare_metal: false,
        check: |cx, out| {
            mask(cx, out, "/sys/devices/virtual/workqueue/cpumask", "");
            mask(cx, out, "/sys/bus/workqueue/devices/writeback/cpumask", "");
        },
    },
    Rule {
        id: "interrupts.timers",
        group: Group::Interrupts,
        why: "timers of idle cores move to one that is awake, which is the polling one; 0 keeps each on its own core",
        effect: None,
        asked: &[Asked::Tuned],
        bare_metal: false,
        check: |cx, out| cx.number(out, Verdict::Warn, "/proc/sys/kernel/timer_migration", 0..=0, "0"),
    },
];

/// CPUs that irqbalance keeps away from: those that it was told, otherwise those that are isolated or tickless.
fn banned(cx: &Context<'_>) -> CpuSet {
    // Debian's file, and that of Red Hat.
    let files = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];
    let told: String = files.iter().filter_map(|file| cx.roots.fact(file).known()).map(|text| text + "\n").collect();
    let value = |key: &str| {
        let of =
            |line: &str| Some(line.trim().strip_prefix(key)?.strip_prefix('=')?.trim_matches(['"', '\'']).to_owned());
        told.lines().filter_map(of).next_back().filter(|value| !value.is_empty())
    };
    if let Some(list) = value("IRQBALANCE_BANNED_CPULIST") {
        return cpu_set::from_list(&list);
    }
    if let Some(mask) = value("IRQBALANCE_BANNED_CPUS") {
        return cpu_set::from_mask(&mask).unwrap_or_default();
    }
    let kernel = |file: &str| cx.roots.fact(format!("/sys/devices/system/cpu/{file}")).known().unwrap_or_default();
    cpu_set::from_list(&kernel("isolated")).union(&cpu_set::from_list(&kernel("nohz_full"))).copied().collect()
}

/// A mask that should hold no busy core.
fn mask(cx: &Context<'_>, out: &mut Out, path: &str, word: &str) {
    let text = match cx.roots.fact(path) {
        Fact::Absent => return out.not_applicable(path, "absent"),
        Fact::Unreadable(why) => return out.unknown(path, why),
        Fact::Known(text) => text,
    };
    let Some(cpus) = cpu_set::from_mask(&text) else { return out.unknown(path, format!("not a mask: {text}")) };
    let cpus: CpuSet = cpus.intersection(&cx.machine.online()).copied().collect();
    if cx.busy_in(&cpus).is_none() {
        return out.ok(path, cpu_set::to_list(&cpus));
    }
    let rest = rest(cx);
    let list = cpu_set::to_list(&rest);
    let found = out.found(Verdict::Warn, path, cpu_set::to_list(&cpus), list.clone());
    found.write(path, cpu_set::to_mask(&rest));
    if !word.is_empty() {
        found.boot(format!("{word}={list}"));
    }
}

/// CPUs that interrupts may go to: all that are not a plan's own, and that it does not keep from the scheduler.
fn rest(cx: &Context<'_>) -> CpuSet {
    let own = cx.own();
    let kept = |cpu: &u32| own.contains(cpu) || cx.plan.idle.contains(cpu) || cx.plan.isolated.contains(cpu);
    let rest: CpuSet = cx.machine.online().into_iter().filter(|cpu| !kept(cpu)).collect();
    if rest.is_empty() {
        cx.plan.housekeeping.clone()
    } else {
        rest
    }
}

/// An interrupt that comes to a busy core.
struct Coming {
    verdict: Verdict,
    place: String,
    got: String,
    path: String,
    rest: String,
}

/// Each interrupt that may come to a busy core. The table names what raises it.
fn each(cx: &Context<'_>, out: &mut Out) {
    const TABLE: &str = "/proc/interrupts";
    let names = match cx.roots.fact(TABLE) {
        Fact::Known(table) => interrupt_table::rows(&table),
        Fact::Absent => return out.not_applicable(TABLE, "absent"),
        Fact::Unreadable(why) => return out.unknown(TABLE, why),
    };
    if !names.iter().any(|row| row.is_numbered()) {
        return out.unknown(TABLE, "has no interrupts: a container may hide them");
    }
    let mut numbers: Vec<u32> = cx.roots.names("/proc/irq").iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    let online = cx.machine.online();
    let mut away = 0;
    let mut busiest = Vec::new();
    for number in numbers {
        let path = format!("/proc/irq/{number}/smp_affinity_list");
        // Where it goes; the other is where it may go. Both have to be looked at: with one CPU chosen of many the next one
        // may be another.
        let effective =
            cx.roots.fact(format!("/proc/irq/{number}/effective_affinity_list")).known().unwrap_or_default();
        let allowed = match cx.roots.fact(&path) {
            Fact::Known(allowed) => allowed,
            Fact::Absent => continue,
            Fact::Unreadable(why) => {
                out.unknown(&path, why);
                continue;
            }
        };
        // Where it went last; if it may not go there any more, the next one goes elsewhere.
        let may: CpuSet = cpu_set::from_list(&allowed);
        let follows = cpu_set::from_list(&effective).intersection(&may).next().is_none();
        let goes = if effective.is_empty() || follows { &allowed } else { &effective };
        // An interrupt that nothing raises is in no table.
        let Some(Row { name, counts, .. }) = names.iter().find(|row| row.key == number.to_string()) else { continue };
        let goes: CpuSet = cpu_set::from_list(goes).intersection(&online).copied().collect();
        let Some(busy) = cx.busy_in(&goes) else {
            away += 1;
            continue;
        };
        // What came to other cores that it may go to does not matter.
        let came: u64 = goes.intersection(&cx.own()).filter_map(|cpu| counts.get(cpu)).sum();
        // One that has never come may come.
        let verdict = if came > 0 { Verdict::Warn } else { Verdict::Noted };
        let place = format!("{path} ({name})");
        let got = format!("CPU {busy}, {came} times since boot");
        let rest = cpu_set::to_list(&rest(cx));
        busiest.push((came, name, Coming { verdict, place, got, path, rest }));
    }
    // What comes most stands first: a short report shows the first ones.
    busiest.sort_by_key(|(came, ..)| std::cmp::Reverse(*came));
    for (_, name, Coming { verdict, place, got, path, rest }) in busiest {
        if is_managed(name) {
            // It comes where somebody asked the disk for something.
            // A plan that leaves no core to itself must not send everything else away from one (`domain`).
            let word = match cx.plan.isolated.is_empty() {
                true => format!("isolcpus=managed_irq,{}", cpu_set::to_list(&cx.own())),
                false => format!("isolcpus=managed_irq,domain,{}", cpu_set::to_list(&cx.plan.isolated)),
            };
            out.found(verdict, &place, format!("{got}; its driver places it"), rest).boot(word);
        } else if name == "timer" {
            out.noted(&place, format!("{got}; the kernel places it"));
        } else {
            out.found(verdict, &place, got, rest.clone()).write(path, rest);
        }
    }
    if away > 0 || out.is_empty() {
        out.ok("/proc/irq", format!("{away} interrupts stay away from busy cores"));
    }
}

/// Whether the driver has the kernel place an interrupt, so that nobody else may (a write fails): queues of disks, each of
/// which belongs to some CPUs.
fn is_managed(name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // nvme0q1; the first queue is for administration, and is placed as others are.
    let nvme = name.strip_prefix("nvme").and_then(|rest| rest.split_once('q'));
    let nvme = nvme.is_some_and(|(disk, queue)| number(disk) && number(queue) && queue != "0");
    let virtio = name.strip_prefix("virtio").and_then(|rest| rest.split_once("-req."));
    let virtio = virtio.is_some_and(|(disk, queue)| number(disk) && number(queue));
    let adapters = ["megasas", "mpt3sas", "mpt2sas", "smartpqi"];
    nvme || virtio || adapters.iter().any(|adapter| name.starts_with(adapter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_of_disks_are_managed() {
        for (name, managed) in [
            ("nvme0q0", false),
            ("nvme0q12", true),
            ("nvme", false),
            ("virtio1-req.0", true),
            ("virtio0-input.0", false),
        ] {
            assert_eq!(is_managed(name), managed, "{name}");
        }
    }
}
