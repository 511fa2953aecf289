//! Why a plan cannot be run.

use failure::Failure;

/// Why a plan cannot be run: one line that says where, what, and what would be legal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Not a plan at all: bad TOML, an unknown key, or text no type takes.
    #[error("{place}{problem}")]
    Toml {
        /// Line number and the line as written, or empty.
        place: String,
        /// What is wrong with it, and what is legal.
        problem: String,
    },
    /// A value out of range, or at odds with another.
    #[error("{key} = {value}: {legal}")]
    Value {
        /// The key with its section, such as `search.precision`.
        key: String,
        /// The value as a user would write it.
        value: String,
        /// The legal range, or what it contradicts.
        legal: String,
    },
    /// Something wrong with the runs of a plan that has several.
    #[error("plan {plan}: {problem}")]
    Suite {
        /// The plan, or `PLAN:RUN`.
        plan: String,
        /// What is wrong, and what is legal.
        problem: String,
    },
}

impl PlanError {
    pub(crate) fn value(key: impl Into<String>, value: impl ToString, legal: impl Into<String>) -> Self {
        Self::Value { key: key.into(), value: value.to_string(), legal: legal.into() }
    }

    /// The same, its key under a section.
    pub(crate) fn within(self, section: &str) -> Self {
        match self {
            Self::Value { key, value, legal } => Self::Value { key: format!("{section}.{key}"), value, legal },
            other => other,
        }
    }

    /// The same without the line.
    pub(crate) fn without_place(self) -> Self {
        match self {
            Self::Toml { problem, .. } => Self::Toml { place: String::new(), problem },
            other => other,
        }
    }

    /// The library's own message is a picture of several lines; this is the same in one.
    pub(crate) fn from_toml(source: &str, error: &toml::de::Error) -> Self {
        let mut problem = error.message().trim().replace('\n', ": ");
        let line = error.span().and_then(|span| {
            let number = source.get(..span.start)?.matches('\n').count() + 1;
            Some((number, source.lines().nth(number - 1)?.trim()))
        });
        // What is not TOML may be anything, a private key too: its lines are not shown.
        let is_toml = source.parse::<toml::Table>().is_ok();
        let place = match line {
            Some((number, line)) if is_toml => format!("line {number}, `{line}`: "),
            Some((number, _)) => format!("line {number}: "),
            None => String::new(),
        };
        if !is_toml {
            problem = format!("not TOML ({problem}): name a plan, or a file like those of --print-config");
        }
        Self::Toml { place, problem }
    }
}

impl From<PlanError> for Failure {
    fn from(e: PlanError) -> Self {
        Self::usage(e)
    }
}
