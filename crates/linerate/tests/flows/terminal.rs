//! Displays end with their terminal: when it is closed, on SIGHUP and on SIGTERM, and leave it as it was.

use std::{
    fs::File,
    io::Read,
    os::fd::AsFd,
    process::{Child, Command, ExitStatus},
    time::{Duration, Instant},
};

use nix::pty::{openpty, Winsize};
use rustix::{
    fs::{fcntl_setfl, OFlags},
    io::{fcntl_setfd, FdFlags},
    process::{kill_process, Pid, Signal},
    termios::{tcgetattr, Termios},
};

use crate::{
    logger::Logger,
    support::{tester::BINARY, words::CONNECTION_REFUSED},
};

/// How long a display may take to appear, and to end.
const SHOWN: Duration = Duration::from_secs(30);
const ENDED: Duration = Duration::from_secs(10);

/// A command on a pseudo-terminal. Dropping it kills the command.
struct Display {
    child: Child,
    /// What the user sees; closing it closes the terminal.
    master: Option<File>,
    /// The terminal's settings before.
    before: Termios,
    output: String,
    /// Of its own, for its control socket.
    dir: tempfile::TempDir,
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the terminal is the session's own, so that closing it sends SIGHUP.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Terminal {
    Controlling,
    Other,
}

impl Display {
    fn start(args: &[&str], terminal: Terminal) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).unwrap();
        for end in [&pty.master, &pty.slave] {
            // Held by the child too, the terminal would not close.
            fcntl_setfd(end, FdFlags::CLOEXEC).unwrap();
        }
        fcntl_setfl(&pty.master, OFlags::NONBLOCK).unwrap();
        let before = tcgetattr(&pty.slave).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "setsid"]);
        if terminal == Terminal::Controlling {
            command.arg("--ctty");
        }
        command.arg(BINARY).args(args).env("TERM", "xterm-256color").env("XDG_RUNTIME_DIR", dir.path());
        let slave = || pty.slave.try_clone().unwrap();
        command.stdin(slave()).stdout(slave()).stderr(slave());
        let child = command.spawn().unwrap();
        Self { child, master: Some(File::from(pty.master)), before, output: String::new(), dir }
    }

    /// Reads what was drawn so far.
    fn read(&mut self) {
        let mut bytes = [0; 4096];
        while let Some(n) = self.master.as_mut().and_then(|m| m.read(&mut bytes).ok()).filter(|&n| n > 0) {
            self.output += &String::from_utf8_lossy(&bytes[..n]);
        }
    }

    #[track_caller]
    fn wait_shown(&mut self, part: &str) {
        let end = Instant::now() + SHOWN;
        while !self.output.contains(part) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < end, "no {part:?}, {ended:?}: {}", self.output);
            std::thread::sleep(Duration::from_millis(10));
            self.read();
        }
    }

    #[track_caller]
    fn wait_end(&mut self, what: &str) -> ExitStatus {
        let end = Instant::now() + ENDED;
        loop {
            self.read();
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "still runs after {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

/// Modes of a terminal, to compare.
fn modes(of: &Termios) -> String {
    format!("{:?} {:?} {:?} {:?}", of.input_modes, of.output_modes, of.control_modes, of.local_modes)
}

/// Starts the display anew for each way to end it.
#[track_caller]
fn ends(args: &[&str], shown: &str, code: i32) {
    for terminal in [Terminal::Controlling, Terminal::Other] {
        let mut display = Display::start(args, terminal);
        display.wait_shown(shown);
        drop(display.master.take());
        let status = display.wait_end("its terminal was closed");
        assert_eq!(status.code(), Some(code), "{args:?} on a closed terminal ({terminal:?})");
    }
    for signal in [Signal::HUP, Signal::TERM] {
        let mut display = Display::start(args, Terminal::Controlling);
        display.wait_shown(shown);
        display.signal(signal);
        let status = display.wait_end("a signal");
        assert_eq!(status.code(), Some(code), "{args:?} after {signal:?}: {}", display.output);
        let master = display.master.as_ref().unwrap();
        assert_eq!(modes(&tcgetattr(master.as_fd()).unwrap()), modes(&display.before), "{args:?} after {signal:?}");
    }
}

#[test]
fn the_display_of_flows_ends_with_its_terminal() {
    let logger = Logger::named("alpha");
    ends(&["flows", &logger.at()], "alpha", 130);
}

#[test]
fn the_display_of_flows_ends_when_nobody_answers_and_when_output_is_stopped() {
    let gone = Logger::named("gone").at();
    let mut display = Display::start(&["flows", &gone], Terminal::Controlling);
    display.wait_shown(CONNECTION_REFUSED);
    // Nothing is read from now on, as after Ctrl-S: the display waits in a write once the terminal's buffer is full.
    let master = display.master.take().unwrap();
    {
        use std::io::Write;
        (&master).write_all(&[12; 200]).unwrap();
    }
    std::thread::sleep(Duration::from_secs(1));
    display.signal(Signal::TERM);
    assert_eq!(display.wait_end("SIGTERM").code(), Some(130));
    assert_eq!(modes(&tcgetattr(&master).unwrap()), modes(&display.before));
}

#[test]
fn the_live_views_of_data_planes_end_with_their_terminal() {
    ends(&["forward", "null", "--port", "null", "--port", "null"], "\u{1b}[Hlinerate ", 0);
    let flowlog = ["flowlog", "--port", "null", "--port", "null", "--flows", "1k", "--listen", "off"];
    ends(&flowlog, "\u{1b}[Hlinerate ", 0);
}

#[test]
fn a_closed_terminal_leaves_no_socket() {
    let mut display = Display::start(&["forward", "null", "--port", "null", "--port", "null"], Terminal::Other);
    display.wait_shown("\u{1b}[Hlinerate ");
    drop(display.master.take());
    assert!(display.wait_end("its terminal was closed").success());
    assert!(!display.dir.path().join("linerate/forward.sock").exists());
}
