//! The truth about flows: what was sent of each, what was recorded of it, and how far the two agree.
//!
//! A tester that knows what it sent is an [`Expected`]; what a logger said of it is [`Recorded`], in any order; their
//! [`Score`] puts every flow sent into one class and counts every packet. Nothing is estimated.

mod expected;
mod recorded;
mod score;
#[cfg(test)]
mod tests;

pub use expected::{Expected, Listed, Sent};
pub use recorded::{Recorded, RECORD_BYTES};
pub use score::{Difference, Example, Flows, Octets, Packets, Score, Spread, Strangers, EXAMPLES};
