//! A veth pair of our own, for the self-test of ports on kernel interfaces.
//!
//! It is in a network namespace without a name, which threads of ours enter to open and close the ports. So no program
//! finds the interfaces, and the kernel removes them with the process, however that ends.

use std::{
    fs::File,
    process::{Command, Stdio},
    thread,
};

use failure::Failure;
use nix::sched::{setns, unshare, CloneFlags};

/// Names of the two ends.
pub(crate) const NAMES: [&str; 2] = ["selftest0", "selftest1"];

/// Two joined interfaces in a network namespace of their own. They go when it is dropped and no port uses them.
#[derive(Debug)]
pub(crate) struct Veth {
    namespace: File,
}

impl Veth {
    /// Makes the pair and sets both ends up. No address: the kernel sends nothing over them by itself.
    ///
    /// # Errors
    ///
    /// (machine) when `ip` is missing, or the right to make a network namespace.
    pub(crate) fn new() -> Result<Self, Failure> {
        in_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|e| cannot(&format!("a network namespace for it: {e}")))?;
            let namespace = File::open("/proc/thread-self/ns/net").map_err(|e| cannot(&e.to_string()))?;
            let [a, b] = NAMES;
            ip(&["link", "add", "name", a, "type", "veth", "peer", "name", b])?;
            for name in NAMES {
                // Refused by a kernel without IPv6, which has nothing to send then.
                let _ = ip(&["link", "set", "dev", name, "addrgenmode", "none"]);
                ip(&["link", "set", "dev", name, "up"])?;
            }
            Ok(Self { namespace })
        })
    }

    /// Runs this where the interfaces are: a driver looks for them where its thread is.
    ///
    /// # Errors
    ///
    /// (machine) when the namespace cannot be entered; else those of `what`.
    pub(crate) fn inside<T: Send>(&self, what: impl FnOnce() -> Result<T, Failure> + Send) -> Result<T, Failure> {
        in_thread(|| {
            setns(&self.namespace, CloneFlags::CLONE_NEWNET).map_err(|e| cannot(&format!("its namespace: {e}")))?;
            what()
        })
    }
}

/// Runs this in a thread, whose network namespace is its own affair.
pub(crate) fn in_thread<T: Send>(what: impl FnOnce() -> Result<T, Failure> + Send) -> Result<T, Failure> {
    thread::scope(|scope| {
        scope.spawn(what).join().unwrap_or_else(|_| Err(Failure::failed("the thread of a veth pair ended early")))
    })
}

pub(crate) fn cannot(why: &str) -> Failure {
    Failure::machine(format!("cannot make a veth pair: {why}"))
}

pub(crate) fn ip(args: &[&str]) -> Result<(), Failure> {
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
            Err(cannot(&format!("ip {}: {line}", args.join(" "))))
        }
    }
}
