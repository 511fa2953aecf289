//! Mixes of frame sizes (RFC 6985): the IMIX genome, shares, ranges, and what is drawn from them.

mod order;
mod parse;
mod sequence;
mod show;
mod text;

pub use sequence::Imix;
pub(crate) use text::{cut, BRIEF_CHARS};

#[cfg(test)]
mod tests;
