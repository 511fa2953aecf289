//! What a PCI Express slot lets a network card forward, computed before anything is measured.
//!
//! [`PciePath`] reads the path from a device to the root of its tree, [`ceiling`] computes the frames per second that a
//! slot can carry, and [`PcieReport`] holds both for a device, with what other slots would give.
//!
//! The model is the one of Neugebauer et al., "Understanding PCIe performance for end host networking" (SIGCOMM 2018),
//! with descriptors that are fetched and written back in batches.

mod attached;
mod express;
mod hop;
mod link;
mod model;
mod nic;
mod report;
mod walk;

pub use attached::{Attached, Attachment, RootPlace};
pub use express::{express, Express, PortType};
pub use hop::{ErrorTotals, Hop};
pub use link::Link;
pub use model::{ceiling, down_bytes, up_bytes, BoundBy, Ceiling, Crossing, Slot};
pub use nic::{Nic, NicKind};
pub use report::{PayloadReport, PcieReport, SlotKind, SlotReport};
pub use walk::{Fit, PciePath};
