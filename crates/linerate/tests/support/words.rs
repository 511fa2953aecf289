//! The wording of the program, kept apart from what it does: tests assert on codes and fields, and keep sentences here or
//! in a snapshot, so that wording changes in one place.

use std::fmt;

use super::tester::Ended;

/// On standard error when a data plane forwards or logs.
pub const READY: &str = "Ctrl-C ends it";
/// Before the address where clients read a flow logger; `;` ends it.
pub const FLOWS_AT: &str = "flows at ";
/// Before the address where metrics are read; `;` ends it.
pub const METRICS_AT: &str = "metrics at ";
/// On standard error, behind `port NAME`, when a port loses its link.
pub const LINK_DOWN: &str = ": link down";
/// The same when the link is back.
pub const LINK_UP: &str = ": link up";
/// On standard error, behind `port NAME`, when offloads of its interface are on; which follows.
pub const OFFLOADS_ON: &str = ": offloads are on";
/// The same, when its MTU is below that of its interface; which follows.
pub const SHORTER_MTU: &str = ": the MTU of the interface is ";
/// The same, when the kernel of a host that only listens gets no frames any more.
pub const TAKES_FRAMES: &str = ": AF_XDP takes each frame from the kernel";
/// The same, when it has cut a frame.
pub const FRAMES_CUT: &str = ": frames longer than its buffers arrive";
/// In a logger's last lines, behind the number of these frames.
pub const CUT_FRAMES: &str = " frames cut";
/// On standard error, before the names of collectors for which the end of a logger waits; `;` ends them.
pub const WAITING_FOR: &str = "waiting up to 10 s for ";
/// Behind the name of a port whose link went down in a trial.
pub const LINK_WENT_DOWN: &str = ": its link went down";
/// What is said of a device that was away in the middle of a run.
pub const CAME_BACK: &str = "came back";
/// Before the path of a file that was written.
pub const WRITTEN: &str = "written    ";
/// Before the path of a result that could not be written where it was asked for.
pub const KEPT_IN: &str = "kept in ";
/// What the display of `linerate flows` says of a logger that does not answer.
pub const CONNECTION_REFUSED: &str = "connection refused";
/// What it says of one that has gone.
pub const RECONNECTING: &str = "reconnecting in";
/// What it says while it is paused.
pub const PAUSED: &str = "PAUSED";
/// What the kernel says of a full disk.
pub const DISK_FULL: &str = "No space left";
/// What begins the table of a sweep over flows.
pub const SWEEP_TABLE: &str = "\nThroughput by flows";
/// What begins the table of a set of plans.
pub const SET_TABLE: &str = "Load tests (layout";
/// Title of the picture of a trial over time.
pub const TIMELINE: &str = "Trial over time";
/// What begins every error of the program; clap's own begin otherwise.
const ERROR: &str = "linerate: ";

/// What is printed when one of several runs or points begins: `n of all: name`.
pub fn nth(n: usize, all: usize, name: &str) -> String {
    format!("{n} of {all}: {name}")
}

/// Before the lines of a logger's flows in the display of `linerate flows`: which of them, of how many.
pub fn flows_of(logger: &str) -> String {
    format!("Flows of {logger}: ")
}

/// What the display of `linerate flows` says of its loggers.
pub fn loggers_read(n: usize, all: usize) -> String {
    format!("{n} of {all} loggers")
}

/// The words of a test's runs, in order, for one snapshot.
///
/// Random directories are written as `[dir]`; for what else differs from run to run see [`Words::hide`].
#[derive(Debug, Default)]
pub struct Words {
    text: String,
    hidden: Vec<(String, String)>,
}

impl Words {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on `value` is written as `[name]`.
    pub fn hide(&mut self, value: impl fmt::Display, name: &str) {
        self.hidden.push((value.to_string(), format!("[{name}]")));
    }

    /// Adds a run that was refused: with this exit code, nothing on standard output, no panic, no escapes, and one line if
    /// the words are the program's own.
    #[track_caller]
    pub fn refused(&mut self, code: i32, args: &[&str], ended: &Ended) {
        assert_eq!((ended.code, ended.stdout.as_str()), (code, ""), "{args:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("panicked") && !ended.stderr.contains('\u{1b}'), "{}", ended.stderr);
        if ended.stderr.starts_with(ERROR) {
            assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{args:?}: {}", ended.stderr);
        }
        self.add(&args.join(" "), &ended.stderr);
    }

    /// The same, and the words are the program's own: one line.
    #[track_caller]
    pub fn refused_in_a_line(&mut self, code: i32, args: &[&str], ended: &Ended) {
        assert!(ended.stderr.starts_with(ERROR), "{args:?}: {}", ended.stderr);
        self.refused(code, args, ended);
    }

    /// Adds any text under a heading.
    pub fn add(&mut self, what: &str, text: &str) {
        let end = if self.text.is_empty() { "" } else { "\n\n" };
        let added = format!("{end}# {}\n{}", self.shown(what), self.shown(text.trim()));
        self.text += &added;
    }

    /// Adds a text with every figure in it as `#`, and one blank for several: what is left is its wording.
    pub fn add_without_figures(&mut self, what: &str, text: &str) {
        self.add(what, &without_figures(text));
    }

    fn shown(&self, text: &str) -> String {
        let text = self.hidden.iter().fold(text.to_owned(), |text, (value, name)| text.replace(value, name));
        without_directories(&text)
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Each of tempfile's random directories as `[dir]`.
fn without_directories(text: &str) -> String {
    let random = std::env::temp_dir().join(".tmp").display().to_string();
    let mut parts = text.split(random.as_str());
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "[dir]" + part.trim_start_matches(|c: char| c.is_ascii_alphanumeric()))
}

/// Figures as `#`, blanks as one. A digit within a word stays: `p99`, `RFC2544`.
pub fn without_figures(text: &str) -> String {
    let figure = |word: &str| -> String {
        let mut out = String::new();
        let mut before = ' ';
        let mut rest = word.char_indices().peekable();
        while let Some((_, c)) = rest.next() {
            if !c.is_ascii_digit() || before.is_alphanumeric() {
                out.push(c);
                before = c;
                continue;
            }
            out.push('#');
            while let Some(&(at, next)) = rest.peek() {
                let inner = matches!(next, '.' | ',') && word[at + 1..].starts_with(|c: char| c.is_ascii_digit());
                if !next.is_ascii_digit() && !inner {
                    break;
                }
                rest.next();
            }
            before = '#';
        }
        out
    };
    let line = |line: &str| line.split_whitespace().map(figure).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Headings of trials as they were asked for, without what really became of them.
pub fn as_asked(text: &str) -> String {
    text.lines().map(|line| line.split(", really").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The lines of a text that have one of these words, for a snapshot.
pub fn lines_with(text: &str, words: &[&str]) -> String {
    text.lines().filter(|line| words.iter().any(|word| line.contains(word))).collect::<Vec<_>>().join("\n")
}
