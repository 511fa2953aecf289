//! What can go wrong with DPDK.

use std::path::{Path, PathBuf};

use failure::Failure;

use crate::log;

/// What can go wrong with DPDK, each in one line: what, where, and what is legal or mends it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DpdkError {
    /// The EAL is started once per process.
    #[error("DPDK is already initialised in this process: it can be started only once")]
    AlreadyInitialised,
    /// The EAL was cleaned up; nothing can be made any more.
    #[error("DPDK was already cleaned up in this process")]
    CleanedUp,
    /// `rte_eal_init` failed.
    #[error("DPDK did not start: {reason} (arguments: {args})")]
    EalInit {
        /// DPDK's log line, or the errno.
        reason: String,
        /// The arguments it was given.
        args: String,
    },
    /// The shared library is another version than the headers.
    #[error("DPDK {runtime} is installed, but this program was built for {built}: rebuild it or install that version")]
    Version {
        /// The version found at run time.
        runtime: String,
        /// Year and month of the headers.
        built: String,
    },
    /// Not enough huge pages, and they were asked for.
    #[error("{needed} huge pages of 2 MiB are needed, {free} are free ({reason}): reserve them with: sysctl -w vm.nr_hugepages={needed}")]
    NoHugepages {
        /// Pages needed.
        needed: u64,
        /// Pages free as `/proc/meminfo` says.
        free: u64,
        /// Why the kernel refused.
        reason: String,
    },
    /// DPDK's memory is used up, or the machine's.
    #[error("no memory for {what}: {reason}: give DPDK more with --memory-mib")]
    NoMemory {
        /// What was to be made.
        what: String,
        /// Why it was refused.
        reason: String,
    },
    /// An option outside its legal range.
    #[error("{what}: {why}")]
    Config {
        /// The option or object, with its value.
        what: String,
        /// What is legal.
        why: String,
    },
    /// An lcore that does not exist, is the main one, or is busy.
    #[error("lcore {lcore}: {why}")]
    Lcore {
        /// The lcore's number.
        lcore: u32,
        /// What is wrong with it.
        why: String,
    },
    /// The kernel refuses a real-time priority.
    #[error(
        "the kernel refuses a real-time priority ({why}): run as root, give the program the right (setcap cap_sys_nice=ep), \
         or raise the limit to 2 or more (ulimit -r)"
    )]
    Realtime {
        /// The kernel's reason.
        why: String,
    },
    /// A closure on another lcore panicked.
    #[error("the work on lcore {lcore} panicked: {message}")]
    Panicked {
        /// Where.
        lcore: u32,
        /// The panic's message.
        message: String,
    },
    /// A port's text could not be read.
    #[error("port {text:?}: {why}")]
    Spec {
        /// The text as given.
        text: String,
        /// What is wrong and what is legal.
        why: String,
    },
    /// A PCI device that is not there.
    #[error("port {address}: no such network device on the PCI bus: list them with: linerate ports")]
    NoPciDevice {
        /// The address.
        address: String,
    },
    /// A PCI device that belongs to the kernel.
    #[error("port {address}: bound to {driver}, not to a driver for user space: bind it with: linerate ports --bind vfio-pci {address}")]
    PciNotBound {
        /// The address.
        address: String,
        /// The kernel driver, or `no driver`.
        driver: String,
    },
    /// A PCI device that can reach only memory of which the physical addresses are known.
    #[error(
        "port {address}: bound to {driver} without an IOMMU, so it reaches only hugepages: leave out --memory no-hugepages, or bind \
         it to vfio-pci on a machine with an IOMMU"
    )]
    PciNeedsHugepages {
        /// The address.
        address: String,
        /// Its driver.
        driver: String,
    },
    /// A network interface that is not there.
    #[error("port eth:{name}: no such interface: the interfaces are {there}")]
    NoInterface {
        /// The interface asked for.
        name: String,
        /// Those that exist.
        there: String,
    },
    /// Another process listens on the socket already.
    #[error("port {port}: another process listens on {path}: stop it or choose another path")]
    SocketBusy {
        /// The port's text.
        port: String,
        /// The socket.
        path: PathBuf,
    },
    /// Nothing listens on the socket.
    #[error("port {port}: {why}: start the other side first, or listen here with {server}")]
    SocketMissing {
        /// The port's text.
        port: String,
        /// No file, or nobody behind it.
        why: String,
        /// The option that makes us the server.
        server: &'static str,
    },
    /// The socket's file is there, and nobody listens on it: the process that made it has ended.
    #[error(
        "port {port}: nobody listens on {path}: start the other side first, or remove the file and listen here: rm {path}, then {server}"
    )]
    SocketStale {
        /// The port's text.
        port: String,
        /// The file.
        path: PathBuf,
        /// The option that makes us the server.
        server: &'static str,
    },
    /// We listened, and no peer connected.
    #[error("port {port}: no peer connected to {path} ({after}): start the other side with this path as the client")]
    NoPeer {
        /// The port's text.
        port: String,
        /// The socket.
        path: PathBuf,
        /// How long we waited, or that we were interrupted.
        after: String,
    },
    /// A file that is not there or cannot be used.
    #[error("port {port}: {}{why}", unless_named(.port, .path))]
    File {
        /// The port's text.
        port: String,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A right is missing.
    #[error("{what}: not permitted: {mend}")]
    NoPermission {
        /// What was tried.
        what: String,
        /// The command that gives the right.
        mend: String,
    },
    /// A queue was taken before, or does not exist.
    #[error("port {port}: {direction} queue {queue} {why}")]
    Queue {
        /// The port's name.
        port: String,
        /// `receive` or `transmit`.
        direction: &'static str,
        /// The queue's number.
        queue: u16,
        /// `is already taken`, or how many there are.
        why: String,
    },
    /// The driver refused.
    #[error("port {port}: {step} failed: {reason}")]
    Driver {
        /// The port's text or name.
        port: String,
        /// What was being done.
        step: String,
        /// DPDK's log line, or the errno.
        reason: String,
    },
    /// A forwarding table refused.
    #[error("{table} table: {what}: {reason}")]
    Fib {
        /// `IPv4` or `IPv6`.
        table: &'static str,
        /// The route or the action.
        what: String,
        /// Why.
        reason: String,
    },
}

/// The path before what is wrong with it, if the port's text does not end with the path.
fn unless_named(port: &str, path: &Path) -> String {
    let path = path.display().to_string();
    if port.strip_suffix(&path).is_some_and(|before| before.ends_with([':', '='])) {
        String::new()
    } else {
        path + ": "
    }
}

impl DpdkError {
    /// Whether the machine lacks something (memory, a right, a driver, a peer) rather than the input being wrong.
    /// The program's exit code is 4 then, and 2 otherwise.
    pub fn machine_lacks(&self) -> bool {
        use DpdkError::*;
        match self {
            EalInit { .. } | Version { .. } | NoHugepages { .. } | NoMemory { .. } | NoPermission { .. } => true,
            PciNotBound { .. }
            | PciNeedsHugepages { .. }
            | SocketBusy { .. }
            | SocketMissing { .. }
            | SocketStale { .. }
            | NoPeer { .. }
            | Realtime { .. }
            | Driver { .. } => true,
            AlreadyInitialised | CleanedUp | Config { .. } | Lcore { .. } | Panicked { .. } | Spec { .. } => false,
            NoPciDevice { .. } | NoInterface { .. } | File { .. } | Queue { .. } | Fib { .. } => false,
        }
    }

    /// A driver's error, with DPDK's log line if there was one since the last mark.
    pub(crate) fn driver(port: &str, step: impl Into<String>, err: i32) -> Self {
        const NO_MEMORY: i32 = 12;
        let line = log::error_line();
        if err.abs() == NO_MEMORY && line.is_empty() {
            return Self::NoMemory { what: format!("port {port}"), reason: log::errno_text(err) };
        }
        Self::Driver { port: port.to_string(), step: step.into(), reason: reason(&line, err) }
    }
}

impl From<DpdkError> for Failure {
    fn from(e: DpdkError) -> Self {
        if matches!(e, DpdkError::Panicked { .. } | DpdkError::Lcore { .. }) {
            Self::failed(e)
        } else if e.machine_lacks() {
            Self::machine(e)
        } else {
            Self::usage(e)
        }
    }
}

/// The log line and the errno as one text.
pub(crate) fn reason(line: &str, err: i32) -> String {
    if line.is_empty() {
        log::errno_text(err)
    } else {
        format!("{line} ({})", log::errno_text(err))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_file_is_said_once() {
        let said = |port: &str, path: &str| {
            DpdkError::File { port: port.into(), path: path.into(), why: "gone".into() }.to_string()
        };
        assert_eq!(said("pcap:a.pcap", "a.pcap"), "port pcap:a.pcap: gone");
        assert_eq!(said("pcap:rx=a.pcap", "a.pcap"), "port pcap:rx=a.pcap: gone");
        assert_eq!(said("pcap:rx=a.pcap,tx=b.pcap", "a.pcap"), "port pcap:rx=a.pcap,tx=b.pcap: a.pcap: gone");
        assert_eq!(said("memif:x.sock", "/tmp/x.sock"), "port memif:x.sock: /tmp/x.sock: gone");
    }
}
