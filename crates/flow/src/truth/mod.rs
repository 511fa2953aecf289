//! Compares the flows that a logger recorded with the flows that were sent.
//!
//! [`Expected`] gives what the tester sent. [`Recorded`] holds the records of the logger, in any order. A [`Score`] puts
//! every flow sent into one class and counts every packet. Nothing is estimated.

mod expected;
mod recorded;
mod score;
#[cfg(test)]
mod tests;

pub use expected::{Expected, Listed, Sent};
pub use recorded::{Recorded, RECORD_BYTES};
pub use score::{Difference, Example, Flows, Octets, Packets, Score, Spread, Strangers, EXAMPLES};
