//! The error of a text or number that is not legal for its unit.

/// A value that cannot be what it was given as: says what was read, as what, and what is legal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {value:?}: {legal}")]
pub struct UnitError {
    /// What the value was read as, such as `frame size`.
    pub what: &'static str,
    /// The text or number as given.
    pub value: String,
    /// The legal form or range.
    pub legal: String,
}

impl UnitError {
    pub(crate) fn new(what: &'static str, value: impl ToString, legal: impl Into<String>) -> Self {
        Self { what, value: value.to_string(), legal: legal.into() }
    }
}
