//! The words of the command line.

use crate::runs::Rule;

/// What to run.
pub struct Options {
    pub runs: usize,
    pub only: Option<String>,
    pub rules: Vec<Rule>,
    pub beside: u32,
}

impl Options {
    /// Reads `KEY=VALUE` words; cargo's own flags are passed over.
    ///
    /// # Panics
    /// At a word that is none of ours.
    pub fn parse(words: impl Iterator<Item = String>) -> Self {
        let mut options = Self { runs: 5, only: None, rules: vec![Rule::Slices], beside: 0 };
        for word in words.filter(|word| !word.starts_with("--")) {
            match word.split_once('=') {
                Some(("runs", n)) => options.runs = n.parse().expect("runs=N"),
                Some(("only", text)) => options.only = Some(text.to_owned()),
                Some(("rules", names)) => options.rules = names.split(',').map(Rule::parse).collect(),
                Some(("beside", n)) => options.beside = n.parse().expect("beside=N"),
                _ => panic!("{word}: keys are runs, only, rules and beside"),
            }
        }
        options
    }

    pub fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|text| name.contains(text.as_str()))
    }
}
