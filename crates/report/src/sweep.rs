//! What a sweep found: a row a point and frame size.

use measure::{
    plan::SweepKey,
    result::{RunResult, SizeResult},
    search::mlr::{GoalResult, Regularity},
    sweep::{SweepPoint, SweepResult},
};

use crate::{
    csv,
    document::Section,
    figures,
    figures::{Rates, Shown},
    goals::{name, rate as goal_rate},
    num, several, sheet, standing,
    style::Paint,
    table::{Cell, Table},
    text, words,
};

/// Most notes on points without a figure.
const MAX_NOTES: usize = 8;

/// The keys that need a column of their own; frame sizes have one anyway.
fn columns(sweep: &SweepResult) -> Vec<SweepKey> {
    sweep.keys.iter().copied().filter(|key| *key != SweepKey::FrameSizes).collect()
}

/// The table of a sweep: its keys, frame size, rates over all directions, latency, and how each search ended.
pub fn sheet(sweep: &SweepResult) -> Section {
    let keys = columns(sweep);
    let mut t = Table::default();
    keys.iter().for_each(|key| t.right(0, key.name(), ""));
    t.right(0, "frame", "B");
    t.left(0, "goal", "");
    t.right(1, "rate", "Mpps");
    t.right(1, "L1", "Mbit/s");
    t.right(1, "line", "rate %");
    for which in ["min", "avg", "max"] {
        t.right(1, &format!("lat {which}"), "us");
    }
    t.left(1, "result", "");
    for point in &sweep.points {
        let values: Vec<Cell> = point.values_of(&keys).into_iter().map(|v| Cell::from(v.map(num::thousands))).collect();
        for size in &point.result.sizes {
            t.row([values.clone(), figures_of(&point.result, size)].concat());
            let others = size.goals.iter().skip(1);
            others.for_each(|goal| t.row([values.clone(), goal_figures(&point.result, size, goal)].concat()));
        }
        if point.result.sizes.is_empty() {
            let (word, paint) = standing::word(point.result.standing);
            let none = std::iter::repeat_n(Cell::default(), 8);
            t.row(values.into_iter().chain(none).chain([Cell::painted(word, paint)]).collect());
        }
    }
    let ways = if sweep.points.iter().any(|p| p.result.directions > 1) { "both ways" } else { "one way" };
    let names: Vec<_> = sweep.keys.iter().map(|key| key.name()).collect();
    let title = format!("Throughput by {}, {ways}", names.join(" and "));
    sheet::of(title, t, notes(sweep))
}

/// How the whole sweep stands, below its tables.
pub fn standing(sweep: &SweepResult) -> Section {
    several::section(sweep.standing)
}

fn figures_of(result: &RunResult, size: &SizeResult) -> Vec<Cell> {
    let shown = Shown::of(size, result.link_bps);
    let rates = shown.rate().map(|r| Rates::new(r, size.frame_size_bytes, result.directions, result.link_bps));
    let latency = rates.and(figures::latency(&size.at_throughput));
    let least = if matches!(shown, Shown::AtLeast(_)) { ">= " } else { "" };
    let rate = rates.map_or_else(|| "-".to_owned(), |r| format!("{least}{:.3}", r.sum.get() / 1e6));
    vec![
        size.frame_size_bytes.to_string().into(),
        size.goals.first().filter(|_| size.goals.len() > 1).map(name).into(),
        Cell::bold(rate),
        rates.map(|r| num::mbps(r.l1_bps)).into(),
        rates.and_then(|r| r.line_percent).map(|p| format!("{p:.2}")).into(),
        latency.map(|l| num::us(l.0 as f64)).into(),
        latency.map(|l| num::us(l.1)).into(),
        latency.map(|l| num::us(l.2 as f64)).into(),
        Cell::painted(words::outcome(size, result.link_bps), words::outcome_paint(size, result.link_bps)),
    ]
}

/// The row of a goal behind the first: the latency was measured at that one's throughput.
fn goal_figures(result: &RunResult, size: &SizeResult, goal: &GoalResult) -> Vec<Cell> {
    let shown = goal_rate(goal);
    let rates = shown.rate().map(|r| Rates::new(r, size.frame_size_bytes, result.directions, result.link_bps));
    let least = if matches!(shown, Shown::AtLeast(_)) { ">= " } else { "" };
    let rate = rates.map_or_else(|| "-".to_owned(), |r| format!("{least}{:.3}", r.sum.get() / 1e6));
    let (word, paint) = match goal.regularity {
        Regularity::Regular => ("", Paint::Plain),
        other => words::regularity(other),
    };
    let none = Cell::default;
    vec![
        size.frame_size_bytes.to_string().into(),
        name(goal).into(),
        Cell::bold(rate),
        rates.map(|r| num::mbps(r.l1_bps)).into(),
        rates.and_then(|r| r.line_percent).map(|p| format!("{p:.2}")).into(),
        none(),
        none(),
        none(),
        Cell::painted(word, paint),
    ]
}

/// Notes: the simulated device, warnings, and points without a figure.
fn notes(sweep: &SweepResult) -> Vec<String> {
    let mut notes = Vec::new();
    let mut say = |note: String| {
        if !notes.contains(&note) {
            notes.push(note);
        }
    };
    if sweep.points.len() < sweep.planned {
        say(format!("{} of {} points: the others were not measured", sweep.points.len(), sweep.planned));
    }
    if sweep.points.iter().any(|p| figures::simulated(&p.result)) {
        say("simulated: no frame was sent and no device measured".to_owned());
    }
    let warnings = sweep.points.iter().flat_map(|p| &p.result.warnings);
    warnings.filter(|w| w.kind != measure::result::WarningKind::Simulated).for_each(|w| say(text::clean(&w.text)));
    let silent = |p: &'_ SweepPoint, s: &SizeResult| {
        let why = s.diagnosis.as_deref().filter(|_| Shown::of(s, p.result.link_bps) == Shown::Nothing)?;
        let frames = s.frame_size_bytes.with_unit("B");
        Some(format!("{}, {frames}: {}", p.point(&sweep.keys), text::clip(&text::clean(why), 300)))
    };
    let silent: Vec<_> =
        sweep.points.iter().flat_map(|p| p.result.sizes.iter().filter_map(move |s| silent(p, s))).collect();
    let more = silent.len().saturating_sub(MAX_NOTES);
    silent.into_iter().take(MAX_NOTES).for_each(&mut say);
    if more > 0 {
        say(format!("and {more} more without a figure: the JSON result says why"));
    }
    notes
}

/// One line a frame size of a point, for those who watch.
pub fn lines(result: &RunResult) -> String {
    let line = |size: &SizeResult| {
        let rate = Shown::of(size, result.link_bps).rate().map_or_else(|| "-".to_owned(), |r| r.to_string());
        let each = if result.directions > 1 { " each way" } else { "" };
        let line = format!(
            "{:>9}  {rate:>12}{each}  {}",
            size.frame_size_bytes.with_unit("B"),
            words::outcome(size, result.link_bps)
        );
        let other = |goal: &GoalResult| {
            let rate = goal_rate(goal).rate().map_or_else(|| "-".to_owned(), |r| r.to_string());
            format!("{:>9}  {rate:>12}{each}  {}\n", "", name(goal))
        };
        let others: String = size.goals.iter().skip(1).map(other).collect();
        format!("{}\n{others}", line.trim_end())
    };
    result.sizes.iter().map(line).collect()
}

/// A line a point and frame size: the keys, then the columns of [`csv::sizes`].
pub fn csv(sweep: &SweepResult) -> String {
    with_keys(sweep, csv::sizes)
}

/// A line a figure of each test: the keys, then the columns of the CSV of tests.
pub fn csv_tests(sweep: &SweepResult) -> String {
    with_keys(sweep, csv::tests_of)
}

/// The keys of each point in front of each line of what a document says of it; the widest header stands for all.
fn with_keys(sweep: &SweepResult, document: fn(&RunResult) -> String) -> String {
    let keys = columns(sweep);
    let documents: Vec<String> = sweep.points.iter().map(|p| document(&p.result)).collect();
    let header = documents.iter().filter_map(|d| d.lines().next()).max_by_key(|h| h.len()).unwrap_or_default();
    let names: Vec<String> = keys.iter().map(|key| format!("{key},")).collect();
    let mut out = format!("{}{header}\n", names.concat());
    for (point, document) in sweep.points.iter().zip(&documents) {
        let values: Vec<String> =
            point.values_of(&keys).into_iter().map(|v| v.map_or_else(String::new, |v| v.to_string()) + ",").collect();
        let missing = header.matches(',').count() - document.lines().next().map_or(0, |h| h.matches(',').count());
        for line in document.lines().skip(1) {
            out.push_str(&format!("{}{line}{}\n", values.concat(), ",".repeat(missing)));
        }
    }
    out
}
