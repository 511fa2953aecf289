//! A command line: run by a lab, printed for people and scripts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The lab's directory in a command line of a script.
pub const SCRIPT_DIR: &str = "$d";

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLine(pub Vec<String>);

impl CommandLine {
    /// The words of `text`, separated by blanks.
    pub fn words(text: &str) -> Self {
        Self(text.split_ascii_whitespace().map(str::to_owned).collect())
    }

    /// The same with these arguments behind.
    #[must_use]
    pub fn with<T: Into<String>>(mut self, more: impl IntoIterator<Item = T>) -> Self {
        self.0.extend(more.into_iter().map(Into::into));
        self
    }

    /// The name of the program, without its path.
    pub fn program(&self) -> &str {
        self.0.first().map_or("", |path| path.rsplit('/').next().unwrap_or(path))
    }
}

impl fmt::Display for CommandLine {
    /// As a POSIX shell reads it. Only [`SCRIPT_DIR`] is expanded there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, word) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str(" ")?;
            }
            f.write_str(&quoted(word))?;
        }
        Ok(())
    }
}

/// A word as a shell reads it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if !word.contains(SCRIPT_DIR) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let text = word.split(SCRIPT_DIR).map(escaped).collect::<Vec<_>>().join(SCRIPT_DIR);
    format!("\"{text}\"")
}

/// The text between double quotes.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_what_was_meant() {
        let words = [
            "a b",
            "it's",
            "",
            "x=\"0:2,1:4\"",
            "$HOME",
            "`id`",
            "\\",
            "plain-1.2/3",
            "$d/x y\"z\"`w`",
            "a;b|c>d*",
            "ä",
        ];
        let line = CommandLine(vec!["printf".into(), "%s\\n".into()]).with(words);
        let out = Command::new("sh").env("d", "/run/lab").args(["-c", &line.to_string()]).output().unwrap();
        let wanted: Vec<String> = words.iter().map(|w| w.replace("$d", "/run/lab")).collect();
        assert_eq!(String::from_utf8(out.stdout).unwrap(), wanted.join("\n") + "\n", "{line}");
        assert_eq!(CommandLine::words("/usr/bin/x -y  z").to_string(), "/usr/bin/x -y z");
        assert_eq!(CommandLine::words("/usr/bin/x -y").program(), "x");
    }
}
