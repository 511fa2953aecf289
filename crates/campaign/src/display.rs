//! Where a campaign shows how far it is.

use report::progress::Line;

/// A display of progress. The binary draws it on a terminal; tests and dry runs show nothing.
pub trait Display {
    /// Shows this now.
    fn show(&self, line: &Line);
    /// Shows these words now.
    fn note(&self, text: &str);
    /// A line that stays.
    fn keep(&self, text: &str);
}

/// Shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hidden;

impl Display for Hidden {
    fn show(&self, _line: &Line) {}
    fn note(&self, _text: &str) {}
    fn keep(&self, _text: &str) {}
}
