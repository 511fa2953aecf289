//! Interrupts that come to polling cores.

use crate::{
    audit::{Asked, Context, Group, Out, Rule, Verdict},
    cpu_set::{self, CpuSet},
    Fact,
};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "interrupts.new",
        group: Group::Interrupts,
        why: "where interrupts of devices go that are opened from now on",
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
            let told = cx.roots.fact("/etc/default/irqbalance").known().unwrap_or_default();
            let banned = told.lines().find_map(|line| line.trim().strip_prefix("IRQBALANCE_BANNED_CPULIST="));
            let banned = cpu_set::from_list(banned.unwrap_or_default().trim_matches('"'));
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
        why: "timers move to a core that is busy",
        effect: None,
        asked: &[Asked::Tuned],
        bare_metal: false,
        check: |cx, out| cx.number(out, Verdict::Warn, "/proc/sys/kernel/timer_migration", 0..=0, "0"),
    },
];

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

/// CPUs that interrupts may go to: all that are not a plan's own.
fn rest(cx: &Context<'_>) -> CpuSet {
    let own: CpuSet = cx.own().union(&cx.plan.idle).copied().collect();
    let rest: CpuSet = cx.machine.online().difference(&own).copied().collect();
    if rest.is_empty() {
        cx.plan.housekeeping.clone()
    } else {
        rest
    }
}

/// Each interrupt that may come to a busy core. The table names what raises it.
fn each(cx: &Context<'_>, out: &mut Out) {
    let names = names(&cx.roots.fact("/proc/interrupts").known().unwrap_or_default());
    let mut numbers: Vec<u32> = cx.roots.names("/proc/irq").iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    let online = cx.machine.online();
    let mut away = 0;
    for number in numbers {
        let path = format!("/proc/irq/{number}/smp_affinity_list");
        // Where it goes; the other is where it may go. Both have to be looked at: with one CPU chosen of many the next one
        // may be another.
        let effective =
            cx.roots.fact(format!("/proc/irq/{number}/effective_affinity_list")).known().unwrap_or_default();
        let allowed = cx.roots.fact(&path).known().unwrap_or_default();
        let goes = if effective.is_empty() { &allowed } else { &effective };
        // An interrupt that nothing raises is in no table.
        let Some((name, counts)) = names.iter().find(|(n, ..)| *n == number).map(|(_, name, counts)| (name, counts))
        else {
            continue;
        };
        let goes: CpuSet = cpu_set::from_list(goes).intersection(&online).copied().collect();
        let Some(busy) = cx.busy_in(&goes) else {
            away += 1;
            continue;
        };
        let came: u64 = goes.iter().filter_map(|&cpu| counts.get(&cpu)).sum();
        // One that has never come may come.
        let verdict = if came > 0 { Verdict::Warn } else { Verdict::Noted };
        let rest = cpu_set::to_list(&rest(cx));
        out.found(verdict, &format!("{path} ({name})"), format!("CPU {busy}, {came} times since boot"), rest.clone())
            .write(path, rest);
    }
    if away > 0 {
        out.ok("/proc/irq", format!("{away} interrupts stay away from busy cores"));
    }
}

type Row = (u32, String, std::collections::BTreeMap<u32, u64>);

/// Number, name, and how often each came to each CPU, of the interrupts in `/proc/interrupts` that have a number.
fn names(table: &str) -> Vec<Row> {
    let mut lines = table.lines();
    let cpus: Vec<u32> = lines
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|head| head.strip_prefix("CPU")?.parse().ok())
        .collect();
    let row = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let number = words.next()?.strip_suffix(':')?.parse().ok()?;
        let counts = cpus.iter().filter_map(|&cpu| Some((cpu, words.next()?.parse().ok()?))).collect();
        Some((number, words.next_back().unwrap_or("?").to_owned(), counts))
    };
    lines.filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_interrupts() {
        let rows = names("     CPU0   CPU2\n  4:    1   7  IR-IO-APIC 4-edge ttyS0\nLOC:  5 6 Local timer\n 26: 0 3 PCI-MSI 1-edge eth0-rx-0\n");
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[1].0, rows[1].1.as_str(), rows[1].2[&2]), (26, "eth0-rx-0", 3));
        assert!(names("").is_empty());
    }
}
