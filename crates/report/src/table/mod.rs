//! Tables: one module for every document and for the counters of programs that run.

mod cell;
mod grid;

pub use cell::Cell;
pub use grid::Table;
