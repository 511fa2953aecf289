//! How a result stands, in one line: the only place that words it.

use measure::{
    plan::Test,
    procedure::TestOutcome,
    result::{Outcome, RunResult, Verdict},
    search::mlr::Regularity,
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
    let figures = figures(result);
    let counted = |text: &str| match figures.as_str() {
        "" => text.to_owned(),
        figures => format!("{text}; {figures}"),
    };
    let (text, paint) = match result.verdict {
        Verdict::Stopped => ("stopped before the end; what was measured is kept".to_owned(), Paint::Warn),
        Verdict::Inconclusive => (counted("not trustworthy"), Paint::Bad),
        Verdict::Failed => (counted("criterion missed"), Paint::Bad),
        Verdict::Passed if criterion(result) => (counted("criterion met"), Paint::Good),
        Verdict::Passed => (counted("completed; no criterion was set"), Paint::Plain),
    };
    Standing { text, paint }
}

/// The same without figures, for a row of a table.
pub(crate) fn word(verdict: Verdict) -> (&'static str, Paint) {
    match verdict {
        Verdict::Passed => ("completed", Paint::Plain),
        Verdict::Failed => ("criterion missed", Paint::Bad),
        Verdict::Inconclusive => ("not trustworthy", Paint::Bad),
        Verdict::Stopped => ("stopped", Paint::Warn),
    }
}

/// Whether the run held something against a criterion: the loss that a soak may have.
fn criterion(result: &RunResult) -> bool {
    result.tests.iter().any(|t| t.test == Test::Soak && t.outcome != TestOutcome::NotRun)
}

/// `5 of 7 figures are limits of the device`; nothing where there are no figures of a search.
fn figures(result: &RunResult) -> String {
    let of_size = |size: &measure::result::SizeResult| match size.goals.as_slice() {
        [] => (1, usize::from(size.outcome == Outcome::Found)),
        goals => (goals.len(), goals.iter().filter(|g| g.regularity == Regularity::Regular).count()),
    };
    let (all, device) = result.sizes.iter().map(of_size).fold((0, 0), |(a, d), (all, device)| (a + all, d + device));
    match (all, device) {
        (0, _) => String::new(),
        (1, 1) => "the figure is a limit of the device".to_owned(),
        (1, _) => "the figure is not a limit of the device".to_owned(),
        (_, 1) => format!("1 of {all} figures is a limit of the device"),
        _ => format!("{device} of {all} figures are limits of the device"),
    }
}
