//! The words of the progress display. The binary decides when and where to show them.

use units::{si, Fps, Frames};

use crate::{num, text, Style};

/// What a run is doing at this moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What is being done when it is no trial of a search: `self-test`, `warm-up`; empty in a search.
    pub phase: String,
    /// Frame size under test, its place among them from 1, and how many there are.
    pub frame_size: Option<(Frames, usize, usize)>,
    /// Intended load of the trial that runs.
    pub load: Option<Fps>,
    /// Highest load that met the goal so far, and lowest that did not.
    pub bounds: (Option<Fps>, Option<Fps>),
    /// Trials done.
    pub trials: u32,
    /// Those of them thrown away.
    pub invalid: u32,
    /// Estimated seconds to the end, when there is an estimate.
    pub left_s: Option<f64>,
}

impl Line {
    /// One line, cut to the width of the style, without colours (the terminal redraws it all the time).
    pub fn render(&self, style: &Style) -> String {
        let mut parts = vec![];
        if let Some((size, at, of)) = self.frame_size {
            parts.push(format!("{} ({at}/{of})", size.with_unit("B")));
        }
        parts.push(text::styled(&self.phase, style));
        parts.extend(self.load.map(|l| l.to_string()));
        if self.bounds != (None, None) {
            parts.push(bounds(self.bounds.0, self.bounds.1));
        }
        let invalid = if self.invalid > 0 { format!(", {} invalid", self.invalid) } else { String::new() };
        parts.push(format!("{} trial{}{invalid}", self.trials, if self.trials == 1 { "" } else { "s" }));
        parts.extend(self.left_s.map(|s| format!("about {} left", num::duration(s.max(0.0).round()))));
        parts.retain(|p| !p.is_empty());
        text::clip(&parts.join("  "), style.width)
    }
}

/// `[8.100 M .. 14.20 Mpps]`; an open end is `?`.
pub(crate) fn bounds(low: Option<Fps>, high: Option<Fps>) -> String {
    let side = |b: Option<Fps>| b.map_or_else(|| "?".to_owned(), |f| si(f.get()).trim_end().to_owned());
    let high = high.map_or_else(|| "?".to_owned(), |f| f.to_string());
    format!("[{} .. {high}]", side(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        Line {
            phase: String::new(),
            frame_size: Some((units::FrameSize::MIN.into(), 1, 7)),
            load: Some(Fps::from_raw(12.3e6)),
            bounds: (Some(Fps::from_raw(8.1e6)), Some(Fps::from_raw(14.2e6))),
            trials: 12,
            invalid: 2,
            left_s: Some(83.4),
        }
    }

    #[test]
    fn says_where_the_search_is() {
        let text = line().render(&Style::PIPE);
        assert_eq!(text, "64 B (1/7)  12.30 Mpps  [8.100 M .. 14.20 Mpps]  12 trials, 2 invalid  about 83 s left");
        let start = Line {
            phase: "self-test".into(),
            load: None,
            bounds: (None, None),
            trials: 1,
            invalid: 0,
            left_s: None,
            ..line()
        };
        assert_eq!(start.render(&Style::PIPE), "64 B (1/7)  self-test  1 trial");
        let open = Line { bounds: (None, Some(Fps::from_raw(9e5))), ..start };
        assert!(open.render(&Style::PIPE).contains("[? .. 900.0 kpps]"));
    }

    #[test]
    fn never_wider_than_the_terminal() {
        let text = line().render(&Style { width: 40, ..Style::PIPE });
        assert_eq!((text.chars().count(), text.ends_with('~')), (40, true));
    }
}
