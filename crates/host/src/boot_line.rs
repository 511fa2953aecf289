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

    /// Whether this word is there, with this value if it names one: `nosoftlockup`, `iommu=pt`.
    pub fn has(&self, word: &str) -> bool {
        let (key, value) = split(word);
        match value {
            None => self.value(&key).is_some(),
            Some(value) => self.0.iter().any(|(k, v)| *k == key && v.as_deref() == Some(&value)),
        }
    }
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
    }
}
