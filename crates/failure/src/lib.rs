//! Why a command failed: one line of text and an exit code.

#![forbid(unsafe_code)]

mod stop;

pub use stop::Stop;

use std::{fmt, io};

use serde::{Deserialize, Serialize};

/// Exit codes (`docs/exit-codes.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Exit {
    /// Done, criteria met.
    Passed = 0,
    /// Done, a criterion was not met.
    Failed = 1,
    /// The command line or a file is wrong.
    Usage = 2,
    /// Measured, but not trustworthy.
    Untrusted = 3,
    /// The machine lacks something.
    Machine = 4,
    /// Stopped by a signal; what was measured is kept.
    Stopped = 130,
}

/// Why a file cannot be read, and what to do: for the end of a line that names the file.
pub fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file: check the path".to_owned(),
        io::ErrorKind::PermissionDenied => "this user may not read it".to_owned(),
        io::ErrorKind::InvalidData => "not a text file (UTF-8)".to_owned(),
        io::ErrorKind::NotADirectory => "a part of the path is a file, not a directory".to_owned(),
        io::ErrorKind::IsADirectory => "a directory: name a file in it".to_owned(),
        _ => error.to_string(),
    }
}

/// A failure with its exit code. Its text is one line: what is wrong, where, what is legal, what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// One line.
    pub text: String,
}

impl Failure {
    /// The command line or a file is wrong.
    pub fn usage(text: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, text: text.to_string() }
    }

    /// The machine lacks something. The text says what to do.
    pub fn machine(text: impl fmt::Display) -> Self {
        Self { exit: Exit::Machine, text: text.to_string() }
    }

    /// A signal came before anything was measured.
    pub fn stopped(text: impl fmt::Display) -> Self {
        Self { exit: Exit::Stopped, text: text.to_string() }
    }

    /// Something that should have worked did not.
    pub fn failed(text: impl fmt::Display) -> Self {
        Self { exit: Exit::Failed, text: text.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

impl From<units::UnitError> for Failure {
    fn from(e: units::UnitError) -> Self {
        Self::usage(e)
    }
}
