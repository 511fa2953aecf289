//! The parts of the flow logger: flow keys, the table in which an lcore counts flows, export, and readers.
//!
//! The packet path is [`decode`] and [`table`], which never wait, allocate or lock. Everything else runs on other threads.
#![forbid(unsafe_code)]

pub mod client;
pub mod decode;
mod details;
pub mod export;
mod facts;
pub mod ipfix;
mod key;
mod link;
pub mod metrics;
mod packed;
pub mod protocol;
mod record;
mod sampling;
pub mod serve;
mod source;
pub mod table;
pub mod truth;
mod unix_time;
pub mod watch;

pub use details::{Details, PacketDetails, WayDetails};
pub use facts::{Facts, PackedFacts};
pub use key::{Addresses, Distinguish, Key};
pub use link::{Link, MOST_LABELS, MOST_TAGS};
pub use packed::{Key4, Key6};
pub use record::{EndReason, Record, Way};
pub use sampling::{Sampler, Sampling, SamplingError, SamplingMode};
pub use source::Source;
