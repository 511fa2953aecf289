//! What KVM does with the virtual machines of this host. What is set inside of them is the lab's.

use crate::{
    audit::{Asked, Context, Group, Out, Rule, Verdict},
    journal::chosen,
    Fact,
};

const PARAMETERS: &str = "/sys/module/kvm/parameters";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "kvm.exits",
        group: Group::Kernel,
        why: "KVM takes a busy vCPU off its core: when the guest spins, and every five minutes for its clock",
        effect: None,
        asked: &[Asked::Tuned],
        bare_metal: false,
        check: |cx, out| {
            if !has_kvm(cx, out) {
                return;
            }
            // AMD has a filter of its own in the place of the gap.
            for (module, parameter) in [("kvm_intel", "ple_gap"), ("kvm_amd", "pause_filter_count")] {
                if cx.roots.is_there(format!("/sys/module/{module}")) {
                    parameter_of(cx, out, module, parameter, "0");
                }
            }
            parameter_of(cx, out, "kvm", "kvmclock_periodic_sync", "N");
        },
    },
    Rule {
        id: "kvm.memory_and_halt",
        group: Group::Kernel,
        why: "split pages cost a guest its hugepages, and a core that waits for a halted vCPU is not free for others",
        effect: None,
        asked: &[Asked::Tuned],
        bare_metal: false,
        check: |cx, out| {
            if has_kvm(cx, out) {
                cx.note(out, &format!("{PARAMETERS}/nx_huge_pages"));
                cx.note(out, &format!("{PARAMETERS}/halt_poll_ns"));
            }
        },
    },
];

fn has_kvm(cx: &Context<'_>, out: &mut Out) -> bool {
    let there = cx.roots.is_there("/sys/module/kvm");
    if !there {
        out.not_applicable("", "this kernel has no KVM");
    }
    there
}

/// A parameter that a module takes only when it is loaded. It matters where the plan has guests.
fn parameter_of(cx: &Context<'_>, out: &mut Out, module: &str, parameter: &str, want: &str) {
    let path = format!("/sys/module/{module}/parameters/{parameter}");
    match cx.roots.fact(&path) {
        Fact::Absent => out.not_applicable(&path, "absent"),
        Fact::Unreadable(why) => out.unknown(&path, why),
        Fact::Known(text) if chosen(&text) == want => out.ok(&path, want),
        Fact::Known(text) if cx.plan.guests.is_empty() => out.noted(&path, text),
        Fact::Known(text) => {
            out.found(Verdict::Warn, &path, text, want).hand(format!(
                "options {module} {parameter}={want} in a file below /etc/modprobe.d, then load the module again"
            ));
        }
    }
}
