//! Cores and changes, as a file that a person reads, edits and applies.

use serde::{Deserialize, Serialize};

use crate::{
    audit::{Finding, Mend},
    core_plan::CorePlan,
};

/// The only version of the file.
const VERSION: u32 = 1;

/// What is to be changed, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The rule that asks for it.
    pub id: String,
    /// What it does to a figure.
    pub why: String,
    /// The change.
    pub change: Mend,
    /// The name of the interrupt that is sent elsewhere: its number may be another one's on another machine, and after a boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<String>,
}

/// Cores and changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPlan {
    /// 1.
    pub version: u32,
    /// Which core does what.
    pub cores: CorePlan,
    /// The changes, in this order.
    #[serde(default, rename = "step", skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
}

impl HostPlan {
    /// What mends the open findings. A change that two findings ask for is made once.
    pub fn new(cores: CorePlan, findings: &[Finding]) -> Self {
        let mut steps: Vec<Step> = Vec::new();
        for finding in findings.iter().filter(|finding| finding.is_open()) {
            for change in &finding.mend {
                if !steps.iter().any(|step| same(&step.change, change)) {
                    let interrupt = interrupt(change, &finding.place);
                    let (id, why) = (finding.id.clone(), finding.why.clone());
                    steps.push(Step { id, why, change: change.clone(), interrupt });
                }
            }
        }
        Self { version: VERSION, cores, steps }
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in a line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let plan: Self = toml::from_str(text).map_err(|e| one_line(&e))?;
        if plan.version != VERSION {
            return Err(format!("version {}: this Linerate reads version {VERSION}", plan.version));
        }
        for (n, step) in plan.steps.iter().enumerate() {
            let wrong = |why: String| format!("step {}: {why}", n + 1);
            step.change.check().map_err(wrong)?;
            let name = step.interrupt.as_ref().unwrap_or(&step.id);
            if [&step.id, &step.why, name].iter().any(|text| text.chars().any(char::is_control)) {
                return Err(wrong("id, why and interrupt are a line each".to_owned()));
            }
        }
        Ok(plan)
    }

    /// The file.
    ///
    /// # Errors
    ///
    /// A text in it cannot be written as TOML.
    pub fn to_text(&self) -> Result<String, String> {
        toml::to_string(self).map_err(|e| e.to_string())
    }

    /// The words for the boot line, one of each key.
    pub fn boot_words(&self) -> Vec<&str> {
        let of = |step: &'_ Step| matches!(step.change, Mend::Boot { .. });
        self.steps
            .iter()
            .filter(|step| of(step))
            .filter_map(|step| match &step.change {
                Mend::Boot { word } => Some(word.as_str()),
                _ => None,
            })
            .collect()
    }
}

/// The name of an interrupt whose file is written, out of the place of the finding: `FILE (NAME)`.
fn interrupt(change: &Mend, place: &str) -> Option<String> {
    let Mend::Write { path, .. } = change else { return None };
    path.strip_prefix("/proc/irq").ok()?;
    let name = place.strip_prefix(path.to_str()?)?.strip_prefix(" (")?.strip_suffix(')')?;
    Some(name.to_owned())
}

/// Whether two changes are of the same thing: a file has one value, and a word of the boot line is there once.
fn same(a: &Mend, b: &Mend) -> bool {
    let key = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
    match (a, b) {
        (Mend::Write { path: a, .. }, Mend::Write { path: b, .. }) => a == b,
        // Pages of another size come behind theirs.
        (Mend::Boot { word: a }, Mend::Boot { word: b }) => key(a) == key(b),
        (a, b) => a == b,
    }
}

fn one_line(error: &toml::de::Error) -> String {
    error
        .to_string()
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.contains('|'))
        .collect::<Vec<_>>()
        .join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        audit::{Group, Out, Verdict},
        cpu_set,
    };

    fn findings() -> Vec<Finding> {
        let mut out = Out::new("a.b", Group::Kernel, "why", None);
        out.found(Verdict::Warn, "x", "1", "0").write("/proc/sys/vm/a", "0").boot("a=1");
        out.found(Verdict::Bad, "y", "1", "0").write("/proc/sys/vm/a", "2").boot("a=2").hand("seat it");
        out.found(Verdict::Noted, "z", "1", "").write("/proc/sys/vm/z", "0");
        out.into_findings()
    }

    #[test]
    fn open_findings_make_each_change_once() {
        let cores = CorePlan {
            housekeeping: cpu_set::from_list("0"),
            tester: cpu_set::from_list("1-2"),
            ..CorePlan::default()
        };
        let plan = HostPlan::new(cores, &findings());
        assert!(plan.steps.iter().all(|step| step.interrupt.is_none()));
        let write = |path: &str| Mend::Write { path: path.into(), value: "0".into() };
        let file = "/proc/irq/42/smp_affinity_list";
        assert_eq!(interrupt(&write(file), &format!("{file} (eth0 (rx))")).as_deref(), Some("eth0 (rx)"));
        assert_eq!(interrupt(&write(file), file), None);
        assert_eq!(interrupt(&write("/proc/sys/vm/a"), "/proc/sys/vm/a (b)"), None);
        let texts: Vec<String> = plan.steps.iter().map(|step| step.change.text()).collect();
        assert_eq!(texts, ["sysctl -w vm.a=0", "boot with a=1", "seat it"]);
        assert_eq!(plan.boot_words(), ["a=1"]);
        let text = plan.to_text().unwrap();
        assert!(text.contains("tester = \"1-2\""), "{text}");
        assert_eq!(HostPlan::parse(&text), Ok(plan));
        for (from, to) in [
            ("/proc/sys/vm/a", "/proc/self/root/etc/passwd"),
            ("/proc/sys/vm/a", "/sys/../etc/passwd"),
            ("/proc/sys/vm/a", "/etc/passwd"),
            ("/proc/sys/vm/a", "/proc/sys/kernel/core_pattern"),
            ("value = \"0\"", "value = \"0\\n1\""),
            ("word = \"a=1\"", "word = \"a=$(reboot)\""),
            ("word = \"a=1\"", "word = \"a\\\"; reboot #\""),
            ("seat it", "seat it\\nreboot"),
            ("why = \"why\"", "why = \"why\\nreboot\""),
            ("version = 1", "version = 2"),
            ("tester = \"1-2\"", "tester = \"x\""),
            ("[cores]", "[cores]\nx = 1"),
            ("version = 1", ""),
        ] {
            let wrong = HostPlan::parse(&text.replacen(from, to, 1)).unwrap_err();
            assert!(!wrong.is_empty() && !wrong.contains('\n'), "{wrong}");
        }
    }
}
