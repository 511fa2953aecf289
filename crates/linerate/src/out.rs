//! Standard output that survives a closed pipe: `linerate bench | head` ends without an error.

use std::io::{self, IsTerminal, Write};

/// Prints text and a final newline. A closed pipe is not an error.
pub fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = out.write_all(b"\n");
    }
    let _ = out.flush();
}

/// Prints a line to standard error.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether standard error is a terminal.
pub fn watched() -> bool {
    io::stderr().is_terminal()
}
