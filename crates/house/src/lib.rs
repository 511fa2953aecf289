//! Checks of the rules of this workspace. `tests/workspace.rs` applies them; `scripts/test.sh house` runs that.
//!
//! Each check is a module that takes text or paths and returns its findings, one line each; no finding means that the
//! rule is kept. A finding says what is wrong, where, and how to mend it. The unit tests of each check show that it can
//! fail.
#![forbid(unsafe_code)]

pub mod files;
pub mod layers;
pub mod rings;
pub mod size;
pub mod words;
pub mod workspace;
