//! Tables of the tests that look at delays.

use measure::{
    procedure::{Found, Trend},
    result::TestResult,
};

use super::cells::{frame, outcome};
use crate::{
    names::Names,
    num,
    table::{Cell, Table},
};

fn us(ns: Option<u64>) -> Cell {
    ns.map(|ns| num::us(ns as f64)).into()
}

pub(super) fn profile(all: &[&TestResult]) -> Table {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.right(0, "load", "% of thr.");
    t.right(1, "load", "pps");
    for name in ["min", "avg", "p50", "p99", "p99.9", "max"] {
        t.right(1, name, "us");
    }
    t.right(1, "lost", "ratio");
    t.right(1, "N", "");
    for test in all {
        let Found::LatencyProfile(f) = &test.found else { continue };
        for p in &f.points {
            t.row(vec![
                frame(test),
                p.percent.map_or_else(|| "idle".into(), |p| num::trim(p, 2).into()),
                num::pps(p.load_fps).into(),
                us(p.min_ns),
                p.avg_ns.map(num::us).into(),
                us(p.p50_ns),
                us(p.p99_ns),
                us(p.p99_9_ns),
                us(p.max_ns),
                num::trim(p.loss_ratio, 6).into(),
                p.trials.len().to_string().into(),
            ]);
        }
    }
    t
}

/// The figure of RFC 2544 §26.2.
pub(super) fn tagged(test: &TestResult) -> Option<String> {
    let Found::LatencyProfile(f) = &test.found else { return None };
    let s = f.tagged_ns?;
    Some(format!(
        "{}: latency {} s into the stream at the throughput: mean {} us of {} trials (standard deviation {} us, {} to {} us)",
        test.frame_size_bytes.with_unit("B"),
        num::trim(f.tagged_at_s, 3),
        num::us(s.mean),
        s.n,
        num::us(s.stddev),
        num::us(s.min),
        num::us(s.max)
    ))
}

pub(super) fn pdv(all: &[&TestResult]) -> Table {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.left(0, "direction", "");
    t.right(1, "min delay", "us");
    t.right(1, "PDV", "p99.9 us");
    t.right(1, "IPDV", "p5 us");
    t.right(1, "IPDV", "p95 us");
    t.right(2, "windows", "");
    t.right(2, "min delay", "max us");
    t.right(2, "PDV", "mean us");
    t.right(2, "PDV", "max us");
    t.right(2, "IPDV range", "mean us");
    for test in all {
        let Found::Pdv(f) = &test.found else { continue };
        let names = Names::of_pairs(f.directions.iter().map(|d| (d.from.as_str(), d.to.as_str())));
        for d in &f.directions {
            let (ipdv, w) = (d.ipdv.as_ref(), d.windows.as_ref());
            t.row(vec![
                frame(test),
                names.pair(&d.from, &d.to).into(),
                num::us(d.min_ns as f64).into(),
                Cell::bold(num::us(d.pdv_p99_9_ns as f64)),
                ipdv.map(|i| num::us(i.p5_ns as f64)).into(),
                ipdv.map(|i| num::us(i.p95_ns as f64)).into(),
                w.map(|w| w.min_ns.n.to_string()).into(),
                w.map(|w| num::us(w.min_ns.max)).into(),
                w.map(|w| num::us(w.pdv_p99_9_ns.mean)).into(),
                w.map(|w| num::us(w.pdv_p99_9_ns.max)).into(),
                w.and_then(|w| w.ipdv_range_ns).map(|s| num::us(s.mean)).into(),
            ]);
        }
    }
    t
}

pub(super) fn soak(all: &[&TestResult]) -> Table {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.right(1, "load", "pps");
    t.right(1, "sent for", "");
    t.right(1, "segments", "");
    t.right(1, "lost", "frames");
    t.right(1, "budget", "");
    t.right(2, "delay drift", "us an hour");
    t.right(2, "rate drift", "pps an hour");
    t.right(2, "largest", "delay us");
    t.left(1, "result", "");
    for test in all {
        let Found::Soak(f) = &test.found else { continue };
        t.row(vec![
            frame(test),
            num::pps(f.load_fps).into(),
            num::duration(f.sent_s).into(),
            f.segments.len().to_string().into(),
            Cell::bold(num::thousands(f.lost)),
            f.budget.to_string().into(),
            f.delay_ns.map(|t| drift(&t, 1e-3)).into(),
            f.rate_fps.map(|t| drift(&t, 1.0)).into(),
            us(f.segments.iter().filter_map(|s| s.max_ns).max()),
            outcome(test.outcome),
        ]);
    }
    t
}

/// `+1.2 ±0.3`, or `none ±0.3` when it is within twice its standard error.
fn drift(trend: &Trend, unit: f64) -> String {
    let error = num::trim(trend.per_hour_error * unit, 3);
    match trend.drifts() {
        true => format!("{:+.3} ±{error}", trend.per_hour * unit),
        false => format!("none ±{error}"),
    }
}
