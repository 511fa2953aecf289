//! Checks before writing to a file of JSON lines: the lock, and a complete last line.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind},
    os::unix::fs::FileExt,
    path::Path,
};

/// Bytes that are more than any line has.
const LINE: usize = 4096;

/// Errors when the path is a regular file that does not hold JSON lines or that another process writes, or a symbolic link
/// to one, or may not be written. Does not read pipes.
pub(super) fn check(path: &Path) -> io::Result<()> {
    let found = fs::metadata(path);
    let is_file = found.as_ref().map_or(true, fs::Metadata::is_file);
    if is_file && fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) {
        let target = fs::canonicalize(path).or_else(|_| fs::read_link(path))?;
        let why =
            format!("is a symbolic link, which rotation would replace: name the file itself, {}", target.display());
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    match found {
        Ok(meta) if meta.is_file() => {
            let file = OpenOptions::new().read(true).append(true).open(path)?;
            lock_alone(&file)?;
            whole_lines(&file).map(drop)
        }
        Ok(_) => rustix::fs::access(path, rustix::fs::Access::WRITE_OK).map_err(io::Error::from),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // Whether it could be made: another process that is as far finds its own file again.
            match OpenOptions::new().write(true).create_new(true).open(path) {
                Ok(_) => fs::remove_file(path),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

/// Whether the path itself is a file, not a symbolic link to one, or a device: only such a path is renamed.
pub(super) fn is_file_itself(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

/// Locks the file for this handle: two writers would cut each other's lines when they cut back a failed write.
pub(super) fn lock_alone(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(io::Error::new(
            ErrorKind::ResourceBusy,
            "another process writes to this file: give each logger its own",
        )),
        // A file system without locks.
        Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Unsupported => Err(error),
        _ => Ok(()),
    }
}

/// Bytes up to and including the last newline. Errors when the bytes after it do not look like the start of a line.
pub(super) fn whole_lines(file: &File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let mut bytes = [0; LINE];
    let start = length.saturating_sub(LINE as u64);
    let tail = bytes.get_mut(..usize::try_from(length - start).unwrap_or(LINE)).unwrap_or_default();
    file.read_exact_at(tail, start)?;
    let whole = tail.iter().rposition(|&byte| byte == b'\n').map(|at| at + 1);
    let rest = tail.get(whole.unwrap_or(0)..).unwrap_or_default();
    let ours = rest.first().is_none_or(|&byte| byte == b'{') && (whole.is_some() || start == 0);
    if !ours {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            "the file exists and does not hold JSON lines: name another file",
        ));
    }
    Ok(start + whole.unwrap_or(0) as u64)
}
