//! One-way delay and its variation, at the throughput found or of one trial.

use measure::{
    result::RunResult,
    trial::{DirectionCounts, TrialRecord},
};

use crate::{
    document::{Audience, Block, Section, Topic},
    figures,
    names::Names,
    num,
    table::{Cell, Table},
};

/// Delays at the throughput.
pub(crate) fn section(result: &RunResult) -> Section {
    let of = if result.directions > 1 { ", of two directions the slower" } else { "" };
    Section::new(Topic::Delay, "One-way delay at the throughput, and its variation")
        .short_title(format!("One-way delay at the throughput, us{of}"))
        .with(Audience::SHORT, Block::Table(short(result)))
        .with(Audience::DETAILS, Block::Table(table(result)))
}

/// A row a frame size: the direction with the larger 99th percentile.
fn short(result: &RunResult) -> Table {
    let mut t = Table::default();
    t.right(0, "frame", "");
    for name in ["min", "avg", "p50", "p90", "p99", "p99.9", "max"] {
        t.right(1, name, "");
    }
    for size in figures::shown(result) {
        let all = size.at_throughput.iter().filter_map(|d| d.latency.as_ref());
        let Some(l) = all.max_by(|a, b| a.p99_ns.cmp(&b.p99_ns).then(a.avg_ns.total_cmp(&b.avg_ns))) else { continue };
        let us = |ns: u64| Cell::from(num::us(ns as f64));
        t.row(vec![
            size.frame_size_bytes.to_string().into(),
            us(l.min_ns),
            num::us(l.avg_ns).into(),
            us(l.p50_ns),
            us(l.p90_ns),
            us(l.p99_ns),
            us(l.p99_9_ns),
            us(l.max_ns),
        ]);
    }
    t
}

/// Percentiles and variation of the delay at the throughput found: a row a frame size and direction.
fn table(result: &RunResult) -> Table {
    let mut t = columns();
    let named = result.directions > 1;
    let names = Names::of_directions(figures::shown(result).flat_map(|size| &size.at_throughput));
    for size in figures::shown(result) {
        for direction in &size.at_throughput {
            let name = if named { names.direction(direction) } else { String::new() };
            row(&mut t, &size.frame_size_bytes.to_string(), direction, name);
        }
    }
    t
}

/// The same for one trial.
pub(crate) fn of_trial(trial: &TrialRecord) -> Table {
    let mut t = columns();
    let names = Names::of_trial(trial);
    for direction in &trial.directions {
        row(&mut t, &trial.spec.frame_size_bytes.to_string(), direction, names.direction(direction));
    }
    t
}

fn columns() -> Table {
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
fn row(t: &mut Table, size: &str, d: &DirectionCounts, name: String) {
    let l = d.latency.as_ref();
    let ipdv = l.and_then(|l| l.ipdv.as_ref());
    let us = |ns: Option<u64>| Cell::from(ns.map(|ns| num::us(ns as f64)));
    t.row(vec![
        size.into(),
        name.into(),
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
