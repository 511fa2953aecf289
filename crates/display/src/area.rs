//! Parts of the screen, and lines of text in them.

use ratatui::{layout::Rect, text::Line, widgets::Widget, Frame};

/// Draws a line of text in the first line of an area, as far as it is on the screen.
pub fn draw_line(frame: &mut Frame<'_>, area: Rect, line: impl Into<Line<'static>>) {
    let area = area.intersection(frame.area());
    if !area.is_empty() {
        line.into().render(area, frame.buffer_mut());
    }
}

/// The first `height` lines of an area, and the lines below.
pub fn split_top(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    (Rect { height, ..area }, Rect { y: area.y + height, height: area.height - height, ..area })
}

/// All but the last `height` lines of an area, and these.
pub fn split_bottom(area: Rect, height: u16) -> (Rect, Rect) {
    split_top(area, area.height.saturating_sub(height))
}
