//! What runs until it is stopped: the data plane of `linerate forward` and the flow logger of `linerate flowlog`.
//!
//! Both follow one path: a configuration ([`forward::Config`], [`flowlog::Config`]) is checked and becomes a spec, ports are
//! opened, lcores poll them, and a supervisor on the main thread keeps the tables, samples the counters, answers
//! requests from the control socket and offers a live view. Nothing here reads a command line or draws on a terminal.
#![forbid(unsafe_code)]

pub mod config;
pub mod flowlog;
pub mod forward;
mod history;
mod live_view;
mod output;
mod poll;
mod pools;
mod ports;
mod queues;
mod run_info;
mod supervisor;
pub mod text;
mod view;

pub use live_view::LiveView;
pub use output::{Draw, Note, Output};
