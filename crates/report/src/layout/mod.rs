//! Results in the layouts of the source documents, and one result against another.
//!
//! `docs/tables.md` shows each. The figures are those of every other report; only names, units and rounding are the
//! document's.

mod columns;
mod compare;
mod compare_repeats;
mod differences;
mod kind;
mod sheet;

pub use compare::compare;
pub use compare_repeats::compare_repeats;
pub use differences::plan_against;
pub use kind::Layout;
pub use sheet::sheet;
