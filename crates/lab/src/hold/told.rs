//! What a lab's holder tells who started it.

use std::io::{self, Write};

use serde::Serialize;

/// A line for who started the lab; nobody may read it any more.
pub fn tell(what: &impl Serialize) {
    if let Ok(line) = serde_json::to_string(what) {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}
