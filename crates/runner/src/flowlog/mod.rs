//! The flow logger between ports.

mod choices;
mod config;
mod ending;
mod interfaces;
mod mtu;
mod own_output;
mod run;
mod serving;
mod sinks;
mod spec;

pub use choices::{Biflow, Distinguish, Layer};
pub use config::{Config, RENAMED_KEYS};
pub use flow::table::TableFull;
pub use run::run;
pub use spec::FlowlogSpec;
