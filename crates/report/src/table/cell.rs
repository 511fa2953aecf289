//! One value of a table.

use crate::style::Paint;

/// One value; an empty one is nothing to show.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// What is shown.
    pub text: String,
    /// What it means.
    pub paint: Paint,
}

impl Cell {
    /// A text with a meaning.
    pub fn painted(text: impl Into<String>, paint: Paint) -> Self {
        Self { text: text.into(), paint }
    }

    /// The answer of a row.
    pub fn bold(text: impl Into<String>) -> Self {
        Self::painted(text, Paint::Bold)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, paint: Paint::Plain }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Option<String>> for Cell {
    fn from(text: Option<String>) -> Self {
        text.unwrap_or_default().into()
    }
}
