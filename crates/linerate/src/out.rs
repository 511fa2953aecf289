//! Standard output that survives a closed pipe: `linerate bench | head` ends without an error.

use std::io::{self, IsTerminal, Write};

use rustix::{
    event::{poll, PollFd, PollFlags, Timespec},
    fd::AsFd,
};

/// Prints text and a final newline. A reader that went away is not an error.
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

/// Whether the other side of this terminal is closed. Never waits. Only ask of what was a terminal before: a pipe whose
/// writer has ended looks the same.
pub fn is_hung_up(terminal: impl AsFd) -> bool {
    const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [PollFd::new(&terminal, PollFlags::empty())];
    let is_asked = poll(&mut fds, Some(&AT_ONCE)).is_ok();
    is_asked && fds.iter().any(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR))
}

/// Whether a person watches standard error.
pub fn watched() -> bool {
    io::stderr().is_terminal()
}
