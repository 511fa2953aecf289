//! Everything that touches ports and lcores: devices under test, the tester, and what disturbed them.
//!
//! The rig runs `traffic` on lcores and hands the counts to `measure`.
#![forbid(unsafe_code)]

mod addresses;
mod claim;
mod cpus;
pub mod device;
mod drive;
pub mod facts;
pub mod host_plan;
mod hosts;
pub mod lab_plan;
mod lcores;
mod learn;
mod lock_file;
mod machine;
mod noise;
mod polling_cpus;
mod power;
mod probe;
mod raw;
pub mod raw_mtu;
mod ready;
mod realtime;
mod record;
mod replay;
mod request;
mod restart;
mod rig;
mod selftest;
mod selftest_pair;
mod stream_spec;
mod streams;
mod tester_port;
mod timed;
mod trial;
mod veth;
mod worker;

pub use claim::Claim;
pub use device::Device;
pub use hosts::{Hosts, ADDRESSES};
pub use lcores::SetOnDrop;
pub use learn::LEARNING_WAIT;
pub use machine::{check_descriptors, start_forward_eal, MachineOptions, MemoryChoice};
pub use polling_cpus::PollingCpus;
pub use raw::{lock_memory, RawBench, RawSize, RawWay};
pub use realtime::RealtimeChoice;
pub use replay::Replayable;
pub use request::{Finished, TrialEnd, TrialRequest};
pub use restart::start_again;
pub use rig::{Rig, RigOptions};
pub use stream_spec::{over_routes, stream};
pub use streams::{SentFlows, Streams};
pub use tester_port::TesterPort;
