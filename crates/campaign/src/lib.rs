//! The controller: plans run over a testbed. Suites, sweeps, repeats, searches with their confirmation, the other tests, flow scores,
//! requirements, and the result of all.
//!
//! It knows no terminal and no command line: it takes a [`job::Job`] and gives a result.
#![forbid(unsafe_code)]

mod addresses;
pub mod applications;
pub mod check;
mod command;
mod controller;
pub mod display;
pub mod dry_run;
pub mod effect;
mod ending;
pub mod files;
pub mod flow_score;
mod job;
mod job_answer;
mod latency;
pub mod plans;
mod procedures;
mod process;
pub mod repeat;
pub mod requirements;
mod rig_testbed;
mod samples;
mod sim_testbed;
pub mod stored;
pub mod suite;
pub mod sweep;
mod testbed;
mod throughput;
pub mod tuned;

pub use controller::Controller;
pub use ending::exit_of;
pub use job::Job;
pub use job_answer::JobAnswer;
pub use process::{read_job, Launcher, JOB_COMMAND};
pub use rig_testbed::RigTestbed;
pub use sim_testbed::SimTestbed;
pub use testbed::{Measurement, Testbed, TestbedFacts};
