//! Locked files among the control sockets: signs of a process that the kernel takes down with it.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Seek, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{flock, FlockOperation},
    io::Errno,
};

/// Bytes that are more than any owner writes.
const MOST_LEFT: u64 = 256;

/// How often a lock that another process holds is tried again, a millisecond apart.
const TRIES: u32 = 20;

/// A file that this process has locked. It is removed when this is dropped. The kernel releases the lock when the process
/// ends, however that happens; the file then stays, and whoever finds it removes it.
#[derive(Debug)]
pub(crate) struct LockFile {
    path: PathBuf,
    /// What an owner that was killed had written; empty if there was none.
    pub(crate) left: String,
    _locked: File,
}

/// What became of an attempt to lock a file.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// This process has the lock.
    Taken(LockFile),
    /// Another owner has it, who wrote this into the file.
    Held(String),
    /// No lock can be had there: no directory, no permission, no support.
    Impossible,
}

impl LockFile {
    /// Locks the file, and waits so long for another owner. `None` when that did not do.
    pub(crate) fn wait(path: &Path, most: Duration) -> Option<Self> {
        let until = Instant::now() + most;
        loop {
            match Self::take(path, "") {
                Attempt::Taken(lock) => return Some(lock),
                Attempt::Held(_) if Instant::now() < until => thread::sleep(Duration::from_millis(20)),
                _ => return None,
            }
        }
    }

    /// Locks the file, which is made if it is not there, and writes `content` into it.
    pub(crate) fn take(path: &Path, content: &str) -> Attempt {
        let mut tries = 0;
        loop {
            let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
            let Ok(mut locked) = open else { return Attempt::Impossible };
            match flock(&locked, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                // Another process may hold it for a moment, while it removes the files of ended processes.
                Err(Errno::WOULDBLOCK) if tries < TRIES => {
                    tries += 1;
                    thread::sleep(Duration::from_millis(1));
                    continue;
                }
                Err(Errno::WOULDBLOCK) => return Attempt::Held(fs::read_to_string(path).unwrap_or_default()),
                Err(_) => return Attempt::Impossible,
            }
            let id = |m: fs::Metadata| (m.dev(), m.ino());
            // Its last owner may have removed the file after it was opened here: nobody would find this lock.
            if fs::metadata(path).ok().map(id) != locked.metadata().ok().map(id) {
                continue;
            }
            let mut left = String::new();
            let read = (&locked).take(MOST_LEFT).read_to_string(&mut left).and_then(|_| locked.rewind());
            return match read.and_then(|()| locked.set_len(0)).and_then(|()| locked.write_all(content.as_bytes())) {
                Ok(()) => Attempt::Taken(Self { path: path.to_owned(), left, _locked: locked }),
                Err(_) => Attempt::Impossible,
            };
        }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // While it is still locked.
        let _ = fs::remove_file(&self.path);
    }
}

/// The files in a directory whose names begin so and end with `.lock`.
pub(crate) fn lock_files(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_lock = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(prefix) && name.ends_with(".lock")
    };
    entries.map(|entry| entry.path()).filter(is_lock).collect()
}

/// Removes such files of processes that were killed.
pub(crate) fn remove_stale(dir: &Path, prefix: &str) {
    for path in lock_files(dir, prefix) {
        let Ok(file) = OpenOptions::new().read(true).write(true).open(&path) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // While it is locked: a process that has it open already then finds another file of that name, or none.
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_exclusive_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.lock");
        // A killed process left this behind.
        fs::write(&path, "1").unwrap();
        let Attempt::Taken(first) = LockFile::take(&path, "mine") else { panic!("not taken") };
        assert!(matches!(LockFile::take(&path, "yours"), Attempt::Held(text) if text == "mine"));
        drop(first);
        assert!(!path.exists());
        assert!(matches!(LockFile::take(&path, ""), Attempt::Taken(_)));
        assert!(matches!(LockFile::take(&dir.path().join("no/where"), ""), Attempt::Impossible));
    }

    #[test]
    fn files_of_ended_processes_are_removed_and_held_ones_stay() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["eth-1-t0.lock", "eth-1-t1.lock", "forward.sock", "eth-1-t0.txt"] {
            fs::write(at(name), "1").unwrap();
        }
        let Attempt::Taken(kept) = LockFile::take(&at("eth-1-t1.lock"), "1") else { panic!("not taken") };
        remove_stale(dir.path(), "eth-");
        let there = ["eth-1-t0.lock", "eth-1-t1.lock", "forward.sock", "eth-1-t0.txt"].map(|name| at(name).exists());
        assert_eq!(there, [false, true, true, true]);
        assert!(matches!(LockFile::take(&at("eth-1-t1.lock"), "2"), Attempt::Held(_)));
        drop(kept);
        remove_stale(&at("no/where"), "eth-");
    }
}
