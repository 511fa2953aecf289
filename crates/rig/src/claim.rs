//! One Linerate an interface: a second would take the XDP program of the first off it.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use control::private_directory;
use dpdk::PortSpec;
use failure::Failure;
use rustix::{
    fs::{flock, FlockOperation},
    io::Errno,
};

/// How often a claim that is held is tried again, a millisecond apart.
const TRIES: u32 = 20;

/// A kernel interface taken, by a lock on a file among the control sockets. The kernel lets the lock go with the process,
/// however that ends.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    _locked: File,
}

impl Claim {
    /// Takes the interfaces of all `eth:` ports. Errors (machine) when another process of this user, or this one, has one
    /// of them. Where no lock can be had there is no claim: that alone is no reason not to run.
    pub fn all(specs: &[PortSpec]) -> Result<Vec<Self>, Failure> {
        let kernel = specs.iter().filter(|spec| matches!(spec, PortSpec::Eth { .. }));
        let mut claims = Vec::new();
        for (n, spec) in kernel.enumerate() {
            let (Ok(dir), Some(name)) = (private_directory(), file_name(spec)) else { continue };
            if n == 0 {
                clear(&dir);
            }
            claims.extend(Self::take(&dir.join(name), spec)?);
        }
        Ok(claims)
    }

    fn take(path: &Path, spec: &PortSpec) -> Result<Option<Self>, Failure> {
        let mut tries = 0;
        loop {
            let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
            let Ok(mut locked) = open else { return Ok(None) };
            match flock(&locked, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                // Another may hold it for the moment in which it clears away what the dead have left.
                Err(Errno::WOULDBLOCK) if tries < TRIES => {
                    tries += 1;
                    thread::sleep(Duration::from_millis(1));
                    continue;
                }
                Err(Errno::WOULDBLOCK) => return Err(held(path, spec)),
                Err(_) => return Ok(None),
            }
            let id = |m: fs::Metadata| (m.dev(), m.ino());
            // Its last owner may have removed it after it was opened here: then the lock is on a file that nobody finds.
            if fs::metadata(path).ok().map(id) != locked.metadata().ok().map(id) {
                continue;
            }
            let written = locked.set_len(0).and_then(|()| write!(locked, "{}", std::process::id()));
            return Ok(written.ok().map(|()| Self { path: path.to_owned(), _locked: locked }));
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // While it is still locked.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes the files of processes that were killed: nobody takes the interfaces of a network namespace that is gone.
fn clear(dir: &Path) {
    for path in fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !(name.starts_with("eth-") && name.ends_with(".lock")) {
            continue;
        }
        let Ok(file) = OpenOptions::new().read(true).write(true).open(&path) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // While it is locked: who opened it before finds another file of that name, or none.
            let _ = fs::remove_file(&path);
        }
    }
}

/// An interface is one of its network namespace.
fn file_name(spec: &PortSpec) -> Option<String> {
    let PortSpec::Eth { iface, .. } = spec else { return None };
    let netns = fs::metadata("/proc/self/ns/net").ok()?.ino();
    Some(format!("eth-{netns}-{iface}.lock"))
}

fn held(path: &Path, spec: &PortSpec) -> Failure {
    let pid = fs::read_to_string(path).ok().and_then(|text| text.parse::<u32>().ok());
    let who = match pid {
        Some(pid) if pid == std::process::id() => "another --port of this command".to_owned(),
        Some(pid) => format!("another linerate, process {pid},"),
        None => "another linerate".to_owned(),
    };
    Failure::machine(format!("port {spec}: {who} has that interface: end it, or take another interface"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_alone_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("claim");
        let spec: PortSpec = "eth:t0".parse().unwrap();
        // What a process that was killed left behind is no claim.
        fs::write(&path, "1").unwrap();
        let first = Claim::take(&path, &spec).unwrap().unwrap();
        let refused = Claim::take(&path, &spec).unwrap_err();
        assert_eq!(refused.exit, failure::Exit::Machine);
        assert!(refused.text.contains("port eth:t0: another --port of this command has"), "{refused}");
        fs::write(&path, "4194305").unwrap();
        let refused = Claim::take(&path, &spec).unwrap_err();
        assert!(refused.text.contains("another linerate, process 4194305, has that interface"), "{refused}");
        drop(first);
        assert!(!path.exists());
        assert!(Claim::take(&path, &spec).unwrap().is_some());
        assert!(Claim::take(&dir.path().join("no/where"), &spec).unwrap().is_none());
    }

    #[test]
    fn what_the_dead_left_is_cleared_and_what_is_held_stays() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["eth-1-t0.lock", "eth-1-t1.lock", "forward.sock", "eth-1-t0.txt"] {
            fs::write(at(name), "1").unwrap();
        }
        let kept = Claim::take(&at("eth-1-t1.lock"), &"eth:t1".parse().unwrap()).unwrap().unwrap();
        clear(dir.path());
        let there = ["eth-1-t0.lock", "eth-1-t1.lock", "forward.sock", "eth-1-t0.txt"].map(|name| at(name).exists());
        assert_eq!(there, [false, true, true, true]);
        assert!(Claim::take(&at("eth-1-t1.lock"), &"eth:t1".parse().unwrap()).is_err());
        drop(kept);
        clear(&at("no/where"));
    }

    #[test]
    fn interfaces_are_told_apart_however_they_are_opened() {
        let name = |text: &str| file_name(&text.parse().unwrap());
        assert_eq!(name("eth:t0"), name("eth:t0,driver=af_packet"));
        assert_eq!(name("eth:t0"), name("eth:t0,start_queue=1"));
        assert_ne!(name("eth:t0"), name("eth:t1"));
        assert_eq!(name("null"), None);
    }
}
