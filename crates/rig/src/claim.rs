//! One Linerate for each interface: a second would remove the XDP program of the first.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use control::private_directory;
use dpdk::PortSpec;
use failure::Failure;

use crate::lock_file::{lock_files, remove_stale, Attempt, LockFile};

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
    /// (machine) when another process of this user has one of the interfaces; (usage) when this one has.
    pub fn all(specs: &[PortSpec]) -> Result<Vec<Self>, Failure> {
        let kernel = specs.iter().filter(|spec| matches!(spec, PortSpec::Eth { .. }));
        let mut claims = Vec::new();
        for (n, spec) in kernel.enumerate() {
            let (Ok(dir), Some(name)) = (private_directory(), file_name(spec)) else { continue };
            if n == 0 {
                mend_interfaces(&dir);
                // Nobody claims the interfaces of a network namespace that is gone, so their files would stay.
                remove_stale(&dir, "eth-");
            }
            claims.extend(Self::take(&dir.join(name), spec)?);
        }
        Ok(claims)
    }

    fn take(path: &Path, spec: &PortSpec) -> Result<Option<Self>, Failure> {
        let PortSpec::Eth { iface, .. } = spec else { return Ok(None) };
        let plain = if dpdk::is_promiscuous(iface) == Some(false) { PLAIN } else { "" };
        match LockFile::take(path, &format!("{}{plain}", std::process::id())) {
            Attempt::Taken(file) => Ok(Some(Self { _file: file })),
            Attempt::Held(owner) => Err(held(&owner, spec)),
            Attempt::Impossible => Ok(None),
        }
    }
}

/// Behind the id of a process: the interface received no frames for others when it was claimed.
const PLAIN: &str = " plain";

/// Interfaces of this network namespace whose Linerate was killed receive frames for others no longer, if they did not before.
fn mend_interfaces(dir: &Path) {
    let Some(prefix) = prefix() else { return };
    for path in lock_files(dir, &prefix) {
        let Attempt::Taken(file) = LockFile::take(&path, "") else { continue };
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let iface = name.strip_prefix(&prefix).and_then(|name| name.strip_suffix(".lock"));
        if let Some(iface) = iface.filter(|_| file.left.ends_with(PLAIN)) {
            // It may be gone.
            let _ = dpdk::end_promiscuous(iface);
        }
    }
}

/// An interface belongs to its network namespace.
fn file_name(spec: &PortSpec) -> Option<String> {
    let PortSpec::Eth { iface, .. } = spec else { return None };
    Some(format!("{}{iface}.lock", prefix()?))
}

fn prefix() -> Option<String> {
    let netns = fs::metadata("/proc/self/ns/net").ok()?.ino();
    Some(format!("eth-{netns}-"))
}

fn held(owner: &str, spec: &PortSpec) -> Failure {
    let who = match owner.trim_end_matches(PLAIN).parse::<u32>() {
        Ok(pid) if pid == std::process::id() => {
            return Failure::usage(format!(
                "port {spec}: another --port of this command has that interface: give each once"
            ));
        }
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
        assert_eq!(refused.exit, failure::Exit::Usage);
        insta::assert_snapshot!(refused, @"port eth:t0: another --port of this command has that interface: give each once");
        fs::write(&path, format!("4194305{PLAIN}")).unwrap();
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
