//! The rate against the first key of a sweep, a line for each value of the others.

use measure::{plan::SweepKey, result::SizeResult, sweep::SweepResult};
use units::{Fps, LinkSpeed};

use super::{
    canvas::{step, Anchor, Canvas, Plot, PANEL, WIDTH},
    error::SvgError,
    palette::{Stroke, GRID, INK, SOFT},
    throughput::axis,
};
use crate::{
    figures::{Rates, Shown},
    goals, names, text,
};

/// Most lines drawn.
const MAX_CURVES: usize = 14;
/// Pixels that a label of the horizontal axis takes.
const LABEL: i32 = 56;

/// One line: what it stands for, and by value of the first key the rate and whether it is but a lower bound.
type Curve = (String, Vec<(u64, Fps, bool)>);

/// One standalone SVG: rates over all directions by the first key.
///
/// # Errors
/// [`SvgError`] when the drawing library refuses, which it does not for finite figures.
pub fn sweep(sweep: &SweepResult) -> Result<String, SvgError> {
    let mut body = String::new();
    {
        let canvas = Canvas::new(&mut body, WIDTH, PANEL)?;
        draw(&canvas, sweep)?;
        canvas.finish()?;
    }
    Ok(body)
}

fn draw(canvas: &Canvas<'_>, sweep: &SweepResult) -> Result<(), SvgError> {
    let plot = Plot { left: 90, top: 96, right: WIDTH as i32 - 230, bottom: 398 };
    let key = sweep.keys.first().copied().unwrap_or(SweepKey::Flows);
    let (curves, more) = curves(sweep, key);
    canvas.bold(&format!("Throughput against {}", words(key)), (24, 28), 25)?;
    let duts: Vec<String> = sweep.points.iter().map(|p| names::dut_short(&p.result)).collect();
    let first = duts.first().map_or("", String::as_str);
    // What the points have set stands behind a comma, and is on the axes.
    let same = duts.iter().all(|dut| dut == first);
    let dut = if same { first } else { first.split(", ").next().unwrap_or(first) };
    let both = if sweep.points.iter().any(|p| p.result.directions > 1) { ", both ways together" } else { "" };
    let about = format!("Linerate {}: {}{both}; DUT {dut}", sweep.linerate_version, sweep.plan_name);
    canvas.text(&text::clip(&text::clean(&about), 110), (24, 54), 16, SOFT, Anchor::Start)?;

    let all = || curves.iter().flat_map(|(_, points)| points);
    let highest = all().map(|(_, rate, _)| rate.get()).fold(0.0, f64::max);
    let highest = if highest > 0.0 { highest } else { 1e6 };
    let tick = step(highest * 1.05);
    let full = (highest * 1.05 / tick).ceil() * tick;
    axis(canvas, plot, full, tick)?;

    let mut values: Vec<u64> = sweep.points.iter().filter_map(|p| p.values.get(&key).copied()).collect();
    values.sort_unstable();
    values.dedup();
    let mut free = i32::MIN;
    for &value in &values {
        let x = plot.x(share(value, &values));
        canvas.line(vec![(x, plot.top), (x, plot.bottom)], GRID, 1)?;
        if x >= free {
            canvas.text(&label(key, value), (x, plot.bottom + 18), 16, INK, Anchor::Middle)?;
            free = x + LABEL;
        }
    }
    canvas.line(vec![(plot.left, plot.bottom), (plot.right, plot.bottom)], INK, 1)?;
    canvas.text(words(key), ((plot.left + plot.right) / 2, plot.bottom + 42), 16, SOFT, Anchor::Middle)?;
    for (i, (name, points)) in curves.iter().enumerate() {
        let stroke = Stroke::of(i);
        let colour = stroke.colour;
        let at = |(value, rate, _): &(u64, Fps, bool)| (plot.x(share(*value, &values)), plot.y(rate.get() / full));
        for point in points {
            let (x, y) = at(point);
            match point.2 {
                true => canvas.frame([(x - 5, y - 5), (x + 5, y + 5)], colour)?,
                false => canvas.dot((x, y), colour)?,
            }
        }
        canvas.curve(&points.iter().map(at).collect::<Vec<_>>(), stroke, 2)?;
        let y = plot.top + 8 + i as i32 * 20;
        canvas.curve(&[(plot.right + 16, y), (plot.right + 40, y)], stroke, 3)?;
        canvas.text(&text::clip(name, 22), (plot.right + 48, y), 15, INK, Anchor::Start)?;
    }
    let mut said = Vec::new();
    if all().any(|(_, _, least)| *least) {
        said.push("squares: at least this (limit not found)".to_owned());
    }
    if more > 0 {
        said.push(format!("{more} more lines are not drawn"));
    }
    canvas.text(&said.join("; "), (plot.left, 78), 15, SOFT, Anchor::Start)
}

/// The lines of a sweep in order, and how many there are beyond those that can be told apart.
fn curves(sweep: &SweepResult, key: SweepKey) -> (Vec<Curve>, usize) {
    let others: Vec<SweepKey> =
        sweep.keys.iter().copied().filter(|k| *k != key && *k != SweepKey::FrameSizes).collect();
    let by_size = key != SweepKey::FrameSizes;
    let mut curves: Vec<Curve> = Vec::new();
    for point in &sweep.points {
        let Some(&value) = point.values.get(&key) else { continue };
        for size in &point.result.sizes {
            let mut parts: Vec<String> = others
                .iter()
                .zip(point.values_of(&others))
                .filter_map(|(key, value)| Some(format!("{} {}", words(*key), units::si_short(value? as f64))))
                .collect();
            parts.extend(by_size.then(|| size.frame_size_bytes.with_unit("B")));
            for (goal, shown) in rates_of(size, point.result.link_bps) {
                let Some(rate) = shown.rate() else { continue };
                let sum = Rates::new(rate, size.frame_size_bytes, point.result.directions, point.result.link_bps).sum;
                let name = parts.iter().cloned().chain(goal).collect::<Vec<_>>().join(", ");
                let found = (value, sum, matches!(shown, Shown::AtLeast(_)));
                match curves.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, points)) => points.push(found),
                    None => curves.push((name, vec![found])),
                }
            }
        }
    }
    curves.iter_mut().for_each(|(_, points)| points.sort_by_key(|(value, ..)| *value));
    let more = curves.len().saturating_sub(MAX_CURVES);
    curves.truncate(MAX_CURVES);
    (curves, more)
}

/// The rate of each goal with its name, or the one rate there is.
fn rates_of(size: &SizeResult, link: Option<LinkSpeed>) -> Vec<(Option<String>, Shown)> {
    let several = size.goals.len() > 1;
    let first = (size.goals.first().filter(|_| several).map(goals::name), Shown::of(size, link));
    let others = size.goals.iter().skip(1).map(|goal| (Some(goals::name(goal)), goals::rate(goal)));
    std::iter::once(first).chain(others).collect()
}

/// Where a value lies between the least and the largest: by its logarithm where these are far apart.
fn share(value: u64, values: &[u64]) -> f64 {
    let (Some(&least), Some(&most)) = (values.first(), values.last()) else { return 0.5 };
    let scale = |v: u64| if most >= least.saturating_mul(16) { (v.max(1) as f64).log2() } else { v as f64 };
    let width = scale(most) - scale(least);
    if width > 0.0 {
        // A margin on both sides, so that no label is cut.
        0.04 + 0.92 * (scale(value) - scale(least)) / width
    } else {
        0.5
    }
}

/// A value on the axis: bytes are whole, 1518 and not 1.518k.
fn label(key: SweepKey, value: u64) -> String {
    match key {
        SweepKey::FrameSizes => value.to_string(),
        _ => units::si_short(value as f64),
    }
}

fn words(key: SweepKey) -> &'static str {
    match key {
        SweepKey::FrameSizes => "frame size, bytes",
        key => key.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::{label, share, SweepKey};

    #[test]
    fn bytes_are_whole_and_numbers_are_short() {
        assert_eq!([label(SweepKey::FrameSizes, 1518), label(SweepKey::Flows, 64_000)], ["1518", "64k"]);
    }

    #[test]
    fn far_apart_values_stand_by_their_logarithm() {
        for (value, values, at) in
            [(1, [1, 2, 3], 0.04), (3, [1, 2, 3], 0.96), (2, [1, 2, 3], 0.5), (1000, [1, 1000, 1_000_000], 0.5)]
        {
            assert!((share(value, &values) - at).abs() < 1e-9, "{value} of {values:?}");
        }
        assert_eq!((share(5, &[5]), share(5, &[])), (0.5, 0.5));
    }
}
