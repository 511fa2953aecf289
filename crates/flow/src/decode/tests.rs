//! Tests of the decoder.

mod build;
mod every_kind;
mod hostile;
