//! Devices under test: what a user calls them, and the built-in ones with their loops.

mod built_in;
mod fibs;
mod flow_logger;
mod in_lab;
mod kind;
mod plane;
mod waits;
mod watch;

pub use built_in::BuiltIn;
pub(crate) use built_in::BuiltInMaker;
pub use fibs::tables_mib;
pub use flow_logger::{LogLoop, LogSpec, Logged, Logger};
pub use in_lab::InLab;
pub use kind::{Device, DeviceOptions, OutsidePorts, FLOWLOG};
pub use plane::{port_mac, DataPlane, DataPlaneSpec, LoopOptions, Polled, NODE_SAMPLE};
pub(crate) use waits::{absences as waits_of, threads as threads_of_device, Reading};
pub(crate) use watch::{since, Watched};
