//! Round trips of applications: messages, replies, percentiles with their uncertainty.
#![forbid(unsafe_code)]

pub mod asked;
pub mod background;
pub mod clients;
pub mod disturbed;
pub mod message;
pub mod noise;
pub mod open_loop;
pub mod patience;
pub mod pingpong;
pub mod plans;
pub mod raw;
pub mod result;
pub mod server;
pub mod socket;
pub mod stamps;
pub mod steps;
pub mod summary;
pub mod tally;
#[cfg(test)]
mod testing;
pub mod throughput;
