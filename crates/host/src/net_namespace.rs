//! The network namespace of this process, and the way into another one.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use crate::Roots;

/// Where `ip netns` keeps namespaces by name.
const NAMED: &str = "/run/netns";

/// The namespace of this process, as its inode.
pub(crate) fn own(roots: &Roots) -> Option<u64> {
    inode(&roots.link("/proc/self/ns/net")?)
}

/// Whether each network namespace has such a file of its own.
pub(crate) fn has_own(path: &Path) -> bool {
    path.starts_with("/proc/sys/net") || path.starts_with("/sys/class/net")
}

/// How a command is run in a namespace: what stands before it. `None` if the namespace is gone.
///
/// # Errors
///
/// It was not found, and a process in another namespace than ours may not be looked at.
pub(crate) fn way_into(roots: &Roots, namespace: u64) -> io::Result<Option<String>> {
    let is_it =
        |name: &String| fs::metadata(roots.of_machine(NAMED).join(name)).is_ok_and(|file| file.ino() == namespace);
    // It comes first: this command mounts the /sys of the namespace, too.
    if let Some(name) = roots.names(NAMED).iter().find(|name| is_it(name)) {
        return Ok(Some(format!("ip netns exec {name}")));
    }
    let mut refused = None;
    for pid in roots.proc_numbers("") {
        match fs::read_link(roots.of_machine(format!("/proc/{pid}/ns/net"))) {
            Ok(link) if inode(&link) == Some(namespace) => return Ok(Some(format!("nsenter -t {pid} -n"))),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied && !is_with_us(roots, pid) => {
                let why = format!("is of another network namespace, and /proc/{pid}/ns/net cannot be read: {e}");
                refused = Some(io::Error::new(e.kind(), why));
            }
            _ => {}
        }
    }
    refused.map_or(Ok(None), Err)
}

/// Whether a process is in our namespace, as far as everybody may know: each has such a file of its own.
fn is_with_us(roots: &Roots, pid: u32) -> bool {
    let file = |of: &str| fs::metadata(roots.of_machine(format!("/proc/{of}/net/dev"))).ok().map(|file| file.ino());
    file("self").is_some_and(|ours| file(&pid.to_string()) == Some(ours))
}

/// The number in `net:[4026531840]`.
fn inode(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_namespace_is_found_by_its_name_or_by_a_process_in_it() {
        let root = tempfile::tempdir().unwrap();
        let roots = Roots::at(root.path());
        for (pid, link) in [("self", "net:[7]"), ("12", "net:[7]"), ("34", "net:[8]"), ("56", "other")] {
            let at = roots.of_machine(format!("/proc/{pid}/ns"));
            fs::create_dir_all(&at).unwrap();
            symlink(link, at.join("net")).unwrap();
        }
        fs::create_dir_all(roots.of_machine(NAMED)).unwrap();
        let named = roots.of_machine(NAMED).join("blue");
        fs::write(&named, "").unwrap();
        let way = |namespace: u64| way_into(&roots, namespace).unwrap();
        assert_eq!((own(&roots), way(8).as_deref(), way(9)), (Some(7), Some("nsenter -t 34 -n"), None));
        assert_eq!(way(fs::metadata(named).unwrap().ino()).as_deref(), Some("ip netns exec blue"));
        assert!(has_own(Path::new("/proc/sys/net/ipv4/ip_forward")) && has_own(Path::new("/sys/class/net/eth0/mtu")));
        assert!(!has_own(Path::new("/proc/sys/kernel/watchdog")) && !has_own(Path::new("/proc/sys/network")));
        // The machine that this runs on.
        let here = Roots::default();
        assert!(own(&here).is_some() && is_with_us(&here, std::process::id()) && !is_with_us(&here, 0));
    }
}
