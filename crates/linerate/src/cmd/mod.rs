//! One file for each subcommand: takes the flags, returns an exit code.

pub mod bench;
mod blame;
pub mod check;
mod effect;
pub mod flowlog;
pub mod flows;
pub mod forward;
pub mod host;
pub mod job;
pub mod lab;
pub mod latency;
mod live;
pub mod output;
pub mod plan;
pub mod ports;
pub mod progress;
pub mod replay;
pub mod runs;
pub mod score;
pub mod selftest;
pub mod sweep_flags;
mod times;
pub mod trial;
