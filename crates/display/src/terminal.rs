//! Whether a terminal is still there.

use rustix::{
    event::{poll, PollFd, PollFlags, Timespec},
    fd::AsFd,
};

/// Whether the terminal was closed. Never waits. Call it only for a terminal: a pipe whose writer has ended looks the
/// same.
pub fn is_hung_up(terminal: impl AsFd) -> bool {
    const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [PollFd::new(&terminal, PollFlags::empty())];
    let is_asked = poll(&mut fds, Some(&AT_ONCE)).is_ok();
    is_asked && fds.iter().any(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR))
}
