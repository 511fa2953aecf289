//! What the tests beside the throughput found: a section a test, for the terminal and for Markdown.

mod addresses;
mod delays;
mod loads;

use measure::{
    plan::Test,
    procedure::{Spread, TestOutcome},
    result::{RunResult, TestResult},
};
use units::Frames;

use crate::{
    style::Paint,
    table::{Cell, Table},
    text, words,
};

/// One test over all frame sizes.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) table: Table,
    /// Why a size has no figures, and the standard with each departure.
    pub(crate) notes: Vec<String>,
}

/// Every test of the run, in the order of its first answer.
pub(crate) fn sections(result: &RunResult) -> Vec<Section> {
    let mut order: Vec<Test> = Vec::new();
    for t in &result.tests {
        if !order.contains(&t.test) {
            order.push(t.test);
        }
    }
    order.into_iter().map(|test| section(result, test)).collect()
}

fn section(result: &RunResult, test: Test) -> Section {
    let all: Vec<&TestResult> = result.tests.iter().filter(|t| t.test == test).collect();
    let (title, table) = match test {
        Test::FrameLoss => ("Frame loss rate by load", loads::frame_loss(&all)),
        Test::BackToBack => ("Back-to-back frames", loads::back_to_back(&all)),
        Test::Recovery => ("System recovery", loads::recovery(&all)),
        Test::Reset => ("Reset", loads::reset(&all)),
        Test::Bursty => ("Bursty traffic: smallest interval between bursts", loads::bursty(&all)),
        Test::ForwardingRate => ("Forwarding rate", loads::forwarding_rate(&all)),
        Test::LatencyProfile => ("One-way delay by load", delays::profile(&all)),
        Test::Pdv => ("Delay variation, whole and by window", delays::pdv(&all)),
        Test::Soak => ("Soak", delays::soak(&all)),
        Test::AddressCaching => ("Address caching capacity", addresses::rounds(&all)),
        Test::AddressLearning => ("Address learning rate", addresses::rounds(&all)),
        Test::Throughput | Test::Latency => ("", Table::default()),
    };
    let mut notes = by_sizes(&all, |t| {
        let (word, _) = words::test_outcome(t.outcome);
        let word = if word.is_empty() { String::new() } else { format!("{word}: ") };
        t.reason.iter().map(|r| format!("{word}{}", text::clean(r))).collect()
    });
    if test == Test::LatencyProfile {
        notes.extend(all.iter().filter_map(|t| delays::tagged(t)));
    }
    if test.is_of_addresses() {
        notes.extend(all.iter().filter_map(|t| addresses::answer(t)));
    }
    if test == Test::Reset {
        notes.extend(all.iter().flat_map(|t| loads::commands(t)));
    }
    notes.extend(by_sizes(&all, |t| match t.outcome {
        TestOutcome::NotRun => Vec::new(),
        _ => vec![words::standard(&t.standard, Some(t.compliance))],
    }));
    notes.extend(by_sizes(&all, |t| match t.outcome {
        TestOutcome::NotRun => Vec::new(),
        _ => t.standard.departures.iter().map(|d| format!("departs: {}", text::clean(d))).collect(),
    }));
    Section { title, table, notes }
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

/// The frame size of a row.
fn frame(t: &TestResult) -> Cell {
    t.frame_size_bytes.to_string().into()
}

/// How a test ended, as a cell.
fn outcome(outcome: TestOutcome) -> Cell {
    let (word, paint) = words::test_outcome(outcome);
    Cell { text: word.into(), paint }
}

fn bold(text: String) -> Cell {
    Cell { text, paint: Paint::Bold }
}

/// Mean, standard deviation, least, most and number of repeated values, each shown by `of`.
fn spread(spread: Option<Spread>, of: impl Fn(f64) -> String) -> [Cell; 5] {
    let Some(s) = spread else { return Default::default() };
    [bold(of(s.mean)), of(s.stddev).into(), of(s.min).into(), of(s.max).into(), s.n.to_string().into()]
}

/// The columns of [`spread`].
fn spread_columns(t: &mut Table, group: u8, what: &str, unit: &str) {
    t.right(group, what, unit);
    for (name, unit) in [("stddev", unit), ("min", unit), ("max", unit), ("N", "")] {
        t.right(group, name, unit);
    }
}
