//! The control side of the routing functions: what the operator configured and what was learned, compiled to
//! [`Tables`](crate::tables::Tables).

mod batch;
mod change;
mod compile;
mod derived;
mod fibs;
mod hops;
mod learning;
mod links;
mod neighbours;
mod pool;
mod rib;
mod rows;
mod show;
mod state;
#[cfg(test)]
mod tests;
mod weights;

pub use fibs::{FibMemory, SMALL as SMALL_FIB};
pub use neighbours::NeighbourState;
pub use rows::{Counts, NeighbourRow, Origin, RouteRow};
pub use state::{Policy, Router, EVENTS};
