//! Joins `traffic` to `measure`: brings up ports and cores, runs trials, and hands the counts over.

mod addresses;
mod builtin;
mod cpus;
mod drive;
mod dut;
pub mod facts;
mod fibs;
pub mod flowlog;
mod record;
mod replay;
mod rig;
mod selftest;
mod streams;
mod trial;
mod watch;

pub use builtin::{BuiltIn, BuiltInSpec};
pub use dut::{port_mac, DataPlane, DutSpec, Polled, NODE_SAMPLE};
pub use replay::Replayable;
pub use rig::{check_descriptors, start_forward_eal, End, Rig, RigOptions};
pub use streams::{over_routes, stream};
pub use trial::{Attempt, Departed, Streams, TrialEnd, LEARNING_WAIT};

use dpdk::DpdkError;

use crate::failure::Failure;

/// The tester's polling core.
pub const TESTER_LCORE: u32 = 1;
/// The built-in DUT's, or the one the way to is probed.
pub const OTHER_LCORE: u32 = 2;

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
