//! Memory and hugepages.

use crate::{
    audit::{Asked, Context, Group, Out, Rule, Verdict},
    Fact,
};

/// Least memory in hugepages, MiB, that a data plane and a tester need on the node of their NIC.
const NEEDED_MIB: u64 = 1024;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "memory.hugepages",
        group: Group::Memory,
        why: "frames in small pages cost misses of the address cache; hugepages far from the NIC are read over the link between sockets",
        effect: None,
        asked: &[Asked::TwoVm("4.1.1"), Asked::TwoVm("4.1.2"), Asked::TwoVm("4.2.1"), Asked::Onp("3.3"), Asked::Onp("9.3"), Asked::Onp("10.2"), Asked::Dpdk],
        bare_metal: false,
        check: hugepages,
    },
    Rule {
        id: "memory.large_hugepages",
        group: Group::Memory,
        why: "pages of 1 GiB cost fewest misses of the address cache; they are to be had at boot only",
        effect: None,
        asked: &[Asked::TwoVm("4.1.1"), Asked::TwoVm("4.1.2"), Asked::TwoVm("4.1.5"), Asked::Onp("3.3"), Asked::Onp("9.3")],
        bare_metal: false,
        check: |cx, out| {
            if !cx.machine.has_flag("pdpe1gb") {
                return out.not_applicable("/proc/cpuinfo", "the processor has no pages of 1 GiB (pdpe1gb)");
            }
            let total: u64 = cx.machine.nodes.iter().filter_map(|node| Some(node.hugepages.get(&1_048_576)?.total)).sum();
            let asked = cx.machine.boot.has("hugepagesz=1G");
            match total {
                0 if asked => {
                    let found = out.found(Verdict::Warn, "/proc/cmdline", "asked for, and none is there", "hugepagesz=1G hugepages=N");
                    found.outcome = true;
                    found.hand("look whether memory is enough: dmesg | grep -i huge");
                }
                0 => out.noted("", "none; hugepagesz=1G hugepages=N in the boot line"),
                _ => out.ok("", format!("{total} pages of 1 GiB")),
            }
        },
    },
    Rule {
        id: "memory.mounts",
        group: Group::Memory,
        why: "a data plane finds hugepages where they are mounted",
        effect: None,
        asked: &[Asked::TwoVm("4.1.2"), Asked::Onp("9.3")],
        bare_metal: false,
        check: |cx, out| {
            let mounts = cx.roots.fact("/proc/mounts").known().unwrap_or_default();
            let of = |line: &str| {
                let mut words = line.split_ascii_whitespace().skip(1);
                let at = words.next()?.to_owned();
                (words.next()? == "hugetlbfs").then_some(at)
            };
            let places: Vec<String> = mounts.lines().filter_map(of).collect();
            let there = cx.machine.nodes.iter().any(|node| node.hugepages.values().any(|pages| pages.total > 0));
            match (places.is_empty(), there) {
                (false, _) => out.ok("/proc/mounts", places.join(", ")),
                (true, false) => out.not_applicable("/proc/mounts", "no hugepages"),
                (true, true) => {
                    out.found(Verdict::Warn, "/proc/mounts", "no hugetlbfs", "mounted")
                        .mended_by(crate::audit::Mend::Command { command: "mount -t hugetlbfs nodev /dev/hugepages".to_owned() });
                }
            }
        },
    },
    Rule {
        id: "memory.transparent_hugepages",
        group: Group::Memory,
        why: "the kernel joins pages behind a program's back: it stops for it, and every core forgets addresses (row TLB of /proc/interrupts)",
        effect: None,
        asked: &[Asked::Tuned, Asked::Csit],
        bare_metal: false,
        check: |cx, out| {
            const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
            cx.file(out, Verdict::Warn, ENABLED, &["never", "madvise"]);
            if cx.roots.fact(ENABLED).known().is_some_and(|text| text.contains("[never]")) {
                return;
            }
            cx.file(out, Verdict::Warn, "/sys/kernel/mm/transparent_hugepage/defrag", &["never", "madvise", "defer", "defer+madvise"]);
        },
    },
    Rule {
        id: "memory.node_balancing",
        group: Group::Memory,
        why: "the kernel takes pages away from pinned programs to see who uses them",
        effect: None,
        asked: &[Asked::Tuned, Asked::Csit],
        bare_metal: false,
        check: |cx, out| cx.number(out, Verdict::Warn, "/proc/sys/kernel/numa_balancing", 0..=0, "0"),
    },
    Rule {
        id: "memory.same_pages",
        group: Group::Memory,
        why: "the kernel compares the pages of virtual machines, and joins those that are equal",
        effect: None,
        asked: &[Asked::TwoVm("4.1.2"), Asked::Tuned],
        bare_metal: false,
        check: |cx, out| cx.file(out, Verdict::Warn, "/sys/kernel/mm/ksm/run", &["0", "2"]),
    },
    Rule {
        id: "memory.swap",
        group: Group::Memory,
        why: "memory that was written to a disk takes milliseconds to come back",
        effect: None,
        asked: &[Asked::Tuned, Asked::Csit],
        bare_metal: false,
        check: |cx, out| {
            match cx.roots.fact("/proc/swaps") {
                Fact::Unreadable(why) => out.unknown("/proc/swaps", why),
                Fact::Absent => out.not_applicable("/proc/swaps", "this kernel does not swap"),
                // Its first line is a head.
                Fact::Known(swaps) if swaps.lines().count() <= 1 => out.ok("/proc/swaps", "none"),
                Fact::Known(_) => cx.number(out, Verdict::Warn, "/proc/sys/vm/swappiness", 0..=10, "10"),
            }
        },
    },
    Rule {
        id: "memory.compaction",
        group: Group::Memory,
        why: "the kernel moves pages to make room, also locked ones",
        effect: None,
        asked: &[Asked::Tuned],
        bare_metal: false,
        check: |cx, out| {
            cx.number(out, Verdict::Warn, "/proc/sys/vm/compaction_proactiveness", 0..=0, "0");
            cx.number(out, Verdict::Warn, "/proc/sys/vm/compact_unevictable_allowed", 0..=0, "0");
        },
    },
];

/// Whether the node of the busy cores has enough free hugepages of any size.
fn hugepages(cx: &Context<'_>, out: &mut Out) {
    let node = cx.plan.node;
    let Some(here) = cx.machine.node(node) else { return out.unknown("", format!("no NUMA node {node}")) };
    if here.hugepages.is_empty() {
        return out.not_applicable("", "this kernel has none");
    }
    let mib = |count: &dyn Fn(&crate::machine::Hugepages) -> u64| {
        here.hugepages.iter().map(|(kib, pages)| kib * count(pages) / 1024).sum::<u64>()
    };
    let (total, free) = (mib(&|pages| pages.total), mib(&|pages| pages.free));
    let place = format!("node {node}");
    let got = format!("{total} MiB, {free} free");
    if free >= NEEDED_MIB {
        return out.ok(&place, got);
    }
    // Not all of it is ours: what is missing is added to what is there of this size, whoever has it.
    let small = here.hugepages.get(&2048).copied().unwrap_or_default();
    let pages = small.total + (NEEDED_MIB - free).div_ceil(2);
    let path = match cx.machine.nodes.len() {
        1 => "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages".to_owned(),
        _ => format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages"),
    };
    let verdict = if total == 0 && cx.machine.nodes.len() > 1 { Verdict::Bad } else { Verdict::Warn };
    let found = out.found(verdict, &place, got, format!("{NEEDED_MIB} MiB free"));
    match (here.hugepages.get(&2048), cx.roots.fact(&path)) {
        (Some(_), Fact::Known(_)) => {
            found.write(path, pages.to_string());
        }
        _ => {
            found.boot(format!("hugepagesz=1G hugepages={}", NEEDED_MIB.div_ceil(1024)));
        }
    }
}
