//! What a user does, with the whole program: one test binary, since linking a dozen took longer than most of their tests.
//! `cargo test -p linerate --test whole sweep::` runs the tests of a file.

#![allow(missing_docs)]

mod addresses;
mod builtin;
mod captures;
mod check;
mod cli;
mod duts;
mod far;
mod flow_score;
mod guest_host;
mod host;
mod imix;
mod lab;
mod lab_faults;
mod latency;
mod latency_raw;
mod latency_refusals;
mod lcores;
mod machines;
mod pci;
mod procedures;
mod repeat;
mod replay;
mod router;
mod selftest;
mod shapes;
mod simulated;
mod soak;
#[path = "../support/mod.rs"]
mod support;
mod support_selfcheck;
mod sweep;
mod tables;
mod trial;
mod twelve;
