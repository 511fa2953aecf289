//! The words of the progress display. The binary decides when and where to show them.

use units::{si, Fps, Frames};

use crate::{num, style::Style, text};

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
    /// One line within the width of the style, without colours (the terminal redraws it all the time). Where there is too
    /// little room, the bounds go first, then what else is in the middle; the time left is never cut.
    pub fn render(&self, style: &Style) -> String {
        let place = self.frame_size.map(|(size, at, of)| format!("{} ({at}/{of})", size.with_unit("B")));
        let phase = text::styled(&self.phase, style);
        let load = self.load.map(|l| l.to_string());
        let bounds = (self.bounds != (None, None)).then(|| bounds(self.bounds.0, self.bounds.1));
        let invalid = if self.invalid > 0 { format!(", {} invalid", self.invalid) } else { String::new() };
        let trials = format!("{} trial{}{invalid}", self.trials, if self.trials == 1 { "" } else { "s" });
        let left = self.left_s.map(|s| num::duration(s.max(0.0).round()));
        let about = left.as_ref().map(|left| format!("about {left} left"));
        let left = left.map(|left| format!("{left} left"));
        let line = |parts: &[Option<&String>]| {
            let parts: Vec<&str> = parts.iter().flatten().map(|p| p.as_str()).filter(|p| !p.is_empty()).collect();
            parts.join("  ")
        };
        let [place, phase, load, bounds, trials] =
            [place.as_ref(), Some(&phase), load.as_ref(), bounds.as_ref(), Some(&trials)];
        let tries = [
            line(&[place, phase, load, bounds, trials, about.as_ref()]),
            line(&[place, phase, load, bounds, trials, left.as_ref()]),
            line(&[place, phase, load, trials, left.as_ref()]),
            line(&[place, phase, load, left.as_ref()]),
        ];
        if let Some(fits) = tries.into_iter().find(|line| line.chars().count() <= style.width) {
            return fits;
        }
        let tail = left.map_or_else(String::new, |left| format!("  {left}"));
        let head = text::clip(&line(&[place, phase, load]), style.width.saturating_sub(tail.chars().count()));
        text::clip_hard(&(head + &tail), style.width)
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
    fn the_time_left_is_never_cut() {
        let long = Line { phase: "latency-profile, load 3 of 12".into(), left_s: Some(7_400.0), ..line() };
        for width in 20..120 {
            let text = long.render(&Style { width, ..Style::PIPE });
            assert!(text.chars().count() <= width && text.ends_with("left"), "{width}: {text}");
        }
        let at = |line: &Line, width| line.render(&Style { width, ..Style::PIPE });
        insta::assert_snapshot!([at(&line(), 68), at(&line(), 40), at(&long, 40)].join("\n"), @r"
        64 B (1/7)  12.30 Mpps  12 trials, 2 invalid  83 s left
        64 B (1/7)  12.30 Mpps  83 s left
        64 B (1/7)  latency-pr~  2 h 03 min left
        ");
    }
}
