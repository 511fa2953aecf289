//! Tables of the tests that look at loads, bursts and times.

use measure::{
    plan::ResetEvent,
    procedure::{BackToBack, Found, FrameLoss, TestOutcome},
    result::TestResult,
};
use units::Fps;

use super::cells::{frame, outcome, spread, spread_columns};
use crate::{
    num,
    table::{Cell, Table},
    text,
};

fn whole(v: f64) -> String {
    num::thousands(v.round().max(0.0) as u64)
}

fn ms(seconds: f64) -> String {
    num::trim(seconds * 1e3, 3)
}

fn us(seconds: f64) -> String {
    num::us(seconds * 1e9)
}

fn rate(fps: Option<Fps>) -> Cell {
    fps.map(num::pps).into()
}

/// A row a load, a column a frame size: percent lost.
pub(super) fn frame_loss(all: &[&TestResult]) -> Table {
    let mut t = Table::default();
    t.right(0, "load", "% of max");
    let curves: Vec<(&&TestResult, &FrameLoss)> = all
        .iter()
        .filter_map(|t| match &t.found {
            Found::FrameLoss(curve) => Some((t, curve)),
            _ => None,
        })
        .collect();
    for (test, _) in &curves {
        t.right(1, &test.frame_size_bytes.with_unit("B"), "% lost");
    }
    let mut loads: Vec<f64> = curves.iter().flat_map(|(_, c)| percents(c)).collect();
    loads.sort_by(|a, b| b.total_cmp(a));
    loads.dedup_by(|a, b| (*a - *b).abs() < 1e-6);
    for load in loads {
        let lost = |curve: &FrameLoss| -> Cell {
            let point = curve.points.iter().find(|p| (p.percent - load).abs() < 1e-6);
            let missing = curve.without_figure.iter().any(|p| (p.percent - load).abs() < 1e-6);
            point.map(|p| percent(p.loss_ratio)).or_else(|| missing.then(|| "no figure".to_owned())).into()
        };
        let cells = curves.iter().map(|(_, curve)| lost(curve));
        t.row(std::iter::once(num::trim(load, 2).into()).chain(cells).collect());
    }
    t
}

/// The loads of a curve, those without a figure included.
fn percents(curve: &FrameLoss) -> impl Iterator<Item = f64> + '_ {
    curve.points.iter().map(|p| p.percent).chain(curve.without_figure.iter().map(|p| p.percent))
}

/// A share in percent; a loss that is there is never shown as none.
pub(super) fn percent(ratio: f64) -> String {
    match num::trim(ratio * 100.0, 4) {
        text if text == "0" && ratio > 0.0 => "<0.0001".to_owned(),
        text => text,
    }
}

/// Whether the longest burst tried bounds the figure from below only.
pub(super) fn is_lower_bound(outcome: TestOutcome, f: &BackToBack) -> bool {
    matches!(outcome, TestOutcome::AtMaximum | TestOutcome::TesterLimited) || f.at_limit()
}

pub(super) fn back_to_back(all: &[&TestResult]) -> Table {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    spread_columns(&mut t, 1, "burst", "frames");
    t.right(2, "implied", "buffer us");
    t.right(2, "corrected", "buffer us");
    t.right(2, "corrected", "frames");
    t.right(2, "actual", "at thr. us");
    t.left(1, "result", "");
    for test in all {
        let Found::BackToBack(f) = &test.found else { continue };
        let mut cells = vec![frame(test)];
        let mut burst = spread(f.frames, whole);
        if is_lower_bound(test.outcome, f) && !burst[0].text.is_empty() {
            burst[0].text.insert_str(0, ">= ");
        }
        cells.extend(burst);
        cells.push(f.implied_buffer_s.map(us).into());
        cells.push(f.corrected_buffer_s.map(us).into());
        cells.push(f.corrected_buffer_frames.map(whole).into());
        cells.push(f.actual_buffer_s.map(us).into());
        cells.push(outcome(test.outcome));
        t.row(cells);
    }
    t
}

pub(super) fn recovery(all: &[&TestResult]) -> Table {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.right(1, "throughput", "pps");
    t.right(1, "overload", "pps");
    spread_columns(&mut t, 2, "recovery", "ms");
    t.left(2, "result", "");
    for test in all {
        let Found::Recovery(f) = &test.found else { continue };
        let mut cells = vec![frame(test), num::pps(f.throughput_fps).into(), num::pps(f.overload_fps).into()];
        cells.extend(spread(f.recovery_s, ms));
        cells.push(outcome(test.outcome));
        t.row(cells);
    }
    t
}

pub(super) fn reset(all: &[&TestResult]) -> Table {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.left(1, "event", "");
    t.right(1, "load", "pps");
    t.right(1, "lost", "frames");
    t.right(1, "by loss", "ms");
    t.right(1, "by stamps", "ms");
    t.right(1, "N", "");
    t.left(1, "result", "");
    for test in all {
        let Found::Reset(f) = &test.found else { continue };
        let event = match f.event {
            ResetEvent::Process => "process",
            ResetEvent::Link => "link",
            ResetEvent::Command => "command",
        };
        t.row(vec![
            frame(test),
            event.into(),
            num::pps(f.load_fps).into(),
            num::thousands(f.trials.iter().map(|t| t.lost).sum()).into(),
            f.by_loss_s.map_or_else(Cell::default, |s| Cell::bold(ms(s.mean))),
            f.by_timestamps_s.map(|s| ms(s.mean)).into(),
            f.trials.len().to_string().into(),
            outcome(test.outcome),
        ]);
    }
    t
}

/// How the commands that caused events ended.
pub(super) fn commands(test: &TestResult) -> Vec<String> {
    let Found::Reset(f) = &test.found else { return Vec::new() };
    let ended = |t: &measure::procedure::ResetTrial| {
        Some(format!("trial {}: the command: {}", t.trial, text::clean(t.command.as_ref()?)))
    };
    f.trials.iter().filter_map(ended).collect()
}

pub(super) fn bursty(all: &[&TestResult]) -> Table {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.right(0, "burst", "frames");
    t.right(1, "interval", "us");
    t.right(1, "mean load", "pps");
    t.right(1, "lost above", "pps");
    t.left(1, "result", "");
    for test in all {
        let Found::Bursty(f) = &test.found else { continue };
        for burst in &f.bursts {
            t.row(vec![
                frame(test),
                num::thousands(burst.burst_frames.into()).into(),
                burst.interval_s.map_or_else(|| "-".into(), |s| Cell::bold(us(s))),
                rate(burst.load_fps),
                rate(burst.upper_bound_fps),
                outcome(burst.outcome),
            ]);
        }
    }
    t
}

pub(super) fn forwarding_rate(all: &[&TestResult]) -> Table {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.right(1, "throughput", "pps");
    t.right(1, "MOL", "pps");
    t.right(1, "FRMOL", "pps");
    t.right(1, "MFR", "pps");
    t.right(1, "at Iload", "pps");
    t.left(1, "result", "");
    for test in all {
        let Found::ForwardingRate(f) = &test.found else { continue };
        t.row(vec![
            frame(test),
            num::pps(f.throughput_fps).into(),
            num::pps(f.mol_fps).into(),
            f.frmol_fps.map_or_else(Cell::default, |fps| Cell::bold(num::pps(fps))),
            f.mfr_fps.map_or_else(Cell::default, |fps| Cell::bold(num::pps(fps))),
            rate(f.mfr_iload_fps),
            outcome(test.outcome),
        ]);
    }
    t
}
