//! Standard output that survives a closed pipe: `linerate bench | head` ends without an error.

use std::{
    io::{self, ErrorKind, IsTerminal, Write},
    sync::OnceLock,
};

use rustix::{
    fs::{fstat, FileType, FileType::CharacterDevice},
    io::Errno,
};

/// Why standard output takes nothing any more.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints text and a final newline. A closed pipe is not an error; what else befalls is kept for [`lost`].
pub fn print(text: &str) {
    if LOST.get().is_some() {
        return;
    }
    let mut out = io::stdout().lock();
    let newline: &[u8] = if text.ends_with('\n') { b"" } else { b"\n" };
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(newline)).and_then(|()| out.flush());
    if let Err(e) = written {
        // The first one tells.
        let _ = LOST.set(e);
    }
}

/// Whether nobody reads any more: who prints for as long as it is read ends then.
pub fn is_closed() -> bool {
    LOST.get().is_some()
}

/// Why output was lost, other than by a reader who has seen enough or closed the terminal.
pub fn lost() -> Option<&'static io::Error> {
    // A terminal that hung up gives EIO, as a file on a bad disk does.
    let terminal = || fstat(io::stdout()).is_ok_and(|of| FileType::from_raw_mode(of.st_mode) == CharacterDevice);
    let closed =
        |e: &io::Error| e.kind() == ErrorKind::BrokenPipe || Errno::from_io_error(e) == Some(Errno::IO) && terminal();
    LOST.get().filter(|e| !closed(e))
}

/// Prints a line to standard error.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether standard error is a terminal.
pub fn watched() -> bool {
    io::stderr().is_terminal()
}
