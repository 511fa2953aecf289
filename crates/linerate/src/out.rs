//! Standard output that survives a closed pipe: `linerate bench | head` ends without an error.

use std::io::{self, IsTerminal, Write};

use rustix::{
    event::{poll, PollFd, PollFlags, Timespec},
    fd::AsFd,
};

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

/// Whether the terminal was closed. Never waits. Call it only for a terminal: a pipe whose writer has ended looks the
/// same.
pub fn is_hung_up(terminal: impl AsFd) -> bool {
    const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [PollFd::new(&terminal, PollFlags::empty())];
    let is_asked = poll(&mut fds, Some(&AT_ONCE)).is_ok();
    is_asked && fds.iter().any(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR))
}

/// Whether standard error is a terminal.
pub fn watched() -> bool {
    io::stderr().is_terminal()
}
