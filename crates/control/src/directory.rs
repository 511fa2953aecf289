//! Where control sockets are: a directory of the user's own.

use std::{
    fs, io,
    os::unix::{
        fs::{DirBuilderExt, MetadataExt},
        net::UnixStream,
    },
    path::PathBuf,
};

use failure::Failure;

/// The directory of sockets: `$XDG_RUNTIME_DIR/linerate`, else `/run/linerate` for root, else `/tmp/linerate-UID`.
pub fn directory() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let uid = own_uid();
    match runtime {
        Some(dir) if dir.is_dir() => dir.join("linerate"),
        _ if uid == 0 => PathBuf::from("/run/linerate"),
        _ => PathBuf::from(format!("/tmp/linerate-{uid}")),
    }
}

fn own_uid() -> u32 {
    fs::metadata("/proc/self").map_or(u32::MAX, |m| m.uid())
}

/// Makes the directory, for the user alone, or says why it cannot be trusted.
pub fn private_directory() -> Result<PathBuf, Failure> {
    let dir = directory();
    let fail = |why: String| Failure::machine(format!("the directory of control sockets, {}: {why}", dir.display()));
    match fs::DirBuilder::new().mode(0o700).create(&dir) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(fail(format!("{e}: set XDG_RUNTIME_DIR to a directory of yours"))),
    }
    let meta = fs::symlink_metadata(&dir).map_err(|e| fail(e.to_string()))?;
    if !meta.is_dir() || meta.uid() != own_uid() || meta.mode() & 0o077 != 0 {
        return Err(fail("must be a directory of your own with mode 0700: remove it or set XDG_RUNTIME_DIR".into()));
    }
    Ok(dir)
}

/// Names of the data planes that answer.
pub fn running() -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory()) else { return Vec::new() };
    let socket = |entry: io::Result<fs::DirEntry>| {
        let path = entry.ok()?.path();
        let name = path.file_name()?.to_str()?.strip_suffix(".sock")?.to_owned();
        UnixStream::connect(&path).is_ok().then_some(name)
    };
    let mut names: Vec<_> = entries.filter_map(socket).collect();
    names.sort();
    names
}
