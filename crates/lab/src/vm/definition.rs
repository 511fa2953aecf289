//! A virtual machine before it is a command line of QEMU or an XML of libvirt.

use super::GuestSpec;

/// The place of a machine's first network port on its PCI bus.
pub const FIRST_SLOT: u32 = 3;

/// The PCI address of a machine's network port, as the machine sees it.
pub fn pci_address(port: u32) -> String {
    format!("0000:00:{:02x}.0", FIRST_SLOT + port)
}

/// Virtio without offloads and merged buffers, as in both documents: frames pass as they came. Names are those of QEMU.
pub const OFF: [&str; 13] = [
    "mrg_rxbuf",
    "csum",
    "gso",
    "guest_csum",
    "guest_tso4",
    "guest_tso6",
    "guest_ecn",
    "guest_ufo",
    "host_tso4",
    "host_tso6",
    "host_ecn",
    "host_ufo",
    "guest_announce",
];

/// A virtual machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// `kvm` or `tcg`.
    pub accelerator: &'static str,
    /// What is run in it.
    pub spec: GuestSpec,
    /// The disk that it boots in place of an image made on the spot.
    pub disk: Option<String>,
    /// Its memory, MiB.
    pub mib: u32,
    /// Whether its memory is hugepages of this machine.
    pub hugepages: bool,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// The CPU of each virtual CPU; none: anywhere.
    pub pins: Vec<(u32, u32)>,
    /// The CPU of QEMU's other threads.
    pub emulator_cpu: u32,
    /// Its network ports, in order.
    pub ports: Vec<MachinePort>,
    /// The boot line of its kernel.
    pub kernel_line: String,
    /// The beginning of the paths of its files: `.kernel`, `.cpio`, `.ctl` and `.qmp` follow.
    pub files: String,
}

/// A network port of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachinePort {
    /// What it is joined to.
    pub joined: Joined,
    /// Its address.
    pub mac: String,
    /// Queues in each direction.
    pub queues: u32,
    /// Descriptors of each ring.
    pub ring: u32,
}

/// What a port of a machine is joined to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Joined {
    /// The switch takes this socket, which QEMU serves.
    VhostUser(String),
    /// An interface of the lab.
    Tap(String),
}

/// The longest transmit ring that QEMU takes to a machine where it serves the ring itself.
const OWN_RING: u32 = 256;

impl MachinePort {
    /// Descriptors of each transmit ring.
    pub fn tx_ring(&self) -> u32 {
        match self.joined {
            Joined::VhostUser(_) => self.ring,
            Joined::Tap(_) => self.ring.min(OWN_RING),
        }
    }
}

impl Definition {
    /// A file of the machine.
    pub fn file(&self, end: &str) -> String {
        format!("{}.{end}", self.files)
    }
}
