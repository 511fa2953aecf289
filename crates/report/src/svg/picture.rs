//! The picture of a run: its panels below each other.

use measure::result::RunResult;

use super::{
    canvas::{Canvas, PANEL, WIDTH},
    error::SvgError,
    frame_loss, latency, throughput, timeline,
};

/// One standalone SVG with what the result has: throughput by frame size, one trial over time, delay by percentile, loss by load, those below
/// each other. Text is SVG text: no font is read, and everything from outside is escaped.
///
/// # Errors
/// [`SvgError`] when the drawing library refuses, which it does not for finite figures.
pub fn render(result: &RunResult) -> Result<String, SvgError> {
    let (curves, losses) = (latency::curves(result), frame_loss::curves(result));
    let bare = curves.is_empty() && losses.is_empty();
    let panels = [!result.sizes.is_empty() || bare, !curves.is_empty(), !losses.is_empty()];
    let over_time = result.timeline.as_ref().filter(|kept| timeline::panels(&kept.timeline) > 0);
    let of_trial = over_time.map_or(0, |kept| timeline::panels(&kept.timeline));
    let height = PANEL * (panels.iter().filter(|p| **p).count() as u32 + of_trial);
    let mut body = String::new();
    {
        let canvas = Canvas::new(&mut body, WIDTH, height)?;
        let mut top = 0;
        if panels[0] {
            throughput::draw(&canvas, top, result)?;
            top += PANEL as i32;
        }
        if let Some(kept) = over_time {
            timeline::draw(&canvas, top, &kept.timeline, &timeline::title(result, kept.trial))?;
            top += (PANEL * of_trial) as i32;
        }
        if panels[1] {
            latency::draw(&canvas, top, result, &curves)?;
            top += PANEL as i32;
        }
        if panels[2] {
            frame_loss::draw(&canvas, top, result, &losses)?;
        }
        canvas.finish()?;
    }
    Ok(body)
}
