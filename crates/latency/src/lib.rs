//! Round trips of applications: messages, replies, percentiles with their uncertainty.
#![forbid(unsafe_code)]

pub mod message;
pub mod summary;
pub mod tally;
