//! The data that a run is made of and leaves: trials, figures, outcomes, results.
//!
//! Plain structures with serde and small accessors. They know nothing but `units`: every algorithm (search, procedure,
//! validity rule, label, report) stands above them. `docs/results-schema.md` describes what is written.

pub mod answer;
pub mod check;
pub mod delay;
pub mod device;
pub mod evidence;
pub mod facts;
pub mod found;
pub mod goal;
pub mod interference;
pub mod lab;
pub mod outcome;
pub mod placement;
pub mod power;
pub mod repeat;
pub mod result;
pub mod shape;
pub mod standing;
pub mod sweep;
pub mod test;
pub(crate) mod text;
pub mod timeline;
pub mod trial;
pub mod warning;
