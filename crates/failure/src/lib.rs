//! Why a command could not do what was asked: one line, and the exit code that says whose turn it is.

#![forbid(unsafe_code)]

mod stop;

pub use stop::Stop;

use std::fmt;

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
    /// The command or a file is wrong.
    Usage = 2,
    /// Measured, but not trustworthy.
    Untrusted = 3,
    /// The machine lacks something.
    Machine = 4,
    /// Stopped by a signal; what was measured is kept.
    Stopped = 130,
}

/// A failure with its exit code. Its text is one line: what, where, what is legal or what mends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// One line.
    pub text: String,
}

impl Failure {
    /// The command or a file is wrong.
    pub fn usage(text: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, text: text.to_string() }
    }

    /// The machine lacks something; the text says what mends it.
    pub fn machine(text: impl fmt::Display) -> Self {
        Self { exit: Exit::Machine, text: text.to_string() }
    }

    /// A signal came before there was anything to keep.
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
