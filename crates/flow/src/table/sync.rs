//! The atomics of std, or those of loom, which test every order in which threads may see them (feature `loom`).
//!
//! A feature instead of the usual `--cfg loom`, which would rebuild every crate and disable parts of others.

#[cfg(feature = "loom")]
pub use loom::sync::atomic::{fence, AtomicU64, Ordering};
#[cfg(not(feature = "loom"))]
pub use std::sync::atomic::{fence, AtomicU64, Ordering};
