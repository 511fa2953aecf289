//! The atomics, or loom's, which try every order in which threads may see them (feature `loom`).
//!
//! Not `--cfg loom`, as is usual: that would have every crate built anew, and turn parts of others off.

#[cfg(feature = "loom")]
pub use loom::sync::atomic::{fence, AtomicU64, Ordering};
#[cfg(not(feature = "loom"))]
pub use std::sync::atomic::{fence, AtomicU64, Ordering};
