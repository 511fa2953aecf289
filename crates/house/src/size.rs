//! The size of the binary's own code: it is to be glue.

use std::path::Path;

use crate::workspace::File;

/// Most production lines of crate `linerate`, the definitions of its flags (`cli`) not counted: those grow with each command and
/// do nothing.
pub const MOST_LINES: usize = 4000;

/// The lines of `files` that are neither blank nor for tests. Comments count. Files named `tests.rs` or `*_tests.rs`,
/// those in a folder `tests`, and modules within a file after `#[cfg(test)]` are for tests; `cli.rs` and those in a folder `cli`
/// define flags.
pub fn production_lines<'a>(files: impl IntoIterator<Item = &'a File>) -> usize {
    files
        .into_iter()
        .filter(|file| !for_tests(&file.path) && !defines_flags(&file.path))
        .map(|file| lines(&file.text))
        .sum()
}

fn for_tests(path: &Path) -> bool {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name == "tests" || name.ends_with("_tests") || path.iter().any(|part| part == "tests")
}

fn defines_flags(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "cli.rs") || path.iter().any(|part| part == "cli")
}

/// `rustfmt` puts the end of a module at the indentation of its start.
fn lines(text: &str) -> usize {
    let mut count = 0;
    // The indentation of `#[cfg(test)]`, and whether its module is open.
    let mut test: Option<(usize, bool)> = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        match test {
            Some((at, true)) => {
                if indent == at && line == "}" {
                    test = None;
                }
                continue;
            }
            Some((at, false)) if is_module(line) => {
                test = line.ends_with('{').then_some((at, true));
                continue;
            }
            // An attribute more, before the module.
            Some(_) if line.starts_with("#[") => continue,
            Some(_) => test = None,
            None if line == "#[cfg(test)]" => {
                test = Some((indent, false));
                continue;
            }
            None => {}
        }
        count += 1;
    }
    count
}

fn is_module(line: &str) -> bool {
    let after = line.strip_prefix("pub(super) ").or(line.strip_prefix("pub(crate) ")).or(line.strip_prefix("pub "));
    after.unwrap_or(line).starts_with("mod ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
//! Text.

#[cfg(test)]
mod tests;

/// Doc.
fn a() {}

#[cfg(test)]
mod more {
    fn t() {
    }
}

fn b() {}
#[cfg(test)]
fn not_a_module() {}
";

    #[test]
    fn blank_lines_and_test_modules_do_not_count() {
        assert_eq!(lines(TEXT), 5);
    }

    #[test]
    fn test_files_and_flags_do_not_count() {
        let paths = [
            "src/a.rs",
            "src/cli.rs",
            "src/cli/b.rs",
            "src/tests.rs",
            "src/a/tests/b.rs",
            "src/a_tests.rs",
            "src/contests.rs",
        ];
        let files: Vec<_> = paths.iter().map(|path| File { path: path.into(), text: "fn a() {}\n".into() }).collect();
        assert_eq!(production_lines(&files), 2);
    }
}
