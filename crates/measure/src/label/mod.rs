//! Which standard a figure meets, and each departure from the standard.

mod common;
mod draft;
mod facts;
mod procedure;
mod throughput;

pub use facts::LabelFacts;
pub use procedure::{addresses, procedure};
pub use throughput::{latency, throughput};

#[cfg(test)]
mod tests;
