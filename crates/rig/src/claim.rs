//! One Linerate for each interface: a second would remove the XDP program of the first.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use control::private_directory;
use dpdk::PortSpec;
use failure::Failure;

use crate::lock_file::{remove_stale, Attempt, LockFile};

/// A claim on a kernel interface: a locked file among the control sockets.
#[derive(Debug)]
pub struct Claim {
    _file: LockFile,
}

impl Claim {
    /// Claims the interfaces of all `eth:` ports. Where no lock can be had, the run goes on without a claim.
    ///
    /// # Errors
    ///
    /// (machine) when another process of this user, or this one, has one of the interfaces.
    pub fn all(specs: &[PortSpec]) -> Result<Vec<Self>, Failure> {
        let kernel = specs.iter().filter(|spec| matches!(spec, PortSpec::Eth { .. }));
        let mut claims = Vec::new();
        for (n, spec) in kernel.enumerate() {
            let (Ok(dir), Some(name)) = (private_directory(), file_name(spec)) else { continue };
            if n == 0 {
                // Nobody claims the interfaces of a network namespace that is gone, so their files would stay.
                remove_stale(&dir, "eth-");
            }
            claims.extend(Self::take(&dir.join(name), spec)?);
        }
        Ok(claims)
    }

    fn take(path: &Path, spec: &PortSpec) -> Result<Option<Self>, Failure> {
        match LockFile::take(path, &std::process::id().to_string()) {
            Attempt::Taken(file) => Ok(Some(Self { _file: file })),
            Attempt::Held(owner) => Err(held(&owner, spec)),
            Attempt::Impossible => Ok(None),
        }
    }
}

/// An interface belongs to its network namespace.
fn file_name(spec: &PortSpec) -> Option<String> {
    let PortSpec::Eth { iface, .. } = spec else { return None };
    let netns = fs::metadata("/proc/self/ns/net").ok()?.ino();
    Some(format!("eth-{netns}-{iface}.lock"))
}

fn held(owner: &str, spec: &PortSpec) -> Failure {
    let who = match owner.parse::<u32>() {
        Ok(pid) if pid == std::process::id() => "another --port of this command".to_owned(),
        Ok(pid) => format!("another linerate, process {pid},"),
        Err(_) => "another linerate".to_owned(),
    };
    Failure::machine(format!("port {spec}: {who} has that interface: stop it, or give another interface"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_claimed_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("claim");
        let spec: PortSpec = "eth:t0".parse().unwrap();
        let first = Claim::take(&path, &spec).unwrap().unwrap();
        let refused = Claim::take(&path, &spec).unwrap_err();
        assert_eq!(refused.exit, failure::Exit::Machine);
        insta::assert_snapshot!(refused, @"port eth:t0: another --port of this command has that interface: stop it, or give another interface");
        fs::write(&path, "4194305").unwrap();
        insta::assert_snapshot!(Claim::take(&path, &spec).unwrap_err(), @"port eth:t0: another linerate, process 4194305, has that interface: stop it, or give another interface");
        drop(first);
        assert!(Claim::take(&path, &spec).unwrap().is_some());
        assert!(Claim::take(&dir.path().join("no/where"), &spec).unwrap().is_none());
    }

    #[test]
    fn interfaces_are_distinguished_however_they_are_opened() {
        let name = |text: &str| file_name(&text.parse().unwrap());
        assert_eq!(name("eth:t0"), name("eth:t0,driver=af_packet"));
        assert_eq!(name("eth:t0"), name("eth:t0,start_queue=1"));
        assert_ne!(name("eth:t0"), name("eth:t1"));
        assert_eq!(name("null"), None);
    }
}
