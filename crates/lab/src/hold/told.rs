//! What a lab's holder tells who started it.

use std::io::{self, Write};

use failure::Failure;
use serde::Serialize;

/// A line for who started the lab.
///
/// # Errors
///
/// (stopped) if nobody reads it any more.
pub fn tell(what: &impl Serialize) -> Result<(), Failure> {
    let line = serde_json::to_string(what).map_err(Failure::failed)?;
    let mut out = io::stdout().lock();
    let told = writeln!(out, "{line}").and_then(|()| out.flush());
    told.map_err(|_| Failure::stopped("who started the lab has ended before it was up"))
}
