//! Tests of the decoder.

mod build;
mod cut;
mod every_kind;
mod hostile;
