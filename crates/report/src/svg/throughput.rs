//! Bars of the throughput.

use measure::result::{RunResult, SizeResult};
use units::si;

use super::{
    canvas::{step, Anchor, Canvas, Plot, WIDTH},
    error::SvgError,
    palette::{BLUE, GRID, INK, ORANGE, SKY, SOFT},
};
use crate::{
    figures::{self, ends, Shown},
    names, num,
    sections::setting,
    text, words,
};

/// Bars of throughput per direction, each with the interval of its answer; a stroke at the line rate over each when the link is known.
pub(super) fn draw(canvas: &Canvas<'_>, top: i32, result: &RunResult) -> Result<(), SvgError> {
    let plot = Plot { left: 90, top: top + 96, right: WIDTH as i32 - 30, bottom: top + 398 };
    let each = if result.directions > 1 { ", each way" } else { "" };
    canvas.bold(&format!("Throughput against frame size{each}"), (24, top + 28), 25)?;
    let about = format!("{}; DUT {}", setting::title(result), names::dut_short(result));
    canvas.text(&text::clip(&text::clean(&about), 110), (24, top + 54), 16, SOFT, Anchor::Start)?;

    let rates = result.sizes.iter().filter_map(|s| Shown::of(s, result.link_bps).rate()).map(|r| r.get());
    let uppers = result.sizes.iter().filter_map(|s| ends(s, result.link_bps)).map(|(_, upper)| upper.get());
    let best = figures::highest(rates, uppers);
    let line_rate = |s: &SizeResult| result.link_bps.map(|l| l.line_rate(s.frame_size_bytes).get());
    let highest_line = result.sizes.iter().filter_map(line_rate).fold(0.0, f64::max);
    // As in the terminal: a link far above the DUT must not press every bar flat.
    let highest = if best == 0.0 || highest_line <= best * 3.0 { best.max(highest_line) } else { best };
    let highest = if highest > 0.0 { highest } else { 1e6 };
    let step = step(highest * 1.05);
    let full = (highest * 1.05 / step).ceil() * step;

    axis(canvas, plot, full, step)?;
    legend(canvas, top + 80, result, highest_line > full)?;
    let slots = result.sizes.len().max(1) as f64;
    for (i, size) in result.sizes.iter().enumerate() {
        let middle = plot.x((i as f64 + 0.5) / slots);
        // Two frame sizes must not make two walls.
        let slot = (f64::from(plot.right - plot.left) / slots).min(150.0);
        let beside = |part: f64| middle + (slot * part).round() as i32;
        let shown = Shown::of(size, result.link_bps);
        let rate = shown.rate().map_or(0.0, |r| r.get());
        let y = plot.y(rate / full);
        let (left, right) = (beside(-0.3), beside(0.3));
        match shown {
            Shown::Exactly(_) => canvas.fill([(left, y), (right, plot.bottom)], BLUE)?,
            Shown::AtLeast(_) => {
                canvas.fill([(left, y), (right, plot.bottom)], SKY)?;
                canvas.frame([(left, y), (right, plot.bottom)], BLUE)?;
            }
            Shown::Nothing => {}
        }
        let mut highest = y;
        if let Some((lower, upper)) = ends(size, result.link_bps) {
            highest = plot.y(upper.get() / full).min(y);
            let cap = ((right - left) / 4).min(12);
            interval(canvas, middle, (plot.y(lower.get() / full), highest), cap, upper.get() <= full)?;
        }
        if let Some(line) = line_rate(size).filter(|l| *l <= full) {
            let at = plot.y(line / full);
            canvas.line(vec![(beside(-0.42), at), (beside(0.42), at)], ORANGE, 3)?;
        }
        let over = |y: i32| {
            line_rate(size).map_or(y, |l| if (plot.y(l / full) - y).abs() < 12 { plot.y(l / full) - 13 } else { y })
        };
        let label = match shown {
            Shown::Exactly(r) => si(r.get()).trim_end().to_owned(),
            Shown::AtLeast(r) => format!("≥ {}", si(r.get()).trim_end()),
            Shown::Nothing => words::outcome(size, result.link_bps).to_owned(),
        };
        canvas.text(&label, (middle, over(highest - 11)), if slots > 12.0 { 12 } else { 16 }, INK, Anchor::Middle)?;
        canvas.text(&size.frame_size_bytes.to_string(), (middle, plot.bottom + 18), 16, INK, Anchor::Middle)?;
    }
    canvas.line(vec![(plot.left, plot.bottom), (plot.right, plot.bottom)], INK, 1)?;
    let middle = (plot.left + plot.right) / 2;
    canvas.text("frame size, bytes with FCS", (middle, plot.bottom + 42), 16, SOFT, Anchor::Middle)
}

/// An upright stroke from the lower to the upper end, with a cap at each; none at an end that lies off the scale.
fn interval(canvas: &Canvas<'_>, x: i32, (lower, upper): (i32, i32), cap: i32, on: bool) -> Result<(), SvgError> {
    canvas.line(vec![(x, lower), (x, upper)], INK, 2)?;
    let caps = [Some(lower), Some(upper).filter(|_| on)];
    caps.into_iter().flatten().try_for_each(|y| canvas.line(vec![(x - cap, y), (x + cap, y)], INK, 2))
}

/// Grid, figures and unit of the rates on the left, up to `full`.
pub(super) fn axis(canvas: &Canvas<'_>, plot: Plot, full: f64, step: f64) -> Result<(), SvgError> {
    let (scale, unit) = if full >= 1e6 {
        (1e6, "Mpps")
    } else if full >= 1e3 {
        (1e3, "kpps")
    } else {
        (1.0, "pps")
    };
    let ticks = (full / step).round() as u32;
    for i in 0..=ticks {
        let y = plot.y(f64::from(i) / f64::from(ticks.max(1)));
        canvas.line(vec![(plot.left, y), (plot.right, y)], GRID, 1)?;
        let value = num::trim(f64::from(i) * step / scale, 3);
        canvas.text(&value, (plot.left - 10, y), 16, INK, Anchor::End)?;
    }
    canvas.upwards(unit, (26, (plot.top + plot.bottom) / 2), 16)
}

fn legend(canvas: &Canvas<'_>, y: i32, result: &RunResult, off: bool) -> Result<(), SvgError> {
    let mut x = 90;
    let has = |test: fn(&Shown) -> bool| result.sizes.iter().map(|s| Shown::of(s, result.link_bps)).any(|s| test(&s));
    if has(|s| matches!(s, Shown::Exactly(_))) {
        canvas.fill([(x, y - 6), (x + 18, y + 6)], BLUE)?;
        canvas.text("throughput found", (x + 26, y), 15, INK, Anchor::Start)?;
        x += 170;
    }
    if has(|s| matches!(s, Shown::AtLeast(_))) {
        canvas.fill([(x, y - 6), (x + 18, y + 6)], SKY)?;
        canvas.frame([(x, y - 6), (x + 18, y + 6)], BLUE)?;
        canvas.text("at least this (limit not found)", (x + 26, y), 15, INK, Anchor::Start)?;
        x += 250;
    }
    if result.sizes.iter().any(|size| ends(size, result.link_bps).is_some()) {
        interval(canvas, x + 9, (y + 8, y - 8), 6, true)?;
        canvas.text("its interval", (x + 26, y), 15, INK, Anchor::Start)?;
        x += 130;
    }
    if let Some(link) = result.link_bps {
        canvas.line(vec![(x, y), (x + 18, y)], ORANGE, 3)?;
        let off = if off { " (off the scale where not drawn)" } else { "" };
        canvas.text(&format!("line rate of {link}bit/s{off}"), (x + 26, y), 15, INK, Anchor::Start)?;
    }
    Ok(())
}
