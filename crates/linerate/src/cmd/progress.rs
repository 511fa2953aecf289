//! A progress line on standard error, if it is a terminal.

use campaign::display::Display;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use report::{progress::Line, Style};

use crate::out;

/// The progress line.
pub struct Progress {
    bar: ProgressBar,
    width: usize,
}

impl Progress {
    /// A line. With `quiet`, or when standard error is not a terminal, the line is hidden.
    pub fn new(quiet: bool) -> Self {
        let watched = !quiet && out::watched();
        let target = if watched { ProgressDrawTarget::stderr_with_hz(5) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>4} {msg}") {
            bar.set_style(style);
        }
        let width = console::Term::stderr().size_checked().map_or(80, |(_, columns)| usize::from(columns));
        Self { bar, width: width.saturating_sub(12).max(28) }
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Display for Progress {
    fn show(&self, line: &Line) {
        if !self.bar.is_hidden() {
            self.bar.set_message(line.render(&Style { width: self.width, ..Style::PIPE }));
            self.bar.tick();
        }
    }

    fn note(&self, text: &str) {
        self.bar.set_message(text.to_owned());
        self.bar.tick();
    }

    fn keep(&self, text: &str) {
        // Prints above the progress line; nothing when it is hidden.
        self.bar.println(text);
    }
}
