//! Virtual machines of a lab: what one is told, the kernel it boots, and questions to it.
//!
//! A guest boots a kernel of this machine and an image in memory with Linerate as its first process (the crate `guest`).
//! That process carries out [`GuestSpec::steps`] as a lab's holder does, and then answers over a virtio-serial port.

mod ask;
mod definition;
mod disk;
pub mod kernel;
pub mod libvirt;
pub mod qemu;
pub mod qmp;
mod spec;

pub use ask::{ask, Answered, Asked};
pub use definition::{pci_address, Definition, Joined, MachinePort, FIRST_SLOT};
pub use spec::GuestSpec;

/// The name of the virtio-serial port.
pub const PORT: &str = "linerate";

/// Where a guest's files are, in a file system of its own.
pub const GUEST_DIR: &str = "/run/lab";

/// The program in the guest: the first process, and every later call of Linerate.
pub const INIT: &str = "/init";
