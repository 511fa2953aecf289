//! A veth pair of our own, for the self-test of ports on kernel interfaces.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use failure::Failure;

/// Names of the interfaces begin with this; the process id and the end follow.
const PREFIX: &str = "lrs";

/// Says that an interface is ours: a name alone may be anybody's.
const ALIAS: &str = "linerate self-test";

/// Two joined interfaces in the network namespace of this process. They go when it is dropped.
#[derive(Debug)]
pub(crate) struct Veth {
    /// Their names.
    pub(crate) names: [String; 2],
}

impl Veth {
    /// Makes the pair and sets both ends up. No address: the kernel sends nothing over them by itself.
    ///
    /// # Errors
    ///
    /// (machine) when `ip` is missing, or the right to make interfaces.
    pub(crate) fn new() -> Result<Self, Failure> {
        remove_stale();
        let names = ["a", "b"].map(|end| format!("{PREFIX}{}{end}", std::process::id()));
        let [a, b] = &names;
        ip(&["link", "add", "name", a, "type", "veth", "peer", "name", b])?;
        let pair = Self { names };
        for name in &pair.names {
            // Refused by a kernel without IPv6, which has nothing to send then.
            let _ = ip(&["link", "set", "dev", name, "addrgenmode", "none"]);
            ip(&["link", "set", "dev", name, "alias", ALIAS])?;
            ip(&["link", "set", "dev", name, "up"])?;
        }
        Ok(pair)
    }
}

impl Drop for Veth {
    fn drop(&mut self) {
        let _ = ip(&["link", "del", "dev", &self.names[0]]);
    }
}

fn ip(args: &[&str]) -> Result<(), Failure> {
    let output = Command::new("ip")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| Failure::machine(format!("cannot run ip (Debian package iproute2): {e}")))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            let line = said.lines().next().unwrap_or("no reason given").to_owned();
            Err(Failure::machine(format!("cannot make a veth pair: ip {}: {line}", args.join(" "))))
        }
    }
}

/// Removes the pairs of processes that were killed.
fn remove_stale() {
    let Ok(entries) = std::fs::read_dir("/sys/class/net") else { return };
    for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        let alias = std::fs::read_to_string(format!("/sys/class/net/{name}/ifalias")).unwrap_or_default();
        if alias.trim() == ALIAS && owner(&name).is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = ip(&["link", "del", "dev", &name]);
        }
    }
}

/// The process that made an interface; `None` of an interface of anybody else.
fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.strip_suffix(['a', 'b'])?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_interfaces_of_ours_have_an_owner() {
        assert_eq!((owner("lrs123a"), owner("lrs4194304b")), (Some(123), Some(4_194_304)));
        for other in ["lrs", "lrsa", "lrs12", "lrs12c", "eth0", "xlrs12a", "lrs-1a"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }
}
