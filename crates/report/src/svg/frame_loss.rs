use measure::{
    procedure::{Found, FrameLoss},
    result::{RunResult, TestResult},
};

use super::{
    canvas::{Anchor, Canvas, Plot, CURVES, GRID, INK, SOFT},
    SvgError, WIDTH,
};
use crate::{terminal, text};

/// The loss curves of a result.
pub(super) fn curves<'a>(result: &'a RunResult) -> Vec<(&'a TestResult, &'a FrameLoss)> {
    let curve = |t: &'a TestResult| match &t.found {
        Found::FrameLoss(curve) if !curve.points.is_empty() => Some((t, curve)),
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
    let plot = Plot { left: 90, top: top + 96, right: WIDTH as i32 - 160, bottom: top + 398 };
    canvas.bold("Frame loss rate by load", (24, top + 28), 25)?;
    let about = format!("{}; DUT {}", terminal::title(result), result.dut);
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
    canvas.text("load, % of the theoretical rate", (middle, plot.bottom + 42), 16, SOFT, Anchor::Middle)?;
    for ((i, (test, curve)), colour) in curves.iter().enumerate().zip(CURVES.into_iter().cycle()) {
        let at = |p: &measure::procedure::LossPoint| {
            (plot.x((p.percent / 100.0).clamp(0.0, 1.0)), plot.y(p.loss_ratio.min(1.0)))
        };
        let points: Vec<(i32, i32)> = curve.points.iter().map(at).collect();
        points.iter().try_for_each(|&p| canvas.dot(p, colour))?;
        canvas.line(points, colour, 2)?;
        let y = plot.top + 8 + i as i32 * 22;
        canvas.line(vec![(plot.right + 16, y), (plot.right + 40, y)], colour, 3)?;
        canvas.text(&test.frame_size_bytes.with_unit("B"), (plot.right + 48, y), 16, INK, Anchor::Start)?;
    }
    Ok(())
}
