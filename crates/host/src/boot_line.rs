//! The kernel's boot line, word by word.

/// The words that the kernel was booted with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BootLine(Vec<(String, Option<String>)>);

impl BootLine {
    /// Reads `/proc/cmdline`. A word may be quoted as a whole or behind its `=`.
    pub fn parse(text: &str) -> Self {
        let mut words = Vec::new();
        let mut word = String::new();
        let mut quoted = false;
        for c in text.trim().chars().chain([' ']) {
            match c {
                '"' => quoted = !quoted,
                c if c.is_ascii_whitespace() && !quoted => {
                    if !word.is_empty() {
                        words.push(split(&std::mem::take(&mut word)));
                    }
                }
                c => word.push(c),
            }
        }
        Self(words)
    }

    /// The last value of a word, as the kernel takes it; `None` if the word is not there, `Some("")` if it has none.
    pub fn value(&self, key: &str) -> Option<&str> {
        let key = normal(key);
        let found = self.0.iter().rev().find(|(k, _)| *k == key)?;
        Some(found.1.as_deref().unwrap_or_default())
    }

    /// All values of a word, in their order. Of some the kernel takes the first: `isolcpus`, `nohz_full`.
    pub fn values(&self, key: &str) -> impl Iterator<Item = &str> {
        let key = normal(key);
        self.0.iter().filter(move |(k, _)| *k == key).filter_map(|(_, value)| value.as_deref())
    }

    /// The line without what may name disks, hosts, users and addresses: values of words that say how the machine computes stay, all
    /// others become `-`.
    pub(crate) fn without_names(&self) -> String {
        let word = |(key, value): &(String, Option<String>)| match value {
            None if key.contains(char::is_whitespace) => "_".to_owned(),
            None => key.clone(),
            Some(value) if HARMLESS.iter().any(|name| is_named(key, name)) => format!("{key}={value}"),
            Some(_) => format!("{key}=-"),
        };
        self.0.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    /// Whether this word is there, with this value if it names one: `nosoftlockup`, `iommu=pt`.
    pub fn has(&self, word: &str) -> bool {
        let (key, value) = split(word);
        match value {
            None => self.value(&key).is_some(),
            Some(value) => self.0.iter().any(|(k, v)| *k == key && v.as_deref() == Some(&value)),
        }
    }
}

/// Words whose values are of no person and no place; one that ends with `.` stands for all that begin with it.
const HARMLESS: [&str; 69] = [
    "isolcpus",
    "nohz_full",
    "nohz",
    "rcu_nocbs",
    "rcu_nocb_poll",
    "rcutree.",
    "rcupdate.",
    "irqaffinity",
    "kthread_cpus",
    "maxcpus",
    "nr_cpus",
    "possible_cpus",
    "skew_tick",
    "tsc",
    "clocksource",
    "hpet",
    "highres",
    "idle",
    "processor.",
    "intel_idle.",
    "cpuidle.",
    "intel_pstate",
    "amd_pstate",
    "cpufreq.",
    "mce",
    "audit",
    "selinux",
    "apparmor",
    "security",
    "lsm",
    "iommu",
    "iommu.",
    "intel_iommu",
    "amd_iommu",
    "vfio.",
    "vfio_pci.",
    "pci",
    "pcie_aspm",
    "pcie_aspm.",
    "pcie_ports",
    "hugepages",
    "hugepagesz",
    "default_hugepagesz",
    "transparent_hugepage",
    "mem",
    "memmap",
    "numa",
    "numa_balancing",
    "swiotlb",
    "mitigations",
    "spectre_v2",
    "spectre_v2_user",
    "spec_store_bypass_disable",
    "pti",
    "l1tf",
    "mds",
    "tsx",
    "tsx_async_abort",
    "split_lock_detect",
    "clearcpuid",
    "nmi_watchdog",
    "softlockup_panic",
    "preempt",
    "workqueue.",
    "kvm.",
    "console",
    "crashkernel",
    "enforcing",
    "vt.handoff",
];

fn is_named(key: &str, name: &str) -> bool {
    key == name || (name.ends_with('.') && key.starts_with(name))
}

/// Key and value of a word. The kernel does not tell `-` from `_` in a key.
fn split(word: &str) -> (String, Option<String>) {
    match word.split_once('=') {
        Some((key, value)) => (normal(key), Some(value.to_owned())),
        None => (normal(word), None),
    }
}

fn normal(key: &str) -> String {
    key.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_their_last_value() {
        let line = BootLine::parse("ro quiet hugepagesz=1G hugepages=4 hugepagesz=2M isolcpus=1-2 isolcpus=3 \"a b=c d\" nmi-watchdog=0 empty=\n");
        assert_eq!(line.value("isolcpus"), Some("3"));
        assert_eq!(line.value("quiet"), Some(""));
        assert_eq!(line.value("empty"), Some(""));
        assert_eq!(line.value("a b"), Some("c d"));
        assert_eq!(line.value("nmi_watchdog"), Some("0"));
        assert_eq!(line.value("debug"), None);
        assert!(line.has("hugepagesz=1G") && line.has("hugepagesz=2M") && line.has("ro") && line.has("nmi_watchdog=0"));
        assert!(!line.has("isolcpus=4") && !line.has("iommu=pt") && !line.has("hugepage"));
        assert_eq!(BootLine::parse(""), BootLine::default());
        assert_eq!(line.values("isolcpus").collect::<Vec<_>>(), ["1-2", "3"]);
    }

    #[test]
    fn what_may_be_a_name_goes() {
        let line = "BOOT_IMAGE=/a ro root=UUID=1 BOOTIF=01-aa-bb ifname=eth0:aa:bb hostname=secret netconsole=@10.0.0.1/ \"dyndbg=file x\" \
                    \"a b\" isolcpus=managed_irq,domain,1-3 intel_idle.max_cstate=0 console=ttyS0,115200 quiet\n";
        let wanted = "BOOT_IMAGE=- ro root=- BOOTIF=- ifname=- hostname=- netconsole=- dyndbg=- _ \
                      isolcpus=managed_irq,domain,1-3 intel_idle.max_cstate=0 console=ttyS0,115200 quiet";
        assert_eq!(BootLine::parse(line).without_names(), wanted);
        assert_eq!(BootLine::parse(wanted).without_names(), wanted);
    }
}
