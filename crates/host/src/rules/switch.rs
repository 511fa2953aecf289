//! A switch of the machine's own that runs here: Open vSwitch with DPDK. One of a lab is checked by the lab.

use crate::{
    audit::{Asked, Context, Group, Mend, Out, Rule, Verdict},
    cpu_set::{self, CpuSet},
    Fact,
};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "switch.polling_cores",
        group: Group::Switch,
        why: "polling threads of the switch on cores of others, or on the switch's own, wait for each other",
        effect: None,
        asked: &[Asked::TwoVm("4.1.1"), Asked::TwoVm("4.1.4"), Asked::Onp("9.4")],
        bare_metal: false,
        check: |cx, out| {
            let Some(mask) = configured(cx, out, "pmd-cpu-mask") else { return };
            let Some(pmds) = cpu_set::from_mask(&mask) else {
                return out.noted("pmd-cpu-mask", "not set: one polling thread a NUMA node, on a core of its choice");
            };
            let shown = cpu_set::to_list(&pmds);
            let main =
                configured(cx, out, "dpdk-lcore-mask").and_then(|mask| cpu_set::from_mask(&mask)).unwrap_or_default();
            let both: CpuSet = pmds.intersection(&main).copied().collect();
            if !both.is_empty() {
                out.found(
                    Verdict::Bad,
                    "dpdk-lcore-mask",
                    format!("CPU {} is a polling thread's too", cpu_set::to_list(&both)),
                    "other cores",
                )
                .mended_by(set("dpdk-lcore-mask", &cpu_set::to_hex(&cx.plan.housekeeping)));
            }
            let isolated =
                cpu_set::from_list(&cx.roots.fact("/sys/devices/system/cpu/isolated").known().unwrap_or_default());
            let used: CpuSet = pmds.difference(&isolated).copied().collect();
            match used.is_empty() {
                true => out.ok("pmd-cpu-mask", format!("CPU {shown}, isolated")),
                false => {
                    out.found(
                        Verdict::Warn,
                        "pmd-cpu-mask",
                        format!("CPU {} is anybody's", cpu_set::to_list(&used)),
                        "isolated cores",
                    )
                    .boot(format!("isolcpus=managed_irq,domain,{shown}"));
                }
            }
            if !cx.plan.pmds.is_empty() && cx.plan.pmds != pmds {
                out.found(
                    Verdict::Warn,
                    "pmd-cpu-mask",
                    format!("CPU {shown}"),
                    format!("CPU {}", cpu_set::to_list(&cx.plan.pmds)),
                )
                .mended_by(set("pmd-cpu-mask", &cpu_set::to_hex(&cx.plan.pmds)));
            }
        },
    },
    Rule {
        id: "switch.queues",
        group: Group::Switch,
        why: "a queue that is not pinned moves between polling threads, or is not polled at all",
        effect: None,
        asked: &[Asked::TwoVm("4.1.3"), Asked::TwoVm("4.1.4"), Asked::TwoVm("4.2.2")],
        bare_metal: false,
        check: |cx, out| {
            if !cx.runs("ovs-vswitchd") {
                return out.not_applicable("", "Open vSwitch does not run");
            }
            match cx.roots.command("ovs-appctl", &["dpif-netdev/pmd-rxq-show"]) {
                Fact::Absent => out.not_applicable("", "no polling threads"),
                Fact::Unreadable(why) => out.unknown("", why),
                Fact::Known(text) => {
                    let threads = text.matches("pmd thread").count();
                    let own = text.matches("isolated : true").count();
                    if threads == own {
                        out.ok("pmd-rxq-show", format!("{threads} polling threads, all with queues of their own"));
                    } else {
                        out.noted(
                            "pmd-rxq-show",
                            format!("{own} of {threads} polling threads have queues of their own (isolated : true)"),
                        );
                    }
                }
            }
        },
    },
    Rule {
        id: "switch.caches",
        group: Group::Switch,
        why: "how flows are looked up, and how long an idle one is kept",
        effect: None,
        asked: &[Asked::TwoVm("5"), Asked::Onp("9.1")],
        bare_metal: false,
        check: |cx, out| {
            for key in ["emc-insert-inv-prob", "smc-enable", "max-idle", "pmd-auto-lb", "pmd-sleep-max"] {
                let Some(value) = configured(cx, out, key) else { return };
                out.noted(key, if value.is_empty() { "not set".to_owned() } else { value });
            }
        },
    },
];

/// A value of `other_config`, empty if it is not set; `None` if the switch cannot be asked, which is told.
fn configured(cx: &Context<'_>, out: &mut Out, key: &str) -> Option<String> {
    if !cx.runs("ovs-vswitchd") {
        out.not_applicable("", "Open vSwitch does not run");
        return None;
    }
    match cx.roots.command(
        "ovs-vsctl",
        &["--timeout=2", "--if-exists", "get", "Open_vSwitch", ".", &format!("other_config:{key}")],
    ) {
        Fact::Known(value) => Some(value.trim().trim_matches('"').to_owned()),
        Fact::Absent => {
            out.unknown(key, "needs the program ovs-vsctl, and the switch's database");
            None
        }
        Fact::Unreadable(why) => {
            out.unknown(key, why);
            None
        }
    }
}

fn set(key: &str, value: &str) -> Mend {
    Mend::Command { command: format!("ovs-vsctl set Open_vSwitch . other_config:{key}=0x{value}") }
}
