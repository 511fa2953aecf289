//! Findings as text: the worst first, each with what it costs and what mends it.

use std::collections::{BTreeMap, BTreeSet};

use host::{
    audit::{Finding, Mend, Verdict},
    core_plan::CorePlan,
    machine::Machine,
    outcome::Outcome,
};
use serde::Serialize;

use crate::{
    style::{Paint, Style},
    text,
};

/// Places shown of findings that differ in nothing but where they are.
const PLACES: usize = 3;
/// Columns before the text of a line.
const INDENT: &str = "         ";

/// An audit, as it is written as JSON.
#[derive(Debug, Serialize)]
pub struct Audit<'a> {
    /// 1.
    pub version: u32,
    /// The kernel's release.
    pub kernel: &'a str,
    /// Model of the CPU.
    pub cpu_model: &'a str,
    /// Vendor of the hypervisor or machine, if it is a virtual one.
    pub virtual_machine: Option<&'a str>,
    /// Which core does what.
    pub cores: &'a CorePlan,
    /// How many findings of each verdict.
    pub counts: BTreeMap<&'static str, usize>,
    /// All findings.
    #[serde(serialize_with = "with_its_way")]
    pub findings: &'a [Finding],
    /// What came of the settings, if that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'a Outcome>,
    /// Flags of `host plan` for the same cores.
    #[serde(skip)]
    pub flags: String,
    /// A plan is applied already: it is taken back before another one.
    #[serde(skip)]
    pub applied: bool,
    /// What was measured here of open findings, by their ids.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub measured: BTreeMap<String, String>,
}

impl<'a> Audit<'a> {
    /// An audit of a machine.
    pub fn new(machine: &'a Machine, cores: &'a CorePlan, findings: &'a [Finding]) -> Self {
        let mut counts = BTreeMap::new();
        findings.iter().for_each(|finding| *counts.entry(finding.verdict.word()).or_default() += 1);
        Self {
            version: 1,
            kernel: &machine.kernel,
            cpu_model: &machine.cpu_model,
            virtual_machine: machine.virtual_machine.as_deref(),
            cores,
            counts,
            findings,
            outcome: None,
            flags: format!("--for {}", cores.purpose.name()),
            applied: false,
            measured: BTreeMap::new(),
        }
    }

    /// The ids of open findings, each once.
    pub fn open_ids(&self) -> impl Iterator<Item = &'a str> {
        let ids: BTreeSet<&str> = self.findings.iter().filter(|f| f.is_open()).map(|f| f.id.as_str()).collect();
        ids.into_iter()
    }

    /// As JSON, with a newline at its end.
    ///
    /// # Errors
    ///
    /// As the serialiser says.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

/// A finding with what makes its mend last, what takes it back, and whether it needs a reboot.
#[derive(Serialize)]
struct WithItsWay<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    persist: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    revert: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    needs_reboot: Option<bool>,
}

fn with_its_way<S: serde::Serializer>(findings: &&[Finding], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(findings.iter().map(|finding| WithItsWay {
        finding,
        persist: each(finding, Mend::persist),
        revert: each(finding, Mend::revert),
        needs_reboot: (!finding.mend.is_empty()).then(|| finding.mend.iter().any(Mend::needs_reboot)),
    }))
}

/// What is said of each mend, once.
fn each(finding: &Finding, of: fn(&Mend) -> Option<String>) -> Vec<String> {
    let mut all: Vec<String> = finding.mend.iter().filter_map(of).collect();
    all.dedup();
    all
}

/// An audit as text. `all`: also what is as it should be, kept, or not there.
pub fn render(audit: &Audit<'_>, all: bool, style: &Style) -> String {
    let mut out = format!("{}\n", title(audit));
    let mut shown: Vec<&Finding> = audit.findings.iter().filter(|finding| all || finding.is_open()).collect();
    shown.sort_by_key(|finding| finding.verdict);
    let mut rest = shown.as_slice();
    while let Some(first) = rest.first() {
        let alike = rest.iter().take_while(|finding| is_alike(finding, first)).count();
        let (now, later) = rest.split_at(alike);
        out += &one(now, audit.measured.get(&first.id), style);
        rest = later;
    }
    out + &conclusion(audit, all)
}

fn is_alike(a: &Finding, b: &Finding) -> bool {
    a.id == b.id && a.verdict == b.verdict
}

fn title(audit: &Audit<'_>) -> String {
    let virtual_machine = audit.virtual_machine.map(|vendor| format!(", virtual ({})", text::clean(vendor)));
    let roles: Vec<String> =
        audit.cores.roles().iter().map(|(role, cpus)| format!("{role} {}", host::cpu_set::to_list(cpus))).collect();
    let shared = if audit.cores.shared { ", too few to keep one free" } else { "" };
    format!(
        "{}{}, Linux {}\nfor {}: CPU {}{shared}\n",
        text::clean(audit.cpu_model),
        virtual_machine.unwrap_or_default(),
        text::clean(audit.kernel),
        audit.cores.purpose.name(),
        roles.join("; ")
    )
}

fn paint(verdict: Verdict) -> Paint {
    match verdict {
        Verdict::Bad => Paint::Bad,
        Verdict::Warn => Paint::Warn,
        Verdict::Ok => Paint::Good,
        Verdict::Unknown | Verdict::Noted | Verdict::NotApplicable => Paint::Plain,
    }
}

/// Findings of one rule.
fn one(findings: &[&Finding], measured: Option<&String>, style: &Style) -> String {
    let Some(first) = findings.first() else { return String::new() };
    let word = style.paint(paint(first.verdict), &format!("{:<7}", first.verdict.word()));
    let mut out = format!("{word}  {}\n", first.id);
    for finding in findings.iter().take(PLACES) {
        let place = if finding.place.is_empty() { String::new() } else { format!("{}: ", text::clean(&finding.place)) };
        let want =
            if finding.want.is_empty() { String::new() } else { format!("; wanted: {}", text::clean(&finding.want)) };
        out += &wrapped(&format!("{place}{}{want}", text::clean(&finding.got)), style);
    }
    if findings.len() > PLACES {
        out += &format!("{INDENT}and {} more\n", findings.len() - PLACES);
    }
    if first.is_open() {
        let outcome = if first.outcome { "the setting is right and has no effect: " } else { "" };
        out += &wrapped(
            &format!(
                "costs: {outcome}{}{}",
                first.why,
                first.effect.as_ref().map(|effect| format!("; {effect}")).unwrap_or_default()
            ),
            style,
        );
        if let Some(measured) = measured {
            out += &wrapped(&format!("here:  {measured}"), style);
        }
        let mut mends: Vec<String> =
            findings.iter().flat_map(|finding| finding.mend.iter().map(host::audit::Mend::text)).collect();
        mends.dedup();
        let more = mends.len().saturating_sub(PLACES);
        mends.truncate(PLACES);
        for mend in mends {
            out += &wrapped(&format!("mend:  {mend}"), style);
        }
        if more > 0 {
            out += &format!("{INDENT}and {more} more: linerate host plan --format shell\n");
        }
    }
    out
}

fn wrapped(line: &str, style: &Style) -> String {
    let width = style.width.saturating_sub(INDENT.len()).max(40);
    let mut out = String::new();
    let mut now = String::new();
    for word in line.split(' ') {
        if !now.is_empty() && now.chars().count() + 1 + word.chars().count() > width {
            out += &format!("{INDENT}{now}\n");
            now = "       ".to_owned();
        } else if !now.is_empty() {
            now.push(' ');
        }
        now += word;
    }
    out + &format!("{INDENT}{now}\n")
}

fn conclusion(audit: &Audit<'_>, all: bool) -> String {
    let count = |verdict: Verdict| audit.counts.get(verdict.word()).copied().unwrap_or(0);
    let parts: Vec<String> =
        [Verdict::Bad, Verdict::Warn, Verdict::Unknown, Verdict::Ok, Verdict::Noted, Verdict::NotApplicable]
            .into_iter()
            .filter(|&verdict| count(verdict) > 0)
            .map(|verdict| format!("{} {}", count(verdict), verdict.word()))
            .collect();
    let hint = if all { "" } else { " (all of them: --all)" };
    let mends = audit.findings.iter().any(|finding| finding.is_open() && !finding.mend.is_empty());
    let open = || audit.findings.iter().filter(|finding| finding.is_open()).flat_map(|finding| &finding.mend);
    let at_once = open().any(|mend| matches!(mend, Mend::Write { .. } | Mend::Stop { .. }));
    let next = if mends && audit.applied && !at_once {
        // The same plan again would change what is changed already.
        match open().any(|mend| matches!(mend, Mend::Boot { .. })) {
            true => format!(
                "\na plan is applied; what is left takes a boot: linerate host plan {} --format grub",
                audit.flags
            ),
            false => "\na plan is applied; what is left is for you to do, as the findings say".to_owned(),
        }
    } else if mends {
        // Of a recording, the plan is for the machine that was recorded.
        let first = if audit.applied { "a plan is applied: sudo linerate host revert; " } else { "" };
        let there = if audit.flags.contains("--root ") { "there: " } else { "" };
        format!(
            "\nmend them: {first}linerate host plan {} --out plan.toml; {there}sudo linerate host apply --plan plan.toml",
            audit.flags
        )
    } else {
        String::new()
    };
    format!("\n{}{hint}{next}\n", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use host::{
        audit::{Group, Out},
        Roots,
    };

    use super::*;

    #[test]
    fn what_is_left_behind_an_applied_plan_is_not_applied_again() {
        let last = |change: fn(&mut Finding)| {
            let mut out = Out::new("a.b", Group::Kernel, "why", None);
            change(out.found(Verdict::Warn, "x", "1", "0"));
            let (findings, cores, machine) =
                (out.into_findings(), CorePlan::default(), Machine::read(&Roots::at("/nowhere")));
            let audit = Audit { applied: true, ..Audit::new(&machine, &cores, &findings) };
            conclusion(&audit, true).trim().lines().last().unwrap().to_owned()
        };
        let all = [
            last(|finding| _ = finding.write("/proc/sys/vm/a", "0")),
            last(|finding| _ = finding.boot("a=1")),
            last(|finding| _ = finding.hand("another slot")),
        ];
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn a_finding_says_what_makes_its_mend_last_and_what_takes_it_back() {
        let mut out = Out::new("a.b", Group::Kernel, "why", None);
        out.found(Verdict::Warn, "x", "1", "0").write("/proc/sys/vm/a", "0").boot("a=1");
        out.found(Verdict::Warn, "y", "1", "0").write("/proc/irq/24/smp_affinity_list", "0");
        out.found(Verdict::Ok, "z", "1", "1");
        let (findings, cores) = (out.into_findings(), CorePlan::default());
        let machine = Machine::read(&Roots::at("/nowhere"));
        let text = Audit::new(&machine, &cores, &findings).json().unwrap();
        let found = serde_json::from_str::<serde_json::Value>(&text).unwrap()["findings"].take();
        let lines: Vec<String> = (0..3)
            .flat_map(|n| ["persist", "revert", "needs_reboot"].map(|key| format!("{n} {key}: {}", found[n][key])))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        0 persist: ["vm.a = 0 in /etc/sysctl.d","a=1 in GRUB_CMDLINE_LINUX_DEFAULT, then update-grub"]
        0 revert: ["linerate host revert","boot without a=1"]
        0 needs_reboot: true
        1 persist: null
        1 revert: ["linerate host revert"]
        1 needs_reboot: false
        2 persist: null
        2 revert: null
        2 needs_reboot: null
        "#);
        // A finding reads back as one.
        assert_eq!(serde_json::from_value::<Vec<Finding>>(found).unwrap(), findings);
    }
}
