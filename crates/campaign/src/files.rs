//! Where documents go: looked at before anything is measured.

use std::path::{Path, PathBuf};

use failure::Failure;
use report::write::probe;
use rustix::fs::{access, Access};

/// Whether a document is printed instead of written: its name is `-`.
pub fn to_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Fails when two documents would go to one file, or one cannot be written afterwards.
///
/// # Errors
///
/// (usage) for one name twice; or as [`check_file`].
pub fn apart<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Failure> {
    let all: Vec<_> = files.into_iter().collect();
    let places: Vec<PathBuf> = all.iter().map(|path| place(path)).collect();
    for (i, path) in all.iter().enumerate() {
        if places[..i].contains(&places[i]) && (path.is_file() || !path.exists()) {
            return Err(Failure::usage(format!(
                "{} is named twice: each document needs a file of its own",
                path.display()
            )));
        }
        if !to_stdout(path) {
            check_file(path)?;
        }
    }
    Ok(())
}

/// Where a document lands, however its path is spelt: behind links, and from the root.
fn place(path: &Path) -> PathBuf {
    if to_stdout(path) {
        return path.to_owned();
    }
    // A link that leads to a file that is not there yet: that is written.
    let target = std::fs::read_link(path).map(|to| path.parent().unwrap_or(Path::new("")).join(to));
    let path = target.as_deref().unwrap_or(path);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let whole = path.canonicalize().ok();
    let in_parent = || Some(parent.canonicalize().ok()?.join(path.file_name()?));
    whole.or_else(in_parent).unwrap_or_else(|| path.to_owned())
}

/// Fails when this file cannot be written afterwards.
///
/// # Errors
///
/// (usage) for a path that cannot hold a file; (machine) where this user may not write, or cannot now.
pub fn check_file(path: &Path) -> Result<(), Failure> {
    let parent = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    if let Some(file) = parent.ancestors().find(|part| part.exists() && !part.is_dir()) {
        return Err(Failure::usage(format!(
            "cannot write {}: {} is not a directory: name another one",
            path.display(),
            file.display()
        )));
    }
    if !parent.is_dir() {
        return Err(Failure::usage(format!(
            "cannot write {}: its directory does not exist: make it first (mkdir -p {})",
            path.display(),
            parent.display()
        )));
    }
    let may_not = |place: &Path| access(place, Access::WRITE_OK).is_err();
    // A pipe or a device, such as /dev/stdout, is written as it is; a link to a file leads to where that is made.
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return match may_not(path) {
            true => Err(Failure::machine(format!("cannot write {}: this user may not: name a file", path.display()))),
            false => Ok(()),
        };
    }
    let target = place(path);
    let holds = target.parent().unwrap_or(parent);
    if may_not(holds) {
        return Err(Failure::machine(format!(
            "cannot write {}: this user may not write in {}: choose another directory",
            path.display(),
            holds.display()
        )));
    }
    probe(path).map_err(|e| match e.source.kind() {
        std::io::ErrorKind::Unsupported => Failure::usage(e),
        _ => Failure::machine(e),
    })?;
    if path.is_dir() {
        return Err(Failure::usage(format!("cannot write {}: it is a directory: name a file in it", path.display())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use failure::Exit;

    use super::*;

    #[test]
    fn each_document_has_a_file_of_its_own_that_can_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let exit = |files: &[PathBuf]| apart(files).map_err(|failure| failure.exit);
        std::fs::write(at("there"), "").unwrap();
        std::os::unix::fs::symlink(at("there"), at("link")).unwrap();
        std::os::unix::fs::symlink("new", at("leads")).unwrap();
        assert_eq!(exit(&[at("a"), at("b"), "-".into(), at("there")]), Ok(()));
        // Whatever is there may be named twice: a pipe, or /dev/null.
        assert_eq!(exit(&["/dev/null".into(), "/dev/null".into()]), Ok(()));
        for wrong in [
            vec![at("a"), at("b"), at("a")],
            vec!["-".into(), "-".into()],
            vec![at("there"), at("there")],
            vec![at("a"), at("./a")],
            vec![at("there"), at("../").join(dir.path().file_name().unwrap()).join("there")],
            vec![at("link"), at("there")],
            vec![at("new"), at("leads")],
            vec![at("no/such/directory/a")],
            vec![at("there/a")],
            vec![at("")],
            vec!["/proc/x".into()],
        ] {
            assert_eq!(exit(&wrong), Err(Exit::Usage), "{wrong:?}");
        }
        assert!(!at("a").exists(), "nothing is left");
    }
}
