//! How a result stands, in one line: the only place that gives it a colour.

use measure::{
    result::{RunResult, Standing as Kind},
    standing,
};

use crate::style::Paint;

/// How a result stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) text: String,
    pub(crate) paint: Paint,
}

/// How this result stands, with the number of its figures that are limits of the device.
pub(crate) fn standing_line(result: &RunResult) -> Standing {
    Standing { text: standing::describe(result), paint: paint(result.standing) }
}

/// The same without figures, for a row of a table.
pub(crate) fn word(standing: Kind) -> (&'static str, Paint) {
    let word = match standing {
        Kind::CriterionMet => "criterion met",
        Kind::Completed | Kind::NotDeviceLimit => "completed",
        Kind::CriterionMissed => "criterion missed",
        Kind::Interrupted => "interrupted",
        Kind::NotTrustworthy => "not trustworthy",
        Kind::Stopped => "stopped",
    };
    (word, paint(standing))
}

fn paint(standing: Kind) -> Paint {
    match standing {
        Kind::CriterionMet => Paint::Good,
        Kind::Completed | Kind::NotDeviceLimit => Paint::Plain,
        Kind::CriterionMissed | Kind::NotTrustworthy => Paint::Bad,
        Kind::Interrupted | Kind::Stopped => Paint::Warn,
    }
}
