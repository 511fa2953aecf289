//! The flow logger as its user meets it: what goes through its ports is passed, counted exactly, read and recorded.

// The helpers below are test code too; clippy knows only functions marked as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, missing_docs)]

mod alone;
mod between;
mod capture;
mod collectors;
mod details;
mod elsewhere;
mod jumbo;
mod lcores;
mod link;
mod link_layer;
mod listening;
mod live;
mod logger;
mod made;
mod offloads;
mod peer;
mod refused;
mod sctp;
mod softflowd;
mod stepped;
mod streams;
#[path = "../support/mod.rs"]
mod support;
