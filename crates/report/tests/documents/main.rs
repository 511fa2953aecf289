//! Whole documents from hand-made results.
// Clippy knows test functions, not the fixtures they call.
#![allow(clippy::unwrap_used, clippy::panic)]

mod fixtures;
mod golden;
mod hostile;
mod layouts;
mod procedures;
mod published;
mod repeats;
mod schema;
