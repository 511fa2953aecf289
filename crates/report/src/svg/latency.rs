//! Delay by percentile: of frames in a trial, and of applications.

use std::collections::BTreeMap;

use latency::steps::Step;
use measure::{
    result::RunResult,
    trial::{DirectionCounts, LatencySummary},
};

use super::{
    canvas::{Anchor, Canvas, Plot, PANEL, WIDTH},
    error::SvgError,
    palette::{Stroke, GRID, INK, SOFT},
};
use crate::{figures, num};

/// The delay of one frame size, all directions together.
pub(super) struct Curve {
    name: String,
    /// Delay, ns, against `-log10(1 - share of frames at most that late)`, both rising.
    points: Vec<(f64, f64)>,
}

/// One curve a frame size that has delays; for a single trial, one.
pub(super) fn curves(result: &RunResult) -> Vec<Curve> {
    let mut all: Vec<(String, &[DirectionCounts])> = vec![];
    for size in figures::shown(result) {
        all.push((size.frame_size_bytes.with_unit("B"), &size.at_throughput));
    }
    if let (true, Some(trial)) = (result.sizes.is_empty(), figures::single(result)) {
        all.push((trial.spec.frame_size_bytes.with_unit("B"), &trial.directions));
    }
    all.into_iter()
        .map(|(name, directions)| Curve { name, points: points(directions) })
        .filter(|c| c.points.len() > 1)
        .collect()
}

fn points(directions: &[DirectionCounts]) -> Vec<(f64, f64)> {
    let latencies: Vec<&LatencySummary> = directions.iter().filter_map(|d| d.latency.as_ref()).collect();
    let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
    for (edge, frames) in latencies.iter().flat_map(|l| &l.histogram) {
        let bin = bins.entry((*edge).max(1)).or_default();
        *bin = bin.saturating_add(*frames);
    }
    bins.retain(|_, frames| *frames > 0);
    let total: f64 = bins.values().map(|f| *f as f64).sum();
    if total == 0.0 {
        return match latencies.as_slice() {
            [one] => percentiles(one),
            _ => vec![],
        };
    }
    let mut points: Vec<(f64, f64)> = vec![];
    let mut after = total;
    for (edge, frames) in &bins {
        if points.is_empty() {
            points.push((0.0, *edge as f64));
        }
        after -= *frames as f64;
        // The last frame stands for itself: 1 of n is log10(n) nines, not infinitely many.
        points.push((-(after.max(1.0) / total).log10(), *edge as f64));
    }
    points
}

/// A result without its histogram still has its percentiles.
fn percentiles(l: &LatencySummary) -> Vec<(f64, f64)> {
    if l.frames == 0 {
        return vec![];
    }
    let known = [l.min_ns, l.p50_ns, l.p90_ns, l.p99_ns, l.p99_9_ns, l.p99_99_ns, l.p99_999_ns];
    let nines = [0.0, 2f64.log10(), 1.0, 2.0, 3.0, 4.0, 5.0];
    nines.into_iter().zip(known.map(|ns| ns.max(1) as f64)).collect()
}

/// Delay against percentile, each nine as wide as the one before it, the delay logarithmic.
pub(super) fn draw(canvas: &Canvas<'_>, top: i32, result: &RunResult, curves: &[Curve]) -> Result<(), SvgError> {
    let what = if result.sizes.is_empty() { "of the trial" } else { "at the throughput found" };
    let both = if result.directions > 1 { ", both ways together" } else { "" };
    let below = format!("every frame received {what}{both}");
    let names =
        ["One-way delay by percentile", &below, "one-way delay, us (logarithmic)", "share of frames at most this late"];
    draw_named(canvas, top, names, curves)
}

/// A picture of what applications saw, a line for each name.
///
/// # Errors
/// [`SvgError`] when the drawing library refuses, which it does not for finite figures.
pub fn of_applications(title: &str, below: &str, rows: &[(String, &[Step])]) -> Result<String, SvgError> {
    let curves: Vec<Curve> = rows
        .iter()
        .map(|(name, steps)| Curve { name: name.clone(), points: points_of_steps(steps) })
        .filter(|curve| curve.points.len() > 1)
        .collect();
    let mut body = String::new();
    {
        let canvas = Canvas::new(&mut body, WIDTH, PANEL)?;
        draw_named(&canvas, 0, [title, below, "us (logarithmic)", "share of times at most this long"], &curves)?;
        canvas.finish()?;
    }
    Ok(body)
}

fn points_of_steps(steps: &[Step]) -> Vec<(f64, f64)> {
    let total: f64 = steps.iter().map(|step| step.samples as f64).sum();
    let mut after = total;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for step in steps.iter().filter(|step| step.samples > 0 && step.to_ns >= 1.0) {
        if points.is_empty() {
            points.push((0.0, step.from_ns.max(1.0)));
        }
        after -= step.samples as f64;
        points.push((-(after.max(1.0) / total).log10(), step.to_ns));
    }
    points
}

/// Curves under a title and a line below it, with the words of both axes.
fn draw_named(canvas: &Canvas<'_>, top: i32, names: [&str; 4], curves: &[Curve]) -> Result<(), SvgError> {
    let [title, below, upwards, across] = names;
    let right = Plot::right_beside(curves.iter().map(|curve| curve.name.as_str()), 130);
    let plot = Plot { left: 90, top: top + 76, right, bottom: top + 398 };
    canvas.bold(title, (24, top + 28), 25)?;
    canvas.text(below, (24, top + 54), 16, SOFT, Anchor::Start)?;

    let all = || curves.iter().flat_map(|c| &c.points);
    let nines = all().map(|p| p.0).fold(1.0, f64::max).ceil().min(7.0);
    let low = all().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let high = all().map(|p| p.1).fold(1.0, f64::max);
    let ticks = delay_ticks(low, high);
    let (bottom, full) = match (ticks.first(), ticks.last()) {
        (Some(a), Some(b)) if b > a => (a.log10(), b.log10()),
        _ => (0.0, 1.0),
    };
    let y = |ns: f64| plot.y((ns.log10() - bottom) / (full - bottom));
    for tick in &ticks {
        canvas.line(vec![(plot.left, y(*tick)), (plot.right, y(*tick))], GRID, 1)?;
        canvas.text(&num::trim(*tick / 1e3, 3), (plot.left - 10, y(*tick)), 16, INK, Anchor::End)?;
    }
    canvas.upwards(upwards, (26, (plot.top + plot.bottom) / 2), 16)?;

    let mut marks = vec![(0.0, "min".to_owned())];
    if nines < 6.0 {
        marks.push((2f64.log10(), "50 %".to_owned()));
    }
    for n in 1..=nines as usize {
        let digits = if n > 2 { format!("99.{}", "9".repeat(n - 2)) } else { "9".repeat(n) };
        marks.push((n as f64, format!("{} %", if n == 1 { "90".to_owned() } else { digits })));
    }
    for (at, name) in marks {
        let x = plot.x(at / nines);
        canvas.line(vec![(x, plot.top), (x, plot.bottom)], GRID, 1)?;
        canvas.text(&name, (x, plot.bottom + 18), 15, INK, Anchor::Middle)?;
    }
    canvas.line(vec![(plot.left, plot.bottom), (plot.right, plot.bottom)], INK, 1)?;
    let middle = (plot.left + plot.right) / 2;
    canvas.text(across, (middle, plot.bottom + 42), 16, SOFT, Anchor::Middle)?;

    // Many names stand closer.
    let apart = ((plot.bottom - plot.top - 8) / curves.len().max(1) as i32).min(22);
    for (i, curve) in curves.iter().enumerate() {
        let stroke = Stroke::of(i);
        let line: Vec<(i32, i32)> = thinned(curve.points.iter().map(|p| (plot.x(p.0 / nines), y(p.1))));
        if let Some(end) = line.last() {
            canvas.dot(*end, stroke.colour)?;
        }
        canvas.curve(&line, stroke, 2)?;
        let at = plot.top + 8 + apart * i as i32;
        if at < plot.bottom {
            canvas.curve(&[(plot.right + 24, at), (plot.right + 46, at)], stroke, 4)?;
            canvas.text(&curve.name, (plot.right + 54, at), 16, INK, Anchor::Start)?;
        }
    }
    Ok(())
}

/// Consecutive points on one pixel are drawn once: thousands of bins become hundreds of points.
fn thinned(points: impl Iterator<Item = (i32, i32)>) -> Vec<(i32, i32)> {
    let mut out: Vec<(i32, i32)> = points.collect();
    out.dedup();
    out
}

/// 1, 2 and 5 times powers of ten around a range in ns; powers alone when the range is wide.
fn delay_ticks(low: f64, high: f64) -> Vec<f64> {
    if !(low.is_finite() && high.is_finite() && low > 0.0) {
        return vec![];
    }
    let wide = high / low > 3e3;
    let mut ticks: Vec<f64> = vec![];
    for power in 0..=19 {
        for m in if wide { &[1.0][..] } else { &[1.0, 2.0, 5.0][..] } {
            ticks.push(m * 10f64.powi(power));
        }
    }
    let first = ticks.iter().rposition(|t| *t <= low).unwrap_or(0);
    let last = ticks.iter().position(|t| *t >= high && *t > low).unwrap_or(ticks.len() - 1);
    ticks.get(first..=last).map_or_else(Vec::new, <[f64]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_becomes_nines() {
        let latency = LatencySummary { histogram: vec![(1000, 90), (2000, 9), (9000, 1)], ..Default::default() };
        let points = points(&[DirectionCounts { latency: Some(latency), ..Default::default() }]);
        let rounded: Vec<(i64, i64)> = points.iter().map(|p| ((p.0 * 1e6).round() as i64, p.1 as i64)).collect();
        assert_eq!(rounded, [(0, 1000), (1_000_000, 1000), (2_000_000, 2000), (2_000_000, 9000)]);
    }

    #[test]
    fn applications_have_a_line_each() {
        let step = |from_ns, to_ns, samples| Step { from_ns, to_ns, samples };
        let steps = [step(100.0, 200.0, 90), step(200.0, 400.0, 0), step(400.0, 800.0, 10)];
        assert_eq!(points_of_steps(&steps).len(), 3);
        let rows = [("cable <a>".to_owned(), &steps[..]), ("nothing".to_owned(), &[][..])];
        let svg = of_applications("Times", "below", &rows).expect("a picture");
        assert!(svg.contains("cable &lt;a&gt;") && !svg.contains("nothing"), "{svg}");
        assert!(of_applications("Times", "below", &[]).is_ok());
    }

    #[test]
    fn ticks_hold_the_range() {
        assert_eq!(delay_ticks(643.0, 4_100.0), [500.0, 1e3, 2e3, 5e3]);
        assert_eq!(delay_ticks(1000.0, 1000.0), [1e3, 2e3]);
        assert_eq!(delay_ticks(500.0, 9e6).first(), Some(&100.0));
        assert!(delay_ticks(f64::INFINITY, 1.0).is_empty());
    }
}
