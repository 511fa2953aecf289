//! The flow logger's parts: what a flow is, the table an lcore counts flows in, how they leave it, and how they are read.
//!
//! The packet path is [`decode`] and [`table`]: it never waits, allocates or locks. All else runs on other threads.
#![forbid(unsafe_code)]

// What each is, its own items say.
mod key;
pub mod protocol;
mod record;
mod source;

pub use key::{Addresses, Distinguish, Key};
pub use record::{EndReason, Record, Way};
pub use source::Source;
