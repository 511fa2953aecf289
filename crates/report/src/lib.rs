//! Results in, documents out: every function here turns a [`measure::result::RunResult`] into text and nothing else.
//!
//! Pure but for [`mod@write`], which puts bytes in a file so that a full disk never leaves half a report behind. Names,
//! warnings and diagnoses come from outside the program (port names, drivers, host names), so every document
//! neutralises them on the way out: see `text`.
#![forbid(unsafe_code)]

pub mod csv;
mod figures;
pub mod json;
pub mod layout;
pub mod markdown;
mod num;
mod procedures;
pub mod progress;
pub mod rehearsal;
mod runtime;
pub mod selftest;
mod style;
pub mod svg;
pub mod sweep;
mod table;
mod tables;
pub mod terminal;
mod text;
mod windows;
mod words;
pub mod write;

pub use style::Style;
