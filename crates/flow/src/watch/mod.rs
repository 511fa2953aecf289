//! Watching flow loggers: each is polled on a thread of its own, and a board holds what was seen last. Independent of the
//! terminal.

pub mod board;
pub mod filter;
pub mod link;
pub mod poll;
pub mod text;
