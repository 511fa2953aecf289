//! One trial over time: load, what came through, delay, and who was away.

use measure::{
    result::RunResult,
    timeline::{Party, Slice, Timeline},
};

use super::{
    canvas::{step, Anchor, Canvas, Plot, PANEL, WIDTH},
    error::SvgError,
    palette::{Stroke, GRID, INK, SOFT},
};
use crate::{num, text};

/// Points of a curve: neighbouring slices are joined.
const POINTS: usize = 600;
/// Most directions of a trial.
const DIRECTIONS: usize = 2;
/// Slices that are shorter or longer are of no trial, seconds.
const SHORTEST_S: f64 = 1e-9;
const LONGEST_S: f64 = 1e6;
/// Height of the bar of each party, and the distance of the next, pixels.
const BAR: i32 = 12;

/// A picture of each direction of a trial, one below the other. `title` says what the trial was.
///
/// # Errors
///
/// When nothing can be drawn: a trial without slices.
pub fn timeline(timeline: &Timeline, title: &str) -> Result<String, SvgError> {
    let panels = panels(timeline);
    if panels == 0 {
        return Err(SvgError("the trial has no slices to draw".to_owned()));
    }
    let mut out = String::new();
    {
        let canvas = Canvas::new(&mut out, WIDTH, PANEL * panels)?;
        draw(&canvas, 0, timeline, title)?;
        canvas.finish()?;
    }
    Ok(out)
}

/// Panels that [`draw`] needs: one a direction, none where nothing can be drawn.
pub(super) fn panels(timeline: &Timeline) -> u32 {
    let drawable = (SHORTEST_S..=LONGEST_S).contains(&timeline.slice_s);
    if drawable {
        timeline.directions.len().min(DIRECTIONS) as u32
    } else {
        0
    }
}

/// The directions of a trial from this height on, one below the other.
pub(super) fn draw(canvas: &Canvas<'_>, top: i32, timeline: &Timeline, title: &str) -> Result<(), SvgError> {
    for (number, slices) in (0..).zip(timeline.directions.iter().take(DIRECTIONS)) {
        let several = timeline.directions.len() > 1;
        let way = if several { format!("{title}, direction {}", number + 1) } else { title.to_owned() };
        panel(canvas, top + number * PANEL as i32, timeline, slices, &way)?;
    }
    Ok(())
}

/// What the trial was that a result keeps over time.
pub(super) fn title(result: &RunResult, number: u32) -> String {
    match result.trials.iter().find(|trial| trial.number == number) {
        Some(trial) => {
            let spec = &trial.spec;
            format!("{} at {}, trial {number}", spec.frame_size_bytes.with_unit("B"), spec.load_fps)
        }
        None => format!("trial {number}"),
    }
}

/// A run of slices as one point.
#[derive(Debug, Clone, Copy, Default)]
struct Point {
    offered_fps: f64,
    received_fps: f64,
    /// Smallest delay, us.
    delay_us: Option<f64>,
}

fn points(slices: &[Slice], slice_s: f64) -> Vec<Point> {
    let each = slices.len().div_ceil(POINTS).max(1);
    let point = |run: &[Slice]| {
        let time = run.len() as f64 * slice_s;
        let rate = |of: fn(&Slice) -> u32| run.iter().map(|s| f64::from(of(s))).sum::<f64>() / time;
        let delays = run.iter().filter(|s| s.received > 0).map(|s| f64::from(s.min_delay_ns) / 1e3);
        Point {
            offered_fps: rate(|s| s.sent + s.refused),
            received_fps: rate(|s| s.received),
            delay_us: delays.min_by(f64::total_cmp),
        }
    };
    slices.chunks(each).map(point).collect()
}

fn panel(canvas: &Canvas<'_>, top: i32, timeline: &Timeline, slices: &[Slice], title: &str) -> Result<(), SvgError> {
    // What follows the end of sending is short and empty.
    let sent = slices.iter().rposition(|s| s.sent + s.refused > 0).map_or(slices.len(), |last| last + 1);
    let slices = slices.get(..sent).unwrap_or(slices);
    let (points, seconds) = (points(slices, timeline.slice_s), slices.len() as f64 * timeline.slice_s);
    let rates = Plot { left: 90, top: top + 80, right: WIDTH as i32 - 190, bottom: top + 250 };
    let delays = Plot { top: top + 278, bottom: top + 368, ..rates };
    canvas.bold("Trial over time", (24, top + 26), 25)?;
    canvas.text(&text::clip(&text::clean(title), 110), (24, top + 52), 16, SOFT, Anchor::Start)?;
    let most = points.iter().map(|p| p.offered_fps.max(p.received_fps)).fold(1.0, f64::max);
    grid(canvas, rates, most, |fps| num::trim(fps / 1e6, 3))?;
    canvas.upwards("Mpps", (26, (rates.top + rates.bottom) / 2), 16)?;
    let slowest = points.iter().filter_map(|p| p.delay_us).fold(0.1, f64::max);
    grid(canvas, delays, slowest, |us| num::trim(us, 1))?;
    canvas.upwards("delay, us", (26, (delays.top + delays.bottom) / 2), 16)?;
    let count = points.len().max(2) as f64 - 1.0;
    let curve = |plot: Plot, of: &dyn Fn(&Point) -> Option<f64>, most: f64, stroke: Stroke| {
        let at = |(i, p): (usize, &Point)| Some((plot.x(i as f64 / count), plot.y(of(p)? / most)));
        let line: Vec<(i32, i32)> = points.iter().enumerate().filter_map(at).collect();
        if line.len() > 1 {
            canvas.curve(&line, stroke, 1)
        } else {
            Ok(())
        }
    };
    let [offered, received, delay] = [0, 1, 2].map(Stroke::of);
    curve(rates, &|p| Some(p.offered_fps), most, offered)?;
    curve(rates, &|p| Some(p.received_fps), most, received)?;
    curve(delays, &|p| p.delay_us, slowest, delay)?;
    for (i, (name, stroke)) in [("offered", offered), ("received", received)].into_iter().enumerate() {
        legend(canvas, rates, rates.top + 8 + i as i32 * 22, name, stroke)?;
    }
    legend(canvas, delays, delays.top + 8, "smallest delay", delay)?;
    for (i, (who, name)) in [(Party::Tester, "tester away"), (Party::Device, "device away")].into_iter().enumerate() {
        let y = delays.bottom + 14 + i as i32 * (BAR + 6);
        canvas.line(vec![(rates.left, y + BAR), (rates.right, y + BAR)], GRID, 1)?;
        for away in timeline.absences.iter().filter(|a| a.who == who && a.from_s < seconds) {
            let x = |at_s: f64| rates.x((at_s / seconds).clamp(0.0, 1.0));
            let (from, to) = (x(away.from_s), x(away.to_s));
            canvas.fill([(from, y), (to.max(from + 1), y + BAR)], Stroke::of(i).colour)?;
        }
        canvas.text(name, (rates.right + 16, y + BAR / 2), 16, INK, Anchor::Start)?;
    }
    let y = delays.bottom + 14 + 2 * (BAR + 6) + 12;
    canvas.text("0", (rates.left, y), 16, INK, Anchor::Middle)?;
    canvas.text(&format!("{} s", num::trim(seconds, 4)), (rates.right, y), 16, INK, Anchor::Middle)
}

/// Lines and labels of a vertical axis from 0 to `most`.
fn grid(canvas: &Canvas<'_>, plot: Plot, most: f64, label: impl Fn(f64) -> String) -> Result<(), SvgError> {
    // Half as many lines where there is half the room.
    let step = step(most) * if plot.bottom - plot.top < 120 { 2.0 } else { 1.0 };
    let mut value = 0.0;
    while value <= most {
        let y = plot.y(value / most);
        canvas.line(vec![(plot.left, y), (plot.right, y)], GRID, 1)?;
        canvas.text(&label(value), (plot.left - 10, y), 16, INK, Anchor::End)?;
        value += step;
    }
    Ok(())
}

fn legend(canvas: &Canvas<'_>, plot: Plot, y: i32, name: &str, stroke: Stroke) -> Result<(), SvgError> {
    canvas.curve(&[(plot.right + 16, y), (plot.right + 40, y)], stroke, 3)?;
    canvas.text(name, (plot.right + 48, y), 16, INK, Anchor::Start)
}

#[cfg(test)]
mod tests {
    use measure::timeline::Absence;

    use super::*;

    #[test]
    fn a_trial_has_its_curves_and_absences() {
        let busy = Slice { sent: 100, received: 80, min_delay_ns: 2_500, ..Slice::default() };
        let absences = vec![Absence { who: Party::Tester, from_s: 0.01, to_s: 0.02 }];
        let one = Timeline { slice_s: 1e-4, directions: vec![vec![busy; 1000]], absences };
        let svg = timeline(&one, "64 B at 1 Mpps").unwrap();
        for part in ["Trial over time", "64 B at 1 Mpps", "offered", "received", "smallest delay", "tester away"] {
            assert!(svg.contains(part), "{part}");
        }
        let both = Timeline { directions: vec![vec![busy; 10]; 2], ..one };
        assert!(timeline(&both, "").unwrap().contains("direction 2"));
    }

    #[test]
    fn without_slices_there_is_no_picture() {
        assert!(timeline(&Timeline::default(), "").is_err());
        for slice_s in [-1.0, 0.0, 1e-300, 1e300] {
            assert!(timeline(&Timeline { slice_s, directions: vec![vec![Slice::default()]], absences: vec![] }, "")
                .is_err());
        }
        let empty = Timeline { slice_s: 1e-4, directions: vec![vec![]], absences: vec![] };
        assert!(timeline(&empty, "").is_ok());
    }
}
