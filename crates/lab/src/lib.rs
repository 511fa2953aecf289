//! Real systems under test that Linerate brings up itself.
//!
//! A [`topology::Topology`] is data. [`Build`] derives everything from it: steps, sockets, flow rules, CPUs, questions that
//! show that the lab is what was asked for, and where the counters of each port are. [`hold::run`] carries the steps out in
//! namespaces of the lab's own, and [`script::render`] prints them. [`client`] starts labs, finds them and ends them.
#![forbid(unsafe_code)]

pub mod build;
pub mod client;
pub mod counters;
pub mod cpus;
pub mod diagram;
pub mod hidden;
pub mod hold;
pub mod line;
mod memory;
pub mod needs;
pub mod nics;
mod numbers;
pub mod options;
pub mod protocol;
mod rxq;
pub mod script;
mod silent;
pub mod start;
pub mod step;
pub mod topology;
pub mod versions;
pub mod view;
pub mod virtio;
pub mod vm;
pub mod within;

pub use build::Build;
pub use options::LabOptions;
