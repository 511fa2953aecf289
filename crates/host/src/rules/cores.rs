//! Which cores are kept for what.

use crate::{
    audit::{Asked, Context, Group, Out, Rule, Verdict},
    cpu_set::{self, CpuSet},
};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "cores.isolated",
        group: Group::Cores,
        why: "the scheduler runs other threads on a polling core, which loses frames meanwhile",
        effect: Some("longest gap of an isolated core 18 us, of others 9.5 to 17 ms (rigtorp.se, low-latency guide)"),
        asked: &[Asked::TwoVm("4.1.1"), Asked::TwoVm("4.2.1"), Asked::LowLatency("Kernel Boot Configuration"), Asked::Onp("3.3"), Asked::Onp("9.2"), Asked::Dpdk, Asked::Tuned, Asked::Csit],
        bare_metal: false,
        check: |cx, out| {
            let effective = cx.roots.fact("/sys/devices/system/cpu/isolated");
            cx.boot_cpus(out, Verdict::Bad, "isolcpus", |list| format!("managed_irq,domain,{list}"), Some(effective));
        },
    },
    Rule {
        id: "cores.tickless",
        group: Group::Cores,
        why: "the timer interrupts a polling core 100 to 1000 times a second, for 1 to 5 us each",
        effect: None,
        asked: &[Asked::TwoVm("4.1.1"), Asked::LowLatency("Kernel Build Configuration"), Asked::LowLatency("Kernel Boot Configuration"), Asked::Dpdk, Asked::Tuned, Asked::Csit],
        bare_metal: false,
        check: |cx, out| {
            let effective = cx.roots.fact("/sys/devices/system/cpu/nohz_full").map(|text| text.replace("(null)", ""));
            cx.boot_cpus(out, Verdict::Warn, "nohz_full", str::to_owned, Some(effective));
        },
    },
    Rule {
        id: "cores.rcu_callbacks",
        group: Group::Cores,
        why: "the kernel frees memory on a polling core",
        effect: None,
        asked: &[Asked::TwoVm("4.1.1"), Asked::LowLatency("Kernel Boot Configuration"), Asked::Dpdk, Asked::Tuned, Asked::Csit],
        bare_metal: false,
        check: |cx, out| {
            // nohz_full includes it.
            let tickless = cx.roots.fact("/sys/devices/system/cpu/nohz_full").known().unwrap_or_default();
            let own = cx.own();
            if !own.is_empty() && own.is_subset(&cpu_set::from_list(&tickless)) {
                return out.ok("", "nohz_full includes it");
            }
            cx.boot_cpus(out, Verdict::Warn, "rcu_nocbs", str::to_owned, None);
        },
    },
    Rule {
        id: "cores.rcu_polled",
        group: Group::Cores,
        why: "a polling core wakes the thread that frees memory for it",
        effect: None,
        asked: &[Asked::Tuned],
        bare_metal: false,
        check: |cx, out| word(cx, out, "rcu_nocb_poll", "rcu_nocb_poll", "rcu_nocbs"),
    },
    Rule {
        id: "cores.threads",
        group: Group::Cores,
        why: "two threads of a core share its execution units: work on one slows the other",
        effect: Some("OVS-DPDK gains 12 to 19 % at 64 B from Hyper-Threading, the path through a VM 33 to 61 %, and its mean latency doubles from 25.5 to 50.8 us (ONP 2.1)"),
        asked: &[Asked::TwoVm("Appendix A"), Asked::LowLatency("BIOS Configuration"), Asked::Onp("3.3"), Asked::FlowLogger],
        bare_metal: true,
        check: threads,
    },
    Rule {
        id: "cores.allowed",
        group: Group::Cores,
        why: "this process may not run on a core of the plan",
        effect: None,
        asked: &[Asked::Csit],
        bare_metal: false,
        check: |cx, out| {
            let missing: CpuSet = cx.busy().difference(&cx.machine.allowed).copied().collect();
            match (cx.machine.allowed.is_empty(), missing.is_empty()) {
                (true, _) => out.unknown("/proc/self/status", "does not say which CPUs are allowed"),
                (_, true) => out.ok("", cpu_set::to_list(&cx.machine.allowed)),
                _ => {
                    let want = cpu_set::to_list(cx.busy());
                    out.found(Verdict::Bad, "", cpu_set::to_list(&cx.machine.allowed), want)
                        .hand("give this process's control group the cores: cpuset.cpus");
                }
            }
        },
    },
    Rule {
        id: "cores.node",
        group: Group::Cores,
        why: "a core far from the NIC reads each frame over the link between sockets",
        effect: Some("across nodes the rate falls from 50 to 25 % at once (the flow logger's document)"),
        asked: &[Asked::TwoVm("4.1.1"), Asked::TwoVm("4.1.5"), Asked::LowLatency("Hardware Configuration"), Asked::FlowLogger, Asked::Csit],
        bare_metal: false,
        check: |cx, out| {
            if cx.machine.nodes.len() < 2 {
                return out.not_applicable("", "one NUMA node");
            }
            let node = |cpu: u32| cx.machine.cpu(cpu).map(|cpu| cpu.node);
            let mut any = false;
            for nic in cx.plan_nics() {
                let Some(at) = nic.numa_node else {
                    out.unknown(&nic.address, "does not say its NUMA node");
                    continue;
                };
                any = true;
                if cx.machine.node(at).is_none_or(|node| node.cpus.is_empty()) {
                    out.noted(&nic.address, format!("node {at} has no cores: each core is far from it"));
                    continue;
                }
                let far: CpuSet = cx.busy().iter().copied().filter(|&cpu| node(cpu) != Some(at)).collect();
                if far.is_empty() {
                    out.ok(&nic.address, format!("node {at}"));
                } else {
                    let got = format!("CPU {} is on another node", cpu_set::to_list(&far));
                    // One that nobody named may be for other things.
                    let verdict = if cx.nics.is_empty() { Verdict::Warn } else { Verdict::Bad };
                    out.found(verdict, &nic.address, got, format!("cores of node {at}"))
                        .hand(format!("make a plan for it: linerate host plan --nic {}", nic.address));
                }
            }
            if !any {
                out.not_applicable("", "no NIC in the plan");
            }
        },
    },
    Rule {
        id: "cores.nodes",
        group: Group::Cores,
        why: "how memory is near to cores: sub-NUMA clusters, NPS, distances",
        effect: None,
        asked: &[Asked::TwoVm("Appendix A")],
        bare_metal: false,
        check: |cx, out| {
            for node in &cx.machine.nodes {
                let at = format!("/sys/devices/system/node/node{}/distance", node.number);
                let distance = cx.roots.fact(at).known().unwrap_or_else(|| "distance unknown".to_owned());
                let cpus = match node.cpus.is_empty() {
                    true => "no CPU".to_owned(),
                    false => format!("CPU {}", cpu_set::to_list(&node.cpus)),
                };
                out.noted(&format!("node {}", node.number), format!("{cpus}; {distance}"));
            }
        },
    },
];

/// A word that goes with another one: only where that one is.
fn word(cx: &Context<'_>, out: &mut Out, word: &str, boot: &str, with: &str) {
    match (cx.machine.boot.has(word), cx.machine.boot.value(with)) {
        (true, _) => out.ok("/proc/cmdline", word),
        (false, None) => out.not_applicable("/proc/cmdline", format!("only with {with}")),
        (false, Some(_)) => {
            out.found(Verdict::Warn, "/proc/cmdline", "absent", word).boot(boot);
        }
    }
}

fn threads(cx: &Context<'_>, out: &mut Out) {
    let online = cx.machine.online();
    let mut seen = CpuSet::new();
    for &cpu in cx.busy() {
        for thread in cx.machine.siblings(cpu).into_iter().filter(|thread| online.contains(thread)) {
            if !seen.insert(thread) {
                continue;
            }
            let place = format!("cpu {thread}");
            let file = format!("/sys/devices/system/cpu/cpu{thread}/online");
            let isolated = cx.roots.fact("/sys/devices/system/cpu/isolated").known().unwrap_or_default();
            if cx.busy().contains(&thread) {
                out.noted(&place, format!("the other thread of CPU {cpu}, busy too by the plan"));
            } else if cpu_set::from_list(&isolated).contains(&thread) {
                out.ok(&place, format!("the other thread of CPU {cpu}, isolated"));
            } else {
                let got = format!("the other thread of CPU {cpu}, used by anything");
                let there = cx.roots.is_there(&file);
                let found = out.found(Verdict::Warn, &place, got, "isolated, or off");
                match there {
                    true => found.write(file, "0"),
                    // One that cannot be switched off.
                    false => found.boot(format!("isolcpus=managed_irq,domain,{}", cpu_set::to_list(&cx.plan.isolated))),
                };
            }
        }
    }
    if seen.is_empty() {
        out.ok("", "no busy core has another thread that is on");
    }
}
