//! Results in, documents out.
//!
//! [`run::document`] builds a [`Document`] from a [`measure::result::RunResult`]: sections in one order. [`terminal`],
//! [`markdown`] and [`csv`] render it. Everything here is pure but [`mod@write`], which puts bytes in a file so that a full
//! disk never leaves half a report behind. Names, warnings and diagnoses come from outside the program (port names,
//! drivers, host names), so every document neutralises them on the way out: see `text`.
#![forbid(unsafe_code)]

mod bars;
pub mod check;
pub mod csv;
mod data;
mod document;
pub mod dry_run;
mod figures;
mod goals;
pub mod host;
pub mod json;
pub mod latency;
pub mod layout;
pub mod markdown;
mod names;
mod num;
pub mod progress;
pub mod repeat;
pub mod run;
mod sections;
pub mod selftest;
mod several;
pub mod sheet;
pub mod slices;
mod standing;
mod style;
pub mod svg;
pub mod sweep;
mod table;
pub mod terminal;
mod text;
pub mod trial_line;
mod words;
pub mod write;

pub use document::{Audience, Detail, Document, Section, Topic};
pub use several::of_several;
pub use style::{Paint, Style};
pub use table::{Cell, Table};
