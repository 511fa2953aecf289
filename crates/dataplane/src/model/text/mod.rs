//! The text forms of everything an operator configures: one line of words each.

pub(super) mod entry;
pub(super) mod label;
pub(super) mod overlay;
mod path;
#[cfg(test)]
mod tests;
pub(super) mod words;
