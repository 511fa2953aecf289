//! The flow logger's parts: what a flow is, the table an lcore counts flows in, how they leave it, and how they are read.
//!
//! The packet path is [`decode`] and [`table`]: it never waits, allocates or locks. All else runs on other threads.
#![forbid(unsafe_code)]

pub mod client;
pub mod decode;
pub mod export;
pub mod ipfix;
mod key;
pub mod metrics;
mod packed;
pub mod protocol;
mod record;
pub mod serve;
mod source;
pub mod table;
pub mod truth;
mod unix_time;

pub use key::{Addresses, Distinguish, Key};
pub use packed::{Key4, Key6};
pub use record::{EndReason, Record, Way};
pub use source::Source;
