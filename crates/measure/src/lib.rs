//! Trials, searches, metrics, validity rules and the results schema.
//!
//! No I/O and no clock of its own: a search is a state machine that is asked for the next trial, a trial is a record
//! of counts that somebody else took, and everything here can be driven by a simulated DUT in a plain test.
#![forbid(unsafe_code)]

pub mod addresses;
pub mod attempts;
pub mod bisection;
pub mod check;
pub mod diagnose;
pub mod effect;
pub mod evidence;
pub mod label;
pub mod metrics;
pub mod placement;
pub mod plan;
pub mod power;
pub mod procedure;
pub mod repeat;
pub mod schema;
pub mod search;
pub mod sim;
pub mod standing;
mod student;
pub mod upgrade;
pub mod validity;

pub use schema::{answer, result, shape, sweep, timeline, trial};
