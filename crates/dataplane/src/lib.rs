//! The reference data plane: nodes, tables, drop reasons and the network functions made of them.
//!
//! Generic over [`packet::Buffer`], so that everything here runs on heap buffers in a plain test and on mbufs in the
//! binary. A [`Function`] is handed a whole burst and either leaves all of it, rewritten in place, for one egress port
//! ([`Dispatch::All`]) or sorts the frames into [`Outputs`]; a frame leaves by a port, is held and counted as held, or
//! is dropped with a [`DropReason`], and nothing else. A [`Forwarder`] is one lcore's loop around a function;
//! its [`Control`] lets another thread read counters while it runs.
#![forbid(unsafe_code)]

pub mod bridge;
mod control;
mod drops;
mod error;
pub mod fdb;
pub mod fib;
pub mod flowlog;
mod forwarder;
mod function;
pub mod impair;
pub mod l3;
pub mod local;
pub mod model;
pub mod mpls;
pub mod node;
mod pass;
pub mod plane;
pub mod router;
pub mod runtime;
mod sampling;
mod share;
mod snapshot;
pub mod spec;
pub mod tables;
mod transmit;
mod trie;
pub mod vxlan;

pub use control::{Control, NotRunning};
pub use drops::{DropCounters, DropReason};
pub use error::SpecError;
pub use flowlog::FlowLog;
pub use forwarder::{Forwarder, Input, Settings};
pub use function::{Dispatch, DropBatch, Function, Outputs};
pub use model::{PortInfo, Prefix};
pub use pass::{Null, PortMap, L2};
pub use plane::{AnyFunction, Plane};
pub use share::{Reader, Shared};
pub use snapshot::{Imbalance, InputStats, OutputStats, Snapshot, BURST_SIZES};
pub use transmit::TxPolicy;
