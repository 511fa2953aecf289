//! What is sent, when, and what came back.
//!
//! [`stream`] says what frames look like and which fields vary, [`generator`] writes them, [`pacer`] says when they
//! are due, [`checker`] counts and times what comes back, and [`worker`] is the loop of one lcore that joins them.
//! [`replay`] sends a capture instead.
//!
//! Everything is generic over `packet`'s [`Buffer`](packet::Buffer), [`Rx`](packet::Rx), [`Tx`](packet::Tx),
//! [`Alloc`](packet::Alloc) and [`Clock`](packet::Clock): no I/O here, and no clock of its own.
#![forbid(unsafe_code)]

pub mod checker;
pub mod control;
pub mod flows;
pub mod generator;
mod hash;
pub mod histogram;
mod intervals;
mod losses;
mod mask;
pub mod pacer;
mod program;
pub mod replay;
mod slices;
pub mod stream;
mod window;
pub mod worker;

pub use mask::{Mask, MaskError};
