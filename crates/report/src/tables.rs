//! The tables that more than one document shows.

use measure::{
    result::{RunResult, SizeResult},
    search::mlr::Regularity,
    trial::{DirectionCounts, TrialRecord},
};

use units::{Fps, LinkSpeed};

use crate::{
    figures::{self, Rates, Shown},
    num,
    style::Paint,
    table::{Cell, Table},
    text, words,
};

/// Throughput, bit rates, share of the line, loss and latency: a row a frame size, as the source documents lay it out.
pub(crate) fn throughput(result: &RunResult) -> Table {
    let both = result.directions > 1;
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.right(1, "throughput", if both { "pps each way" } else { "pps" });
    t.right(1, "sum", "pps");
    t.right(1, "L2", "Mbit/s");
    t.right(1, "L1", "Mbit/s");
    t.right(1, "line", "rate %");
    t.right(1, "loss", "at it");
    t.left(1, "result", "");
    t.right(2, "lat min", "us");
    t.right(2, "lat avg", "us");
    t.right(2, "lat max", "us");
    for size in &result.sizes {
        let shown = Shown::of(size, result.link_bps);
        let rates = shown.rate().map(|r| Rates::new(r, size.frame_size_bytes, result.directions, result.link_bps));
        let latency = rates.and(figures::latency(&size.at_throughput));
        t.row(vec![
            size.frame_size_bytes.to_string().into(),
            rate_cell(shown),
            rates.filter(|_| both).map(|r| num::pps(r.sum)).into(),
            rates.map(|r| num::mbps(r.l2_bps)).into(),
            rates.map(|r| num::mbps(r.l1_bps)).into(),
            rates.and_then(|r| r.line_percent).map(|p| format!("{p:.2}")).into(),
            rates.and(figures::loss(&size.at_throughput)).map(|l| l.to_string()).into(),
            Cell {
                text: words::outcome(size, result.link_bps).into(),
                paint: words::outcome_paint(size, result.link_bps),
            },
            latency.map(|l| num::us(l.0 as f64)).into(),
            latency.map(|l| num::us(l.1)).into(),
            latency.map(|l| num::us(l.2 as f64)).into(),
        ]);
    }
    t
}

/// What MLRsearch found: a row a frame size and goal. Figures of an irregular result stand in brackets.
pub(crate) fn goals(result: &RunResult) -> Table {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.left(0, "goal", "");
    t.right(1, "lower bound", "pps");
    t.right(1, "conditional", "throughput pps");
    t.right(1, "upper bound", "pps");
    t.left(1, "result", "");
    t.right(1, "trials", "");
    t.right(1, "trial", "seconds");
    for size in &result.sizes {
        for goal in &size.goals {
            let (word, paint) = words::regularity(goal.regularity);
            let regular = goal.regularity == Regularity::Regular;
            let figure = |fps: Option<Fps>| match fps.map(num::pps) {
                None => "-".into(),
                Some(text) if regular => text.into(),
                Some(text) => Cell::from(format!("({text})")),
            };
            t.row(vec![
                size.frame_size_bytes.to_string().into(),
                text::clip(&text::clean(&goal.goal.name), 24).into(),
                figure(goal.lower_fps),
                figure(goal.conditional_throughput_fps),
                figure(goal.upper_fps),
                Cell { text: word.into(), paint },
                goal.trials.len().to_string().into(),
                num::trim(goal.trial_s, 3).into(),
            ]);
        }
    }
    t
}

/// The sizes whose figures may be shown.
pub(crate) fn shown(result: &RunResult) -> impl Iterator<Item = &SizeResult> {
    result.sizes.iter().filter(|s| Shown::of(s, result.link_bps) != Shown::Nothing)
}

fn rate_cell(shown: Shown) -> Cell {
    match shown {
        Shown::Exactly(fps) => Cell { text: num::pps(fps), paint: Paint::Bold },
        Shown::AtLeast(fps) => Cell { text: format!(">= {}", num::pps(fps)), paint: Paint::Bold },
        Shown::Nothing => Cell { text: "-".into(), paint: Paint::Plain },
    }
}

/// Percentiles and variation of the delay at the throughput found: a row a frame size and direction.
pub(crate) fn latency(result: &RunResult) -> Table {
    let mut t = latency_columns();
    let named = result.directions > 1;
    for size in shown(result) {
        for direction in &size.at_throughput {
            latency_row(&mut t, &size.frame_size_bytes.to_string(), direction, named);
        }
    }
    t
}

/// The same for one trial.
pub(crate) fn trial_latency(trial: &TrialRecord) -> Table {
    let mut t = latency_columns();
    for direction in &trial.directions {
        latency_row(&mut t, &trial.spec.frame_size_bytes.to_string(), direction, true);
    }
    t
}

fn latency_columns() -> Table {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.left(0, "direction", "");
    for p in ["p50", "p90", "p99", "p99.9", "p99.99", "p99.999"] {
        t.right(1, p, "us");
    }
    t.right(2, "PDV", "p99.9 us");
    t.right(2, "IPDV", "p5 us");
    t.right(2, "IPDV", "p95 us");
    t.right(2, "dup", "frames");
    t.right(2, "reordered", "frames");
    t
}

/// An unnamed direction is an empty cell: a column of nothing else is left out.
fn latency_row(t: &mut Table, size: &str, d: &DirectionCounts, named: bool) {
    let l = d.latency.as_ref();
    let ipdv = l.and_then(|l| l.ipdv.as_ref());
    let us = |ns: Option<u64>| Cell::from(ns.map(|ns| num::us(ns as f64)));
    t.row(vec![
        size.into(),
        if named { direction(d).into() } else { "".into() },
        us(l.map(|l| l.p50_ns)),
        us(l.map(|l| l.p90_ns)),
        us(l.map(|l| l.p99_ns)),
        us(l.map(|l| l.p99_9_ns)),
        us(l.map(|l| l.p99_99_ns)),
        us(l.map(|l| l.p99_999_ns)),
        us(l.map(|l| l.pdv_p99_9_ns)),
        ipdv.map(|i| num::us(i.p5_ns as f64)).into(),
        ipdv.map(|i| num::us(i.p95_ns as f64)).into(),
        num::thousands(d.duplicates).into(),
        num::thousands(d.reordered).into(),
    ]);
}

/// `a -> b`, each name cut to what a column bears.
pub(crate) fn direction(d: &DirectionCounts) -> String {
    format!("{} -> {}", text::clip(&text::clean(&d.from), 20), text::clip(&text::clean(&d.to), 20))
}

/// Every trial, valid or not.
pub(crate) fn trials(result: &RunResult) -> Table {
    let mut t = Table::default();
    t.right(0, "#", "");
    t.right(1, "frame", "B");
    t.left(1, "purpose", "");
    t.right(1, "try", "");
    t.right(1, "load", "pps");
    t.right(1, "duration", "s");
    t.right(2, "sent", "frames");
    t.right(2, "received", "frames");
    t.right(2, "lost", "frames");
    t.right(2, "loss", "");
    t.right(2, "placement", "");
    t.left(3, "validity", "");
    for trial in &result.trials {
        t.row(vec![
            trial.number.to_string().into(),
            trial.spec.frame_size_bytes.to_string().into(),
            words::purpose(trial.spec.purpose).into(),
            trial.attempt.to_string().into(),
            num::pps(trial.spec.load_fps).into(),
            num::trim(trial.real_duration_s, 3).into(),
            num::thousands(trial.directions.iter().map(|d| d.sent).sum()).into(),
            num::thousands(trial.directions.iter().map(|d| d.received).sum()).into(),
            num::thousands(trial.lost()).into(),
            figures::loss(&trial.directions).map(|l| l.to_string()).into(),
            trial.interference.placement.map(|p| p.to_string()).into(),
            validity(trial).into(),
        ]);
    }
    t
}

/// `valid`, `valid, latency withheld`, or `invalid: ` and the rules broken.
pub(crate) fn validity(trial: &TrialRecord) -> String {
    let mut rules: Vec<&str> = vec![];
    for v in trial.violations.iter().filter(|v| v.rule.invalidates()) {
        if !rules.contains(&words::rule(v.rule)) {
            rules.push(words::rule(v.rule));
        }
    }
    match (rules.is_empty(), trial.violations.is_empty()) {
        (true, true) => "valid".to_owned(),
        (true, false) => "valid, latency withheld".to_owned(),
        _ => format!("invalid: {}", rules.join(", ")),
    }
}

/// What the words in the result column mean, the bounds known so far and the diagnoses; sizes of one kind together.
pub(crate) fn notes(result: &RunResult) -> Vec<String> {
    let note = |size| note(size, result.link_bps).into_iter().collect();
    let merged = figures::by_sizes(result, note);
    merged.into_iter().map(|(text, sizes)| format!("{}: {text}", units::Frames::list(&sizes))).collect()
}

fn note(size: &SizeResult, link: Option<LinkSpeed>) -> Option<String> {
    let meaning = words::outcome_meaning(size, link);
    let mut text = meaning.map_or_else(String::new, |m| format!("{}: {m}", words::outcome(size, link)));
    if Shown::of(size, link) == Shown::Nothing {
        match (size.throughput_fps, size.upper_bound_fps) {
            (Some(low), Some(high)) => text.push_str(&format!("; bounds so far {low} and {high}")),
            (Some(low), None) => text.push_str(&format!("; {low} met the goal so far")),
            (None, Some(high)) => text.push_str(&format!("; {high} did not meet it")),
            (None, None) => {}
        }
    }
    if let Some(diagnosis) = &size.diagnosis {
        text.push_str(if text.is_empty() { "" } else { "; " });
        text.push_str(&text::clean(diagnosis));
    }
    (!text.is_empty()).then_some(text)
}
