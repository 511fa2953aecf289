//! Configuration files.

use std::{fs, path::Path};

use failure::Failure;
use serde::de::DeserializeOwned;

/// Largest configuration file read; tables of any size come by `forward load`.
const MAX_BYTES: u64 = 64 << 20;

/// A key of a configuration file that has a new name. The old one is refused.
#[derive(Debug, Clone, Copy)]
pub struct RenamedKey {
    /// The old name, at the top level of the file.
    pub old: &'static str,
    /// The new name.
    pub new: &'static str,
    /// Old values and what they are called now.
    pub values: &'static [(&'static str, &'static str)],
}

/// Reads a TOML file.
///
/// # Errors
///
/// (usage) for a file that cannot be read, is too large or is not TOML of this shape; for one of the renamed keys, with
/// its new name. They name the file and the line.
pub fn read_toml<T: DeserializeOwned>(path: &Path, renamed: &[RenamedKey]) -> Result<T, Failure> {
    let refused = |e: String| Failure::usage(format!("--config {}: {e}", path.display()));
    match fs::metadata(path) {
        Ok(m) if m.is_file() && m.len() <= MAX_BYTES => {}
        Ok(_) => return Err(refused("must be a regular file of at most 64 MiB".into())),
        Err(e) => return Err(refused(failure::unreadable(&e))),
    }
    let text = fs::read_to_string(path).map_err(|e| refused(failure::unreadable(&e)))?;
    parse(&text, renamed).map_err(refused)
}

pub(crate) fn parse<T: DeserializeOwned>(text: &str, renamed: &[RenamedKey]) -> Result<T, String> {
    if let Ok(table) = text.parse::<toml::Table>() {
        if let Some((key, value)) = renamed.iter().find_map(|key| Some((key, table.get(key.old)?))) {
            return Err(refusal(text, key, value));
        }
    }
    toml::from_str(text).map_err(|e| {
        let before = e.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let (line, key) = (1 + before.matches('\n').count(), key_before(before));
        format!("line {line}: {key}{}", e.message().replace('\n', " "))
    })
}

/// `line 3: directions = "apart" is now biflow = "off"`
fn refusal(text: &str, key: &RenamedKey, value: &toml::Value) -> String {
    let RenamedKey { old, new, values } = key;
    let is_key = |line: &str| line.split('=').next().is_some_and(|name| name.trim() == *old);
    let line = text.lines().position(is_key).map_or(String::new(), |n| format!("line {}: ", n + 1));
    match values.iter().find(|(value_old, _)| value.as_str() == Some(value_old)) {
        Some((value, now)) => format!("{line}{old} = \"{value}\" is now {new} = \"{now}\""),
        None => format!("{line}{old} is now {new}"),
    }
}

/// `KEY: ` of the value that begins behind this text; empty where there is none.
fn key_before(text: &str) -> String {
    let line = text.rsplit('\n').next().unwrap_or_default();
    let key = line.split_once('=').map(|(key, _)| key.trim()).unwrap_or_default();
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if bare {
        format!("{key}: ")
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[allow(dead_code)]
        count: u32,
    }

    const RENAMED: &[RenamedKey] = &[RenamedKey { old: "way", new: "path", values: &[("short", "direct")] }];

    fn refused(text: &str) -> String {
        parse::<File>(text, RENAMED).unwrap_err()
    }

    #[test]
    fn errors_name_the_line_and_the_key() {
        insta::assert_snapshot!(refused("\ncount = \"3\""), @r#"line 2: count: invalid type: string "3", expected u32"#);
        insta::assert_snapshot!(refused("count = 3\ncuont = 4"), @"line 2: unknown field `cuont`, expected `count`");
    }

    #[test]
    fn a_renamed_key_is_refused_with_its_new_name() {
        insta::assert_snapshot!(refused("count = 3\nway = \"short\""), @r#"line 2: way = "short" is now path = "direct""#);
        insta::assert_snapshot!(refused("way = 7"), @"line 1: way is now path");
        assert!(parse::<File>("count = 3 # way = 7", RENAMED).is_ok());
    }

    #[test]
    fn only_files_are_read() {
        let failure = read_toml::<File>(Path::new("/proc"), RENAMED).unwrap_err();
        assert_eq!(failure.exit, failure::Exit::Usage);
    }
}
