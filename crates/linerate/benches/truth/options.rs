//! The words of the command line.

use std::path::PathBuf;

use serde_json::Value;

use crate::runs::Rule;

/// What to run.
pub struct Options {
    pub runs: usize,
    pub only: Option<String>,
    pub rules: Vec<Rule>,
    pub beside: u32,
    pub keep: Option<PathBuf>,
}

impl Options {
    /// Reads `KEY=VALUE` words; cargo's own flags are passed over.
    ///
    /// # Panics
    /// At a word that is none of ours.
    pub fn parse(words: impl Iterator<Item = String>) -> Self {
        let mut options = Self { runs: 5, only: None, rules: vec![Rule::Slices], beside: 0, keep: None };
        for word in words.filter(|word| !word.starts_with("--")) {
            match word.split_once('=') {
                Some(("runs", n)) => options.runs = n.parse().expect("runs=N"),
                Some(("only", text)) => options.only = Some(text.to_owned()),
                Some(("rules", names)) => options.rules = names.split(',').map(Rule::parse).collect(),
                Some(("beside", n)) => options.beside = n.parse().expect("beside=N"),
                Some(("keep", dir)) => options.keep = Some(dir.into()),
                _ => panic!("{word}: keys are runs, only, rules, beside and keep"),
            }
        }
        options
    }

    /// Writes the result of run `n` of a device, where it was asked for.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn keep(&self, name: &str, n: usize, result: &Value) {
        let Some(dir) = &self.keep else { return };
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        std::fs::create_dir_all(dir).expect("the directory can be made");
        std::fs::write(dir.join(format!("{name}-{n}.json")), result.to_string()).expect("the file can be written");
    }

    pub fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|text| name.contains(text.as_str()))
    }
}
