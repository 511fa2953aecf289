//! One file a subcommand: what was typed in, an exit code out.

pub mod bench;
pub mod flowbench;
pub mod flowlog;
pub mod flows;
pub mod forward;
mod live;
pub mod output;
pub mod plan;
pub mod progress;
pub mod replay;
mod run;
pub mod runs;
pub mod samples;
pub mod selftest;
pub mod sets;
pub mod stored;
pub mod trial;
