//! What a rule found.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::setting::{is_setting, is_unit};

/// What a rule says of what it saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It spoils figures of this plan.
    Bad,
    /// It may.
    Warn,
    /// It cannot be read.
    Unknown,
    /// Nothing to judge: kept so that two results can be told apart.
    Noted,
    /// As it should be.
    Ok,
    /// The machine does not have it.
    #[serde(rename = "n/a")]
    NotApplicable,
}

impl Verdict {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bad => "bad",
            Self::Warn => "warn",
            Self::Unknown => "unknown",
            Self::Noted => "noted",
            Self::Ok => "ok",
            Self::NotApplicable => "n/a",
        }
    }
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// What the firmware set.
    Firmware,
    /// Which cores are kept for what.
    Cores,
    /// Frequency and sleep of cores.
    Power,
    /// Interrupts.
    Interrupts,
    /// Memory and hugepages.
    Memory,
    /// What the kernel does by itself.
    Kernel,
    /// Programs that work against a plan, and limits of this one.
    Programs,
    /// Network cards and the bus they are on.
    Nic,
    /// A switch that runs here.
    Switch,
    /// Clocks.
    Clock,
    /// What comes of it all, measured.
    Outcome,
}

impl Group {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Firmware => "firmware",
            Self::Cores => "cores",
            Self::Power => "power",
            Self::Interrupts => "interrupts",
            Self::Memory => "memory",
            Self::Kernel => "kernel",
            Self::Programs => "programs",
            Self::Nic => "NIC and PCIe",
            Self::Switch => "switch",
            Self::Clock => "clock",
            Self::Outcome => "outcome",
        }
    }
}

/// What mends a finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mend {
    /// A file of the kernel gets another value. Takes effect at once, and until the next boot.
    Write {
        /// Its path, below `/sys` or `/proc`.
        path: PathBuf,
        /// The value.
        value: String,
    },
    /// A word of the boot line. Needs a reboot.
    Boot {
        /// The word, `nohz_full=1-3`.
        word: String,
    },
    /// A service that is stopped.
    Stop {
        /// Its unit, `irqbalance.service`.
        service: String,
    },
    /// A command that the user runs: it is not ours to take back.
    Command {
        /// The command.
        command: String,
    },
    /// Something that only a person can do: a setting of the firmware, another slot.
    Hand {
        /// What to do.
        what: String,
    },
}

impl Mend {
    /// As a command of the shell, or as a sentence where there is none.
    pub fn text(&self) -> String {
        match self {
            Self::Write { path, value } => match path.to_str().and_then(|path| path.strip_prefix("/proc/sys/")) {
                Some(key) => format!("sysctl -w {}={}", quoted(&key.replace('/', ".")), quoted(value)),
                None => format!("echo {} > {}", quoted(value), quoted(&path.to_string_lossy())),
            },
            Self::Boot { word } => format!("boot with {word}"),
            Self::Stop { service } => format!("systemctl stop {service}"),
            Self::Command { command } => command.clone(),
            Self::Hand { what } => what.clone(),
        }
    }

    /// Whether it is of what plans are for. One that somebody sends may say anything, and is applied as root: only settings of the
    /// kernel are written, and no text holds what a shell or a boot loader would take for a command or another line.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        let plain = |text: &str| !text.chars().any(char::is_control);
        match self {
            Self::Write { path, value } => match is_setting(path) && plain(value) {
                true => Ok(()),
                false => Err(format!(
                    "{path:?}: a plan may not write it: only settings of CPUs, NUMA nodes, interrupts, memory, network and kernel \
                     below /proc and /sys that keep a value and can be set back, each with one line"
                )),
            },
            Self::Boot { word } => match !word.is_empty() && word.chars().all(is_of_boot_word) {
                true => Ok(()),
                false => Err(format!("{word:?}: not a word of a boot line")),
            },
            Self::Stop { service } => match is_unit(service) {
                true => Ok(()),
                false => Err(format!("{service:?}: not a unit of systemd")),
            },
            Self::Command { command: text } | Self::Hand { what: text } => match plain(text) {
                true => Ok(()),
                false => Err(format!("{text:?}: more than a line")),
            },
        }
    }

    /// What makes it outlive a boot; `None` where it does anyway, or where nothing here can. `host apply --persist` makes these files.
    pub fn persist(&self) -> Option<String> {
        match self {
            Self::Write { path, .. } if path.starts_with("/proc/irq") => None,
            Self::Write { path, value } => Some(match path.to_str().and_then(|path| path.strip_prefix("/proc/sys/")) {
                Some(key) => format!("{} = {value} in /etc/sysctl.d", key.replace('/', ".")),
                None => "linerate host apply at each boot (linerate-host.service)".to_owned(),
            }),
            Self::Boot { word } => Some(format!("{word} in GRUB_CMDLINE_LINUX_DEFAULT, then update-grub")),
            Self::Stop { service } => Some(format!("systemctl disable {service}")),
            Self::Command { .. } | Self::Hand { .. } => None,
        }
    }

    /// What takes it back; `None` where only a person knows.
    pub fn revert(&self) -> Option<String> {
        match self {
            // The old value stands in the journal.
            Self::Write { .. } => Some("linerate host revert".to_owned()),
            Self::Stop { service } => Some(format!("linerate host revert, or systemctl start {service}")),
            Self::Boot { word } => Some(format!("boot without {word}")),
            Self::Command { .. } | Self::Hand { .. } => None,
        }
    }

    /// Whether it needs a reboot.
    pub fn needs_reboot(&self) -> bool {
        matches!(self, Self::Boot { .. } | Self::Hand { .. })
    }
}

fn is_of_boot_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.,:=/@+%- ".contains(c)
}

fn quoted(value: &str) -> String {
    let plain = !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || ",._-/:".contains(c));
    if plain {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', "'\\''"))
    }
}

/// What a rule found in one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule's id, `boot.nohz_full`.
    pub id: String,
    /// What it is about.
    pub group: Group,
    /// What the rule says.
    pub verdict: Verdict,
    /// Where: a path, a CPU, a NIC; empty if the id says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// What is there.
    pub got: String,
    /// What should be there; empty if there is nothing to judge.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub want: String,
    /// What it does to a figure.
    pub why: String,
    /// What was published of its effect, with its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// Whether the setting is right and what comes of it is wrong.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outcome: bool,
    /// What mends it, each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mend: Vec<Mend>,
}

impl Finding {
    /// Whether it is open: bad, or may be.
    pub fn is_open(&self) -> bool {
        matches!(self.verdict, Verdict::Bad | Verdict::Warn)
    }
}

impl Finding {
    /// Adds what mends it.
    pub fn mended_by(&mut self, mend: Mend) -> &mut Self {
        self.mend.push(mend);
        self
    }

    /// Adds a file of the kernel that gets another value.
    pub fn write(&mut self, path: impl Into<PathBuf>, value: impl Into<String>) -> &mut Self {
        self.mended_by(Mend::Write { path: path.into(), value: value.into() })
    }

    /// Adds a word of the boot line.
    pub fn boot(&mut self, word: impl Into<String>) -> &mut Self {
        self.mended_by(Mend::Boot { word: word.into() })
    }

    /// Adds something that a person does.
    pub fn hand(&mut self, what: impl Into<String>) -> &mut Self {
        self.mended_by(Mend::Hand { what: what.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mends_read_as_commands() {
        let write = |path: &str, value: &str| Mend::Write { path: path.into(), value: value.to_owned() }.text();
        assert_eq!(write("/proc/sys/kernel/watchdog", "0"), "sysctl -w kernel.watchdog=0");
        assert_eq!(write("/sys/kernel/mm/ksm/run", "0"), "echo 0 > /sys/kernel/mm/ksm/run");
        assert_eq!(write("/sys/a", "n a"), "echo 'n a' > /sys/a");
        assert_eq!(write("/sys/a", ""), "echo '' > /sys/a");
        let lasts = |path: &str| Mend::Write { path: path.into(), value: "0".into() }.persist();
        assert_eq!(lasts("/proc/sys/kernel/watchdog").as_deref(), Some("kernel.watchdog = 0 in /etc/sysctl.d"));
        assert!(lasts("/sys/kernel/mm/ksm/run").is_some_and(|how| how.contains("linerate-host.service")));
        // Its number is another one's after a boot.
        assert_eq!(lasts("/proc/irq/24/smp_affinity_list"), None);
        let boot = Mend::Boot { word: "nohz_full=1".into() };
        assert!(boot.persist().is_some_and(|how| how.contains("update-grub")));
        assert_eq!(boot.revert().as_deref(), Some("boot without nohz_full=1"));
        assert_eq!(Mend::Hand { what: "seat it".into() }.revert(), None);
        assert!(boot.needs_reboot() && boot.text().contains("nohz_full=1"));
        assert!(!Mend::Stop { service: "x".into() }.needs_reboot());
    }

    #[test]
    fn the_worst_stands_first() {
        let mut all =
            [Verdict::Ok, Verdict::Warn, Verdict::Bad, Verdict::NotApplicable, Verdict::Unknown, Verdict::Noted];
        all.sort();
        assert_eq!(all.map(Verdict::word), ["bad", "warn", "unknown", "noted", "ok", "n/a"]);
        assert_eq!(serde_json::to_string(&Verdict::NotApplicable).unwrap(), "\"n/a\"");
    }
}
