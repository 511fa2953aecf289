//! What rules look at, and what many of them do in the same way.

use std::{cell::OnceCell, collections::BTreeSet};

use super::{finding::Verdict, out::Out};
use crate::{
    core_plan::CorePlan,
    cpu_set::{self, CpuSet},
    journal::chosen,
    machine::Machine,
    pci::PciInterface,
    processes, Fact, PciDevice, Roots,
};

/// What rules look at.
#[derive(Debug)]
pub struct Context<'a> {
    /// The machine's files.
    pub roots: &'a Roots,
    /// What it is made of.
    pub machine: &'a Machine,
    /// Which core does what.
    pub plan: &'a CorePlan,
    /// PCI addresses of the NICs that the plan is about; empty for all.
    pub nics: &'a [String],
    busy: CpuSet,
    programs: OnceCell<BTreeSet<String>>,
}

/// Programs that rules ask for.
const PROGRAMS: [&str; 15] = [
    "irqbalance",
    "firewalld",
    "NetworkManager",
    "dhclient",
    "dhcpcd",
    "tuned",
    "power-profiles-",
    "thermald",
    "ksmtuned",
    "ovs-vswitchd",
    "chronyd",
    "ntpd",
    "systemd-timesyn",
    "phc2sys",
    "ptp4l",
];

impl<'a> Context<'a> {
    /// A context.
    pub fn new(roots: &'a Roots, machine: &'a Machine, plan: &'a CorePlan, nics: &'a [String]) -> Self {
        Self { roots, machine, plan, nics, busy: plan.busy(), programs: OnceCell::new() }
    }

    /// CPUs that the plan keeps busy.
    pub fn busy(&self) -> &CpuSet {
        &self.busy
    }

    /// Busy CPUs that the operating system does not use as well: what can be kept free.
    pub fn own(&self) -> CpuSet {
        self.busy.difference(&self.plan.housekeeping).copied().collect()
    }

    /// CPUs of a list or of a mask that are busy, as a list for a person; `None` if there are none.
    pub fn busy_in(&self, cpus: &CpuSet) -> Option<String> {
        let both: CpuSet = cpus.intersection(&self.own()).copied().collect();
        (!both.is_empty()).then(|| cpu_set::to_list(&both))
    }

    /// Whether a program of this name runs. Names have at most 15 characters, as the kernel keeps them.
    pub fn runs(&self, name: &str) -> bool {
        self.programs.get_or_init(|| processes::running(self.roots, &PROGRAMS)).contains(name)
    }

    /// The NICs that the plan is about.
    pub fn plan_nics(&self) -> impl Iterator<Item = &'a PciDevice> + '_ {
        self.machine.nics.iter().filter(|nic| self.nics.is_empty() || self.nics.contains(&nic.address))
    }

    /// The kernel's interfaces of them.
    pub fn plan_interfaces(&self) -> impl Iterator<Item = (&'a PciDevice, &'a PciInterface)> + '_ {
        self.plan_nics().flat_map(|nic| nic.interfaces.iter().map(move |interface| (nic, interface)))
    }

    /// Looks at a file that should have one of some values, of which the first is the one to write.
    pub fn file(&self, out: &mut Out, wrong: Verdict, path: &str, wanted: &[&str]) {
        match self.roots.fact(path) {
            Fact::Absent => out.not_applicable(path, "absent"),
            Fact::Unreadable(why) => out.unknown(path, why),
            Fact::Known(text) => {
                let got = chosen(&text);
                let first = wanted.first().copied().unwrap_or_default();
                if wanted.contains(&got) {
                    out.ok(path, got);
                } else {
                    out.found(wrong, path, got, wanted.join(" or ")).write(path, first);
                }
            }
        }
    }

    /// Looks at a number that should be in a range; `write` is the value that mends it.
    pub fn number(&self, out: &mut Out, wrong: Verdict, path: &str, range: std::ops::RangeInclusive<i64>, write: &str) {
        match self.roots.fact(path) {
            Fact::Absent => out.not_applicable(path, "absent"),
            Fact::Unreadable(why) => out.unknown(path, why),
            Fact::Known(text) => match text.parse::<i64>() {
                Ok(number) if range.contains(&number) => out.ok(path, text),
                _ => {
                    let want = if range.start() == range.end() {
                        range.start().to_string()
                    } else {
                        format!("{} to {}", range.start(), range.end())
                    };
                    out.found(wrong, path, text, want).write(path, write);
                }
            },
        }
    }

    /// Keeps what files say, without a judgement.
    pub fn note(&self, out: &mut Out, path: &str) {
        match self.roots.fact(path) {
            Fact::Absent => out.not_applicable(path, "absent"),
            Fact::Unreadable(why) => out.unknown(path, why),
            Fact::Known(text) => out.noted(path, chosen(&text)),
        }
    }

    /// Looks at a file of each CPU that is busy.
    pub fn each_busy(&self, out: &mut Out, wrong: Verdict, file: &str, wanted: &[&str]) {
        for cpu in &self.busy {
            self.file(out, wrong, &format!("/sys/devices/system/cpu/cpu{cpu}/{file}"), wanted);
        }
    }

    /// Looks at CPUs that should all be busy ones' own: `isolcpus` and its like. `effective` is what the kernel made of the
    /// word, where it says.
    pub fn boot_cpus(
        &self,
        out: &mut Out,
        wrong: Verdict,
        word: &str,
        value: impl Fn(&str) -> String,
        effective: Option<Fact<String>>,
    ) {
        let wanted = &self.plan.isolated;
        if wanted.is_empty() {
            out.not_applicable("", "the plan leaves no core to itself");
            return;
        }
        let list = cpu_set::to_list(wanted);
        let last = self.machine.online().last().copied().unwrap_or(0);
        let boot = self.machine.boot.value(word).map(|text| cpu_set::from_list(&plain_list(text, last)));
        let asked = boot.unwrap_or_default();
        let got = match effective {
            Some(Fact::Known(text)) => cpu_set::from_list(&text),
            // The kernel was not built for it.
            Some(Fact::Absent) => {
                out.not_applicable("", "this kernel does not have it");
                return;
            }
            Some(Fact::Unreadable(why)) => return out.unknown("", why),
            None => asked.clone(),
        };
        let missing: CpuSet = self.own().difference(&got).copied().collect();
        if missing.is_empty() {
            out.ok("", format!("{word}={}", cpu_set::to_list(&got)));
            return;
        }
        let shown = if got.is_empty() { "no CPU".to_owned() } else { cpu_set::to_list(&got) };
        // Of two lists the kernel takes the first ("must match"), and ours would stand behind.
        let others: Vec<String> = match word {
            "rcu_nocbs" => Vec::new(),
            _ => {
                let of = |text: &&str| cpu_set::from_list(&plain_list(text, last)) != *wanted;
                self.machine.boot.values(word).filter(of).map(str::to_owned).collect()
            }
        };
        let ignored = missing.iter().all(|cpu| asked.contains(cpu));
        let found = out.found(wrong, "", shown, list.clone());
        found.outcome = ignored && !asked.is_empty() && others.is_empty();
        for other in others {
            found.hand(format!("take {word}={other} out of the boot line: of two the kernel takes the first"));
        }
        found.boot(format!("{word}={}", value(&list)));
    }
}

/// The list in `managed_irq,domain,1-3`. `N` is the last CPU, and `all` is all of them.
fn plain_list(text: &str, last: u32) -> String {
    let part = |part: &str| match part {
        "all" => Some(format!("0-{last}")),
        "N" => Some(last.to_string()),
        _ if part.starts_with(|c: char| c.is_ascii_digit()) => Some(part.replace("-N", &format!("-{last}"))),
        _ => None,
    };
    text.split(',').filter_map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_value_and_the_list_of_a_word() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("0"), "0");
        assert_eq!(chosen("a [b"), "a [b");
        assert_eq!(plain_list("managed_irq,domain,1-3,5", 7), "1-3,5");
        assert_eq!(plain_list("nohz", 7), "");
        assert_eq!(
            (plain_list("2-N", 7), plain_list("all", 7), plain_list("1,N", 7)),
            ("2-7".into(), "0-7".into(), "1,7".into())
        );
    }
}
