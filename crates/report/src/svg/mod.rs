//! Pictures for a browser: throughput against frame size, the distribution of the delay by percentile, and loss by load.

mod canvas;
mod frame_loss;
mod latency;
mod sweep;
mod throughput;

use measure::result::RunResult;

use self::canvas::Canvas;
pub use self::sweep::sweep;

/// A picture that could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw the picture: {0}")]
pub struct SvgError(pub(crate) String);

const WIDTH: u32 = 960;
const PANEL: u32 = 460;

/// One standalone SVG with what the result has: throughput by frame size, delay by percentile, loss by load, those below
/// each other. Text is SVG text: no font is read, and everything from outside is escaped.
///
/// # Errors
/// [`SvgError`] when the drawing library refuses, which it does not for finite figures.
pub fn render(result: &RunResult) -> Result<String, SvgError> {
    let (curves, losses) = (latency::curves(result), frame_loss::curves(result));
    let bare = curves.is_empty() && losses.is_empty();
    let panels = [!result.sizes.is_empty() || bare, !curves.is_empty(), !losses.is_empty()];
    let height = PANEL * panels.iter().filter(|p| **p).count() as u32;
    let mut body = String::new();
    {
        let canvas = Canvas::new(&mut body, WIDTH, height)?;
        let mut top = 0;
        if panels[0] {
            throughput::draw(&canvas, top, result)?;
            top += PANEL as i32;
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
