//! What is said of a test below its table.

use measure::{procedure::TestOutcome, result::TestResult};
use units::Frames;

use crate::{document::Note, style::Paint, text, words};

/// Why a frame size has no figures.
pub(super) fn reasons(all: &[&TestResult]) -> Vec<Note> {
    let lines = by_sizes(all, |t| {
        let (word, _) = words::test_outcome(t.outcome);
        let word = if word.is_empty() { String::new() } else { format!("{word}: ") };
        t.reason.iter().map(|r| format!("{word}{}", text::clean(r))).collect()
    });
    lines.into_iter().map(|line| Note::new(line, Paint::Plain)).collect()
}

/// The standard, and each departure from it. How far it is met is said only where there is a figure.
pub(super) fn standards(all: &[&TestResult]) -> Vec<Note> {
    let run = |t: &TestResult| t.outcome != TestOutcome::NotRun;
    let mut lines = by_sizes(all, |t| match run(t) {
        true => vec![words::standard(&t.standard, Some(t.compliance).filter(|_| has_figure(t.outcome)))],
        false => Vec::new(),
    });
    lines.extend(by_sizes(all, |t| match run(t) {
        true => t.standard.departures.iter().map(|d| format!("departs: {}", text::clean(d))).collect(),
        false => Vec::new(),
    }));
    lines.into_iter().map(Note::plain).collect()
}

fn has_figure(outcome: TestOutcome) -> bool {
    match outcome {
        TestOutcome::Done | TestOutcome::AtMaximum | TestOutcome::TesterLimited | TestOutcome::Failed => true,
        TestOutcome::NotRun
        | TestOutcome::BelowMinimum
        | TestOutcome::NoTraffic
        | TestOutcome::Inconclusive
        | TestOutcome::Interrupted => false,
    }
}

/// Lines that are the same for many frame sizes, with the sizes they hold for unless these are all.
fn by_sizes(all: &[&TestResult], lines: impl Fn(&TestResult) -> Vec<String>) -> Vec<String> {
    let mut seen: Vec<(String, Vec<Frames>)> = Vec::new();
    for t in all {
        for line in lines(t) {
            match seen.iter_mut().find(|(text, _)| *text == line) {
                Some((_, sizes)) => sizes.push(t.frame_size_bytes),
                None => seen.push((line, vec![t.frame_size_bytes])),
            }
        }
    }
    let shown = |(line, sizes): (String, Vec<Frames>)| match sizes.len() == all.len() {
        true => line,
        false => format!("{}: {line}", Frames::list(&sizes)),
    };
    seen.into_iter().map(shown).collect()
}
