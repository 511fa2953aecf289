//! The reference data plane between ports.

mod config;
mod run;
mod spec;

pub use config::Config;
pub use run::run;
pub use spec::{ForwardOptions, ForwardSpec};
