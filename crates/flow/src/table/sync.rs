//! The atomics, or loom's, which try every order in which threads may see them (`--cfg linerate_loom`).
//!
//! Not plain `--cfg loom`: that would turn parts of other crates off.

#[cfg(linerate_loom)]
pub use loom::sync::atomic::{fence, AtomicU64, Ordering};
#[cfg(not(linerate_loom))]
pub use std::sync::atomic::{fence, AtomicU64, Ordering};
