//! Bytes into a file, whole or not at all.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// A file that could not be written: one line with what to do.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {}", crate::text::clean(&.path.to_string_lossy()), cause(.source))]
pub struct WriteError {
    /// The file asked for.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

fn cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full: free some space or name a file on another disk",
        io::ErrorKind::QuotaExceeded => "the disk quota is used up: free some space or name a file on another disk",
        io::ErrorKind::PermissionDenied => "permission denied: name a file in a directory you may write to",
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only: name a file on another one",
        io::ErrorKind::NotFound => "its directory does not exist: make it first (mkdir -p)",
        io::ErrorKind::NotADirectory => "a part of the path is a file, not a directory",
        io::ErrorKind::IsADirectory => "it is a directory: name a file in it",
        _ => return error.to_string(),
    }
    .to_owned()
}

/// Writes a file in one step: a reader sees the old content or all of the new, and a failure leaves the old.
///
/// The bytes go to a temporary file in the same directory, to the disk, and then to their name. What is not a regular
/// file (`/dev/stdout`, a FIFO) is written directly. A symbolic link keeps pointing where it does.
///
/// # Errors
/// [`WriteError`], with nothing left behind.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    with(path, |file| file.write_all(bytes)).map_err(|source| WriteError { path: path.to_owned(), source })
}

/// Whether [`write_atomic`] could make a file of this name: tries to, and leaves nothing.
///
/// # Errors
/// [`WriteError`].
pub fn probe(path: &Path) -> Result<(), WriteError> {
    let failed = |source| WriteError { path: path.to_owned(), source };
    match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => temporary_for(path).map(drop).map_err(failed),
        Err(e) => Err(failed(e)),
        // What is there is found out when it is written.
        Ok(_) => Ok(()),
    }
}

/// A temporary file in the directory of this one. It removes itself.
fn temporary_for(target: &Path) -> io::Result<tempfile::NamedTempFile> {
    let directory = match target.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    // 0666 less the umask, as any file made by hand.
    let made = tempfile::Builder::new()
        .prefix(".linerate-")
        .suffix(".tmp")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(directory);
    made.map_err(|e| match directory.is_dir() {
        // Such as /proc, which makes no files.
        true if e.kind() == io::ErrorKind::NotFound => {
            io::Error::new(io::ErrorKind::Unsupported, "its directory takes no files: name a file elsewhere")
        }
        _ => bare(e),
    })
}

fn with(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let target = match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory)),
        Ok(meta) if !meta.is_file() => {
            let mut file = File::options().write(true).open(path)?;
            fill(&mut file)?;
            return file.flush();
        }
        Ok(_) => fs::canonicalize(path)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(e) => return Err(e),
    };
    let mut temporary = temporary_for(&target)?;
    fill(temporary.as_file_mut())?;
    temporary.as_file().sync_all()?;
    temporary.persist(&target).map_err(|e| e.error)?;
    // The name too must survive a power cut; a file system that cannot sync a directory has done what it can.
    if let Some(Ok(dir)) = target.parent().map(File::open) {
        let _ = dir.sync_all();
    }
    Ok(())
}

/// Without the temporary name that `tempfile` adds: the user asked for another file.
fn bare(error: io::Error) -> io::Error {
    error.kind().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn replaces_whole_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.json");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(dir.path()), ["run.json"]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o600, 0o600);
    }

    #[test]
    fn a_link_keeps_pointing() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write_atomic(&link, b"new").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_disk_that_fills_half_way_keeps_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.json");
        fs::write(&path, "old").unwrap();
        let err = with(&path, |f| {
            f.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(err.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!((fs::read(&path).unwrap(), names(dir.path()).len()), (b"old".to_vec(), 1));
    }

    #[test]
    fn each_failure_is_one_line_with_a_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let mut errors = Vec::new();
        for path in [
            Path::new("/dev/full"),
            &dir.path().join("none/run.json"),
            dir.path(),
            Path::new("/proc/linerate.json"),
            Path::new("/dev/null/run.json"),
        ] {
            let text = write_atomic(path, b"x").unwrap_err().to_string();
            assert!(!text.contains('\n') && !text.contains(".linerate-"), "{text}");
            assert!(path.is_dir() || path == Path::new("/dev/full") || probe(path).is_err(), "{}", path.display());
            errors.push(text.replace(dir.path().to_str().unwrap(), "[dir]"));
        }
        insta::assert_snapshot!(errors.join("\n"), @r"
        cannot write /dev/full: the disk is full: free some space or name a file on another disk
        cannot write [dir]/none/run.json: its directory does not exist: make it first (mkdir -p)
        cannot write [dir]: it is a directory: name a file in it
        cannot write /proc/linerate.json: its directory takes no files: name a file elsewhere
        cannot write /dev/null/run.json: a part of the path is a file, not a directory
        ");
        assert!(probe(&dir.path().join("run.json")).is_ok());
        assert!(names(dir.path()).is_empty());
    }
}
