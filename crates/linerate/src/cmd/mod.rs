//! One file a subcommand: what was typed in, an exit code out.

pub mod bench;
pub mod flowlog;
pub mod flows;
pub mod forward;
pub mod job;
mod live;
pub mod output;
pub mod plan;
pub mod progress;
pub mod replay;
pub mod runs;
pub mod score;
pub mod selftest;
pub mod sweep_flags;
mod times;
pub mod trial;
