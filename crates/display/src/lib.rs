//! What runs, as a picture in a terminal: flow loggers, their tables and their largest flows.
#![forbid(unsafe_code)]

mod area;
mod columns;
mod panel;
pub mod plain;
pub mod screen;
pub mod terminal;
#[cfg(test)]
mod tests;
pub mod view;
