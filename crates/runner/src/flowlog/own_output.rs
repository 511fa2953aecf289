//! Whether a path leads to where this process writes its reports.

use std::{
    fs::{metadata, File, Metadata},
    io::{stderr, stdout, IsTerminal},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::{FileTypeExt, MetadataExt},
    },
    path::Path,
};

/// Whether the path leads to this process's standard output or standard error: under a name such as `/dev/stdout`, or to
/// the same file, pipe or terminal. `/dev/null` may be both.
pub fn is_own_output(path: &Path) -> bool {
    let (out, err) = (stdout(), stderr());
    is_same(path, out.as_fd(), out.is_terminal()) || is_same(path, err.as_fd(), err.is_terminal())
}

fn is_same(path: &Path, fd: BorrowedFd<'_>, terminal: bool) -> bool {
    let ours = fd.try_clone_to_owned().and_then(|fd| File::from(fd).metadata());
    let (Ok(there), Ok(ours)) = (metadata(path), ours) else { return false };
    let place = |of: &Metadata| (of.dev(), of.ino(), of.rdev());
    place(&there) == place(&ours) && (terminal || !there.file_type().is_char_device())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_file_by_any_name_is_ours_and_the_null_device_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let [path, link, other] = ["a", "b", "c"].map(|name| dir.path().join(name));
        let file = File::create(&path).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        File::create(&other).unwrap();
        assert_eq!([&path, &link, &other].map(|path| is_same(path, file.as_fd(), false)), [true, true, false]);
        let (reader, writer) = std::io::pipe().unwrap();
        let by_number = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
        assert!(is_same(Path::new(&by_number), writer.as_fd(), false));
        let null = File::options().write(true).open("/dev/null").unwrap();
        assert!(!is_same(Path::new("/dev/null"), null.as_fd(), false));
        drop(reader);
    }
}
