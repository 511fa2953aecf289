//! The terminal of a command that runs until it is stopped: notes, the live view, the final report.

use std::{
    io::{self, stdout, IsTerminal, Write},
    sync::Arc,
};

use runner::{LiveView, Output};

use crate::out;

/// Standard error for notes; standard output for the final report and, on a terminal, for the live view.
pub fn output(live: bool) -> Output {
    Output {
        note: Arc::new(|line: &str| out::note(line)),
        draw: (live && stdout().is_terminal()).then(|| Box::new(draw) as _),
        report: Box::new(out::print),
    }
}

/// Draws the view over the last one. Errors when the terminal is gone.
fn draw(view: LiveView) -> io::Result<()> {
    // Moves home, clears the rest of each line, and clears everything below.
    let text = view.fit(size()).join("\x1b[K\n");
    if display::terminal::is_hung_up(stdout()) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    let mut terminal = stdout().lock();
    writeln!(terminal, "\x1b[H{text}\x1b[K\x1b[J").and_then(|()| terminal.flush())
}

/// Columns and lines of the terminal; unlimited when unknown.
fn size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(stdout()).ok();
    let known = |n: Option<u16>| n.filter(|n| *n > 0).map_or(usize::MAX, usize::from);
    (known(size.map(|s| s.ws_col)), known(size.map(|s| s.ws_row)))
}
