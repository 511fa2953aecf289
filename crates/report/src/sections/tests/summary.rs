//! The main figure of each test, a row a frame size: what a short text shows in place of long tables.

use measure::{
    plan::Test,
    procedure::{Found, TestOutcome},
    result::{RunResult, TestResult},
};

use super::cells::frame;
use crate::{
    document::{Audience, Block, Section, Topic},
    num,
    table::{Cell, Table},
    words,
};

/// The section, for [`crate::Detail::Short`] alone.
pub(super) fn section(result: &RunResult, tests: &[Test]) -> Section {
    // The columns name the tests.
    Section::new(Topic::Tests, "Main figures of the tests")
        .short_title("")
        .with(Audience::SHORT, Block::Table(table(result, tests)))
}

fn table(result: &RunResult, tests: &[Test]) -> Table {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    for test in tests {
        let (name, unit) = column(*test);
        t.right(1, name, unit);
    }
    let mut sizes: Vec<_> = Vec::new();
    for test in &result.tests {
        if !sizes.contains(&test.frame_size_bytes) {
            sizes.push(test.frame_size_bytes);
        }
    }
    for size in sizes {
        let of = |kind: &Test| result.tests.iter().find(|t| t.test == *kind && t.frame_size_bytes == size);
        let Some(first) = tests.iter().find_map(of) else { continue };
        let cells = tests.iter().map(|kind| of(kind).map_or_else(Cell::default, cell));
        t.row(std::iter::once(frame(first)).chain(cells).collect());
    }
    t
}

/// Name and unit of the main figure.
fn column(test: Test) -> (&'static str, &'static str) {
    match test {
        Test::FrameLoss => ("lost at", "100 %, %"),
        Test::BackToBack => ("back-to-back", "frames"),
        Test::Recovery => ("recovery", "ms"),
        Test::Reset => ("reset", "ms"),
        Test::Bursty => ("bursts up to", "frames"),
        Test::ForwardingRate => ("max. forw.", "rate, pps"),
        Test::LatencyProfile => ("p99 at thr.", "us"),
        Test::Pdv => ("PDV p99.9", "us"),
        Test::Soak => ("soak lost", "frames"),
        Test::AddressCaching => ("addresses", "held"),
        Test::AddressLearning => ("learned at", "pps"),
        Test::Throughput | Test::Latency => ("", ""),
    }
}

/// The figure, or why there is none.
fn cell(test: &TestResult) -> Cell {
    match figure(test) {
        Some(text) => Cell::bold(text),
        None => match test.outcome {
            TestOutcome::Done => "-".into(),
            other => {
                let (word, paint) = words::test_outcome(other);
                Cell::painted(word, paint)
            }
        },
    }
}

fn figure(test: &TestResult) -> Option<String> {
    let whole = |v: f64| num::thousands(v.round().max(0.0) as u64);
    let ms = |s: f64| num::trim(s * 1e3, 3);
    let us = |ns: u64| num::us(ns as f64);
    match &test.found {
        Found::FrameLoss(f) => {
            let highest = f.points.iter().max_by(|a, b| a.percent.total_cmp(&b.percent))?;
            (highest.percent >= 99.5).then(|| super::loads::percent(highest.loss_ratio))
        }
        Found::BackToBack(f) => {
            let least = if super::loads::is_lower_bound(test.outcome, f) { ">= " } else { "" };
            Some(format!("{least}{}", whole(f.frames?.mean)))
        }
        Found::Recovery(f) => Some(ms(f.recovery_s?.mean)),
        Found::Reset(f) => Some(ms(f.by_loss_s?.mean)),
        Found::Bursty(f) => {
            let passed = f.bursts.iter().filter(|b| b.interval_s.is_some());
            Some(num::thousands(passed.map(|b| b.burst_frames).max()?.into()))
        }
        Found::ForwardingRate(f) => Some(num::pps(f.mfr_fps?)),
        Found::LatencyProfile(f) => {
            let full = f.points.iter().find(|p| p.percent.is_some_and(|p| (p - 100.0).abs() < 1e-6))?;
            Some(us(full.p99_ns?))
        }
        Found::Pdv(f) => Some(us(f.directions.iter().map(|d| d.pdv_p99_9_ns).max()?)),
        Found::Soak(f) => Some(num::thousands(f.lost)),
        Found::Addresses(f) if test.test == Test::AddressLearning => Some(num::pps(f.learning_fps?)),
        Found::Addresses(f) => Some(num::thousands(f.addresses?)),
        Found::Nothing => None,
    }
}
