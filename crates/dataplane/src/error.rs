//! The error of a setting.

/// A setting that cannot be what it was given as: which, what was read, and what is legal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {value:?}: {legal}")]
pub struct SpecError {
    /// The setting, such as `routes[2].port`.
    pub what: String,
    /// The text or number as given.
    pub value: String,
    /// The legal form or range, and how to mend it.
    pub legal: String,
}

impl SpecError {
    pub(crate) fn new(what: impl Into<String>, value: impl ToString, legal: impl Into<String>) -> Self {
        Self { what: what.into(), value: value.to_string(), legal: legal.into() }
    }
}
