//! Directories that a lab has to itself: what the user has there is not seen in it, and what is written there goes with it.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use failure::Failure;

/// Where a lab's files are: a file system of its own, which is gone with it.
pub const DIR: &str = "/run/lab";

/// They get a file system of their own: sockets and run-time files of everything that runs in a lab are there.
pub const DIRECTORIES: [&str; 2] = ["/run", "/dev/shm"];

/// Checks that a file of the user is seen from inside a lab; `flag` names it.
///
/// # Errors
///
/// (usage) with the directory that is the lab's own.
pub fn check(flag: &str, path: &Path) -> Result<(), Failure> {
    match hider(path) {
        None => Ok(()),
        Some(dir) => Err(Failure::usage(format!(
            "{flag} {}: a lab has a {dir} of its own, where files of yours are not seen and new ones are lost: choose another \
             directory",
            path.display()
        ))),
    }
}

/// The same of the arguments of a command that goes on inside a lab, and of the directory that it runs in.
///
/// # Errors
///
/// (usage) for the first of them.
pub fn check_words<'a>(words: impl IntoIterator<Item = &'a OsStr>, here: &Path) -> Result<(), Failure> {
    check("the working directory", here)?;
    let mut flag = String::new();
    for word in words {
        let text = word.to_string_lossy();
        let (before, value) = match text.split_once('=') {
            Some((before, value)) => (before, value),
            None => (flag.as_str(), text.as_ref()),
        };
        if value.contains('/') {
            check(before, &here.join(value))?;
        }
        flag = if text.starts_with('-') { text.into_owned() } else { String::new() };
    }
    Ok(())
}

/// The same of a command that runs where this process does.
///
/// # Errors
///
/// As [`check_words`].
pub fn check_command<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> Result<(), Failure> {
    check_words(words, &std::env::current_dir().map_err(Failure::machine)?)
}

/// The directory of a lab's own that a path is below, also through a link. The lab's files themselves are seen in it.
fn hider(path: &Path) -> Option<&'static str> {
    let real = |path: &Path| path.canonicalize().ok();
    let resolved = real(path).or_else(|| Some(real(path.parent()?)?.join(path.file_name()?)));
    let all: Vec<PathBuf> = std::path::absolute(path).ok().into_iter().chain(resolved).collect();
    if all.iter().any(|path| path.starts_with(DIR)) {
        return None;
    }
    DIRECTORIES.into_iter().find(|dir| all.iter().any(|path| path.starts_with(dir)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_a_lab_would_lose_are_refused() {
        let words = |text: &str, here: &str| {
            let words: Vec<&OsStr> = text.split(' ').map(OsStr::new).collect();
            check_words(words, Path::new(here)).map_err(|failure| (failure.exit, failure.text.lines().count()))
        };
        let link = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/shm", link.path().join("shm")).unwrap();
        let through = format!("bench --json {}/shm/r.json", link.path().display());
        for wrong in [
            "bench --json /dev/shm/r.json",
            "bench --json=/run/r.json -q",
            "bench --plan /run/p.toml",
            through.as_str(),
        ] {
            assert_eq!(words(wrong, "/tmp"), Err((failure::Exit::Usage, 1)), "{wrong}");
        }
        assert!(words("bench --json r.json", "/dev/shm").is_err());
        assert!(words("bench --json ../dev/shm/r.json", "/tmp").is_err());
        for right in
            ["bench --json r.json --frame-sizes 64", "bench --x /run/lab/vswitchd.log", "bench --net 1.2.0.0/16"]
        {
            assert_eq!(words(right, "/tmp"), Ok(()), "{right}");
        }
        assert!(check("--disk", Path::new("/runner/disk")).is_ok());
    }
}
