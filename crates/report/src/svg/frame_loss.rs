//! Loss by load.

use measure::{
    procedure::{Found, FrameLoss, LossPoint},
    result::{RunResult, TestResult},
};

use super::{
    canvas::{Anchor, Canvas, Plot},
    error::SvgError,
    palette::{Stroke, GRID, INK, SOFT},
};
use crate::{names, sections::setting, text};

/// Half the width of the cross that marks a load without a figure.
const CROSS: i32 = 5;

/// The loss curves of a result.
pub(super) fn curves<'a>(result: &'a RunResult) -> Vec<(&'a TestResult, &'a FrameLoss)> {
    let curve = |t: &'a TestResult| match &t.found {
        Found::FrameLoss(curve) if !(curve.points.is_empty() && curve.without_figure.is_empty()) => Some((t, curve)),
        _ => None,
    };
    result.tests.iter().filter_map(curve).collect()
}

/// Percent lost against percent of the theoretical rate, both from 0 to 100 (RFC 2544 §26.3), a line a frame size.
pub(super) fn draw(
    canvas: &Canvas<'_>,
    top: i32,
    result: &RunResult,
    curves: &[(&TestResult, &FrameLoss)],
) -> Result<(), SvgError> {
    let names: Vec<String> = curves.iter().map(|(test, _)| test.frame_size_bytes.with_unit("B")).collect();
    let right = Plot::right_beside(names.iter().map(String::as_str), 160);
    let plot = Plot { left: 90, top: top + 96, right, bottom: top + 398 };
    canvas.bold("Frame loss rate by load", (24, top + 28), 25)?;
    let each = if result.directions > 1 { ", load each way" } else { "" };
    let about = format!("{}; DUT {}{each}", setting::title(result), names::dut_short(result));
    canvas.text(&text::clip(&text::clean(&about), 110), (24, top + 54), 16, SOFT, Anchor::Start)?;
    for tenth in 0..=10 {
        let share = f64::from(tenth) / 10.0;
        let (x, y, label) = (plot.x(share), plot.y(share), (tenth * 10).to_string());
        canvas.line(vec![(plot.left, y), (plot.right, y)], GRID, 1)?;
        canvas.line(vec![(x, plot.top), (x, plot.bottom)], GRID, 1)?;
        canvas.text(&label, (plot.left - 10, y), 16, INK, Anchor::End)?;
        canvas.text(&label, (x, plot.bottom + 18), 16, INK, Anchor::Middle)?;
    }
    canvas.line(vec![(plot.left, plot.bottom), (plot.right, plot.bottom)], INK, 1)?;
    canvas.upwards("frames lost, %", (26, (plot.top + plot.bottom) / 2), 16)?;
    let middle = (plot.left + plot.right) / 2;
    let void = curves.iter().any(|(_, curve)| !curve.without_figure.is_empty());
    let axis =
        if void { "load, % of the theoretical rate; x: no valid trial" } else { "load, % of the theoretical rate" };
    canvas.text(axis, (middle, plot.bottom + 42), 16, SOFT, Anchor::Middle)?;
    for (i, ((_, curve), name)) in curves.iter().zip(&names).enumerate() {
        let stroke = Stroke::of(i);
        let colour = stroke.colour;
        for stretch in stretches(curve) {
            let at = |p: &LossPoint| (plot.x(p.percent / 100.0), plot.y(p.loss_ratio));
            let points: Vec<(i32, i32)> = stretch.iter().map(at).collect();
            points.iter().try_for_each(|&p| canvas.dot(p, colour))?;
            if points.len() > 1 {
                canvas.curve(&points, stroke, 2)?;
            }
        }
        for load in &curve.without_figure {
            let (x, y) = (plot.x(load.percent / 100.0), plot.bottom);
            canvas.line(vec![(x - CROSS, y - CROSS), (x + CROSS, y + CROSS)], colour, 2)?;
            canvas.line(vec![(x - CROSS, y + CROSS), (x + CROSS, y - CROSS)], colour, 2)?;
        }
        let y = plot.top + 8 + i as i32 * 22;
        canvas.curve(&[(plot.right + 16, y), (plot.right + 40, y)], stroke, 3)?;
        canvas.text(name, (plot.right + 48, y), 16, INK, Anchor::Start)?;
    }
    Ok(())
}

/// The points between loads without a figure: a line across one would show a loss that nobody measured.
fn stretches(curve: &FrameLoss) -> impl Iterator<Item = &[LossPoint]> {
    let void = |a: &LossPoint, b: &LossPoint| {
        let between = |percent: f64| (percent - a.percent) * (percent - b.percent) < 0.0;
        curve.without_figure.iter().any(|load| between(load.percent))
    };
    curve.points.chunk_by(move |a, b| !void(a, b))
}
