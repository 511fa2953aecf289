//! Real systems under test for the whole-program tests: dpdk-testpmd, Open vSwitch with DPDK, and the Linux kernel
//! in namespaces of our own.
//!
//! Every fixture is an owner: what it started ends when it is dropped, also when the test panics, each process by its
//! id. Names carry this process's id, files live in a temporary directory, and DPDK's runtime directory and OVS's
//! databases are put there too, so nothing outlives a test. A missing prerequisite is a failure, never a skip.
//!
//! The functions panic with what was tried and the tail of the log: they are test code and have no caller to tell.

// Each test file compiles its own copy and uses a part of it; panicking is how a fixture reports.
#![allow(dead_code, unused_imports, missing_docs, clippy::panic, clippy::expect_used, clippy::unwrap_used)]

pub mod ending;
pub mod forwarder;
pub mod frames;
pub mod guest;
mod kernel;
pub mod labs;
mod netns;
mod ovs;
mod process;
pub mod raw;
pub mod tester;
mod testpmd;
pub mod words;

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub use kernel::{IfCounters, KernelDut, Tbf};
pub use netns::Netns;
pub use ovs::{OvsCounters, OvsDpdk};
pub use process::{run, send_signal, wait_until, Process};
pub use testpmd::{Forward, Memory, PortCounters, Testpmd, TestpmdSetup};
pub use words::Words;

/// The CPU a DUT gets on a machine of two: `linerate` takes the last for the tester and this one for the other side.
pub const DUT_CPU: usize = 0;

/// What a test needs from the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// To be root: namespaces, AF_XDP, hugepages.
    Root,
    /// At least this many free 2 MiB hugepages.
    Hugepages(usize),
    /// `dpdk-testpmd`.
    Testpmd,
    /// Open vSwitch built with DPDK, and its command-line tools.
    OvsDpdk,
    /// `ip`, `tc` and `ethtool`.
    Network,
    /// QEMU, and a kernel for guests.
    Machines,
    /// What makes a disk that boots.
    BootableDisks,
    /// `ssh`, and a server for it that is not the system's.
    Ssh,
    /// `sockperf`.
    Sockperf,
    /// What takes a core away, and what sees that: `stress-ng`, `oslat`, `cyclictest`.
    Noise,
}

/// Fails the test, naming the command that mends it, unless the machine has all of `needs`.
///
/// # Panics
/// When something is missing. There is no way to skip: a test that did not run has shown nothing.
#[track_caller]
pub fn require(needs: &[Needs]) {
    for need in needs {
        let (met, remedy) = match need {
            Needs::Root => (is_root(), "run the tests as root: sudo -E make test".to_owned()),
            Needs::Hugepages(n) => (
                free_hugepages() >= *n,
                format!("sudo scripts/hugepages.sh 512 ({} free, {n} needed)", free_hugepages()),
            ),
            Needs::Testpmd => (on_path("dpdk-testpmd"), apt("dpdk-dev")),
            Needs::OvsDpdk => (
                Path::new(ovs::VSWITCHD).exists()
                    && ["ovsdb-server", "ovs-vsctl", "ovs-ofctl"].iter().all(|p| on_path(p)),
                apt("openvswitch-switch-dpdk"),
            ),
            Needs::Machines => (
                on_path("qemu-system-x86_64") && lab::vm::kernel::Kernel::find().is_some(),
                apt("qemu-system-x86 linux-image-cloud-amd64"),
            ),
            Needs::BootableDisks => (
                ["grub-mkrescue", "xorriso", "mformat"].iter().all(|p| on_path(p)),
                apt("grub-pc-bin grub-common xorriso mtools"),
            ),
            Needs::Ssh => {
                (["ssh", "ssh-keygen", "dropbear"].iter().all(|p| on_path(p)), apt("openssh-client dropbear-bin"))
            }
            Needs::Sockperf => (on_path("sockperf"), apt("sockperf")),
            Needs::Noise => {
                (["stress-ng", "oslat", "cyclictest"].iter().all(|p| on_path(p)), apt("stress-ng rt-tests"))
            }
            Needs::Network => (["ip", "tc", "ethtool"].iter().all(|p| on_path(p)), apt("iproute2 ethtool")),
        };
        assert!(met, "this test cannot run here, which is a failure: {need:?} is missing. Remedy: {remedy}");
    }
}

fn apt(packages: &str) -> String {
    format!("sudo apt-get install -y {packages}   (or: scripts/setup.sh --test)")
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    // Without libc: the owner of our own /proc directory is the effective user.
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").expect("/proc is mounted")) == 0
}

/// Hugepages of 2 MiB that are neither used nor reserved.
pub fn free_hugepages() -> usize {
    let read = |name: &str| -> usize {
        let path = format!("/sys/kernel/mm/hugepages/hugepages-2048kB/{name}");
        std::fs::read_to_string(path).ok().and_then(|t| t.trim().parse().ok()).unwrap_or(0)
    };
    read("free_hugepages").saturating_sub(read("resv_hugepages"))
}

fn on_path(program: &str) -> bool {
    // An ordinary user's PATH has no sbin, where ip, tc and ovsdb-server are.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    path.split(':').any(|dir| Path::new(dir).join(program).exists())
}

/// A name no other fixture of any running test has: `<stem><pid>x<n>`, short enough for an interface or a namespace.
pub fn unique(stem: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{stem}{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Held while a test uses the machine's cores: tests in other threads and other processes wait for it.
///
/// Two cores carry one tester and one DUT, not two of each. The lock is a socket name, which the kernel lets go when
/// its owner ends, however that happens.
#[must_use = "the machine is only ours while this lives"]
pub fn exclusive() -> UnixListener {
    let name = SocketAddr::from_abstract_name("linerate-tests").expect("a valid name");
    let end = Instant::now() + Duration::from_secs(900);
    loop {
        match UnixListener::bind_addr(&name) {
            Ok(lock) => return lock,
            Err(e) if e.kind() == ErrorKind::AddrInUse && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(e) => panic!("another test has had the machine for 15 minutes: {e}"),
        }
    }
}
