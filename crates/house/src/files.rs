//! What every source file has: a length within bounds, a text about the module, and no `unsafe` outside two crates.

use crate::workspace::{Crate, File};

/// Most lines of a source file.
pub const MOST_LINES: usize = 600;

/// The crates that may use `unsafe`: the bindings, and the safe house around them.
pub const UNSAFE_CRATES: [&str; 2] = ["dpdk", "dpdk-sys"];

/// The files with more than [`MOST_LINES`] lines.
pub fn too_long<'a>(files: impl IntoIterator<Item = &'a File>) -> Vec<String> {
    let counted = files.into_iter().map(|file| (file, file.text.lines().count()));
    counted
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(file, lines)| format!("{}: {lines} lines; the limit is {MOST_LINES}: split it", file.path.display()))
        .collect()
}

/// The files that do not begin with a `//!` text.
pub fn without_module_text<'a>(files: impl IntoIterator<Item = &'a File>) -> Vec<String> {
    files
        .into_iter()
        .filter(|file| !file.text.trim_start().starts_with("//!"))
        .map(|file| {
            format!("{}: begin the file with a `//!` text that says what the module is for", file.path.display())
        })
        .collect()
}

/// The crate roots that allow `unsafe` though their crate is not in [`UNSAFE_CRATES`].
pub fn allows_unsafe(krate: &Crate) -> Vec<String> {
    if UNSAFE_CRATES.contains(&krate.name.as_str()) {
        return Vec::new();
    }
    let roots = krate.src.iter().filter(|file| krate.roots.contains(&file.path));
    roots
        .filter(|file| !file.text.lines().any(|line| line.trim() == "#![forbid(unsafe_code)]"))
        .map(|file| format!("{}: add `#![forbid(unsafe_code)]`", file.path.display()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    fn krate(name: &str, root: &str) -> Crate {
        let src = vec![file("src/lib.rs", root), file("src/a.rs", "")];
        Crate { name: name.into(), manifest: String::new(), roots: vec!["src/lib.rs".into()], src, others: Vec::new() }
    }

    #[test]
    fn a_file_past_the_limit_is_found() {
        let files = [file("a.rs", &"\n".repeat(MOST_LINES)), file("b.rs", &"\n".repeat(MOST_LINES + 1))];
        assert_eq!(too_long(&files), ["b.rs: 601 lines; the limit is 600: split it"]);
    }

    #[test]
    fn a_file_without_a_module_text_is_found() {
        let files =
            [file("a.rs", "//! About a.\n"), file("b.rs", "// About b.\n"), file("c.rs", "use x;\n//! Late.\n")];
        assert_eq!(without_module_text(&files).len(), 2);
    }

    #[test]
    fn a_root_that_does_not_forbid_unsafe_is_found() {
        let forbids = "//! Text.\n#![forbid(unsafe_code)]\n";
        assert_eq!(allows_unsafe(&krate("flow", forbids)), [""; 0]);
        assert_eq!(allows_unsafe(&krate("flow", "// #![forbid(unsafe_code)]\n")).len(), 1);
        assert_eq!(allows_unsafe(&krate("dpdk", "")), [""; 0]);
    }
}
