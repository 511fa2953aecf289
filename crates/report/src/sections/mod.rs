//! The sections of a document, each built from a result. [`crate::run`] puts them in order.

pub(crate) mod appendix;
mod chain;
pub(crate) mod delay;
pub(crate) mod lab;
pub(crate) mod power;
pub(crate) mod runtime;
pub(crate) mod setting;
pub(crate) mod tests;
pub(crate) mod throughput;
pub(crate) mod trial;
pub(crate) mod trials;
pub(crate) mod trust;
mod windows;
