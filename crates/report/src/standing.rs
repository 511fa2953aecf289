//! How a result stands, as every document shows it.

use measure::{result, result::RunResult, standing};

use crate::style::Paint;

/// A line on how a result stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) text: String,
    pub(crate) paint: Paint,
}

/// How this result stands, with the number of its figures that are limits of the device.
pub(crate) fn standing_line(result: &RunResult) -> Standing {
    Standing { text: standing::describe(result), paint: paint(result.standing) }
}

/// The same in a word or two, for a row of a table.
pub(crate) fn word(standing: result::Standing) -> (&'static str, Paint) {
    let word = match standing {
        result::Standing::CriterionMet => "criterion met",
        result::Standing::Completed => "completed",
        result::Standing::NotDeviceLimit => "not the device's limit",
        result::Standing::CriterionMissed => "criterion missed",
        result::Standing::Interrupted => "interrupted",
        result::Standing::NotTrustworthy => "not trustworthy",
        result::Standing::Stopped => "stopped",
    };
    (word, paint(standing))
}

pub(crate) fn paint(standing: result::Standing) -> Paint {
    match standing {
        result::Standing::CriterionMet => Paint::Good,
        result::Standing::Completed | result::Standing::NotDeviceLimit => Paint::Plain,
        result::Standing::Stopped => Paint::Warn,
        result::Standing::CriterionMissed | result::Standing::Interrupted | result::Standing::NotTrustworthy => {
            Paint::Bad
        }
    }
}
