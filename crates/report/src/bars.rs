//! Throughput against frame size as horizontal bars, with a mark at the line rate when the link is known.

use measure::result::{RunResult, SizeResult};

use crate::{
    figures::{self, ends, Rates, Shown},
    style::{Paint, Style},
    text, words,
};

/// The bars of a result, to be drawn as wide as there is room.
#[derive(Debug, Clone)]
pub(crate) struct Bars {
    rows: Vec<Row>,
    /// The link in words.
    link: Option<String>,
    both: bool,
}

#[derive(Debug, Clone)]
struct Row {
    size: String,
    /// Figures alone, and with words.
    label: String,
    long: String,
    paint: Paint,
    rate: f64,
    /// The upper end of its interval; 0 where it has none.
    upper: f64,
    line: Option<f64>,
}

/// One of the labels of a row.
type Label = fn(&Row) -> &str;

impl Bars {
    pub(crate) fn of(result: &RunResult) -> Self {
        let row = |size: &SizeResult| Row {
            size: size.frame_size_bytes.to_string(),
            label: label(size, result, false),
            long: label(size, result, true),
            paint: words::outcome_paint(size, result.link_bps),
            rate: Shown::of(size, result.link_bps).rate().map_or(0.0, |r| r.get()),
            upper: ends(size, result.link_bps).map_or(0.0, |(_, upper)| upper.get()),
            line: result.link_bps.map(|l| l.line_rate(size.frame_size_bytes).get()),
        };
        let link = result.link_bps.map(|link| format!("{link}bit/s"));
        Self { rows: result.sizes.iter().map(row).collect(), link, both: result.directions > 1 }
    }

    /// What stands over them.
    pub(crate) fn title(&self) -> String {
        format!("Throughput against frame size, pps{}", if self.both { " each way" } else { "" })
    }

    /// Whether no row has a figure.
    pub(crate) fn is_empty(&self) -> bool {
        self.best() <= 0.0
    }

    fn best(&self) -> f64 {
        self.rows.iter().map(|r| r.rate).fold(0.0, f64::max)
    }

    /// As text for a style, each line ending in a newline.
    pub(crate) fn text(&self, style: &Style) -> String {
        // As wide as five digits, or a mix of sizes.
        let sizes = self.rows.iter().map(|r| r.size.len()).fold(5, usize::max);
        let best = figures::highest(self.rows.iter().map(|r| r.rate), self.rows.iter().map(|r| r.upper));
        let highest_line = self.rows.iter().filter_map(|r| r.line).fold(0.0, f64::max);
        // A link far above the DUT would press every bar flat: its mark is then shown as off the scale.
        let full = if highest_line <= best * 3.0 { best.max(highest_line) } else { best * 1.05 };

        // Where the words would leave no room for the bars, the figures stand alone.
        let width = |of: Label| self.rows.iter().map(|r| of(r).chars().count()).max().unwrap_or(0);
        let long: Label = |r| &r.long;
        let short: Label = |r| &r.label;
        let words = if style.width < width(long) + 30 { short } else { long };
        let label_width = width(words);
        let cells = style.width.saturating_sub(label_width + sizes + 5);
        let (mark, beyond, open) = if style.unicode { ('┃', '→', '░') } else { ('|', '>', '.') };

        let mut out = String::new();
        let mut any_open = false;
        for row in &self.rows {
            let mut bar = bar(row.rate / full, cells, style.unicode);
            let end = ((row.upper / full).min(1.0) * cells as f64).round() as usize;
            let rest = end.saturating_sub(bar.chars().count());
            bar.extend(std::iter::repeat_n(open, rest));
            any_open |= rest > 0;
            let mut marked = None;
            if let Some(line) = row.line {
                let at = (line / full * cells as f64).round() as usize;
                let (at, c) = if line > full * 1.001 { (cells, beyond) } else { (at, mark) };
                marked = Some(" ".repeat(at.saturating_sub(bar.chars().count())) + &c.to_string());
                bar = text::clip_hard(&bar, at);
            }
            let line = format!(
                "{:>sizes$}  {}  {}{}",
                row.size,
                style.paint(row.paint, &format!("{:<label_width$}", words(row))),
                style.paint(Paint::Bar, &bar),
                style.paint(Paint::Warn, &marked.unwrap_or_default()),
            );
            out.push_str(line.trim_end());
            out.push('\n');
        }
        if any_open {
            out.push_str(
                &style.paint(Paint::Dim, &format!("{:>sizes$}  {open} up to the upper end of its interval", "")),
            );
            out.push('\n');
        }
        if let Some(link) = &self.link {
            let off = if highest_line > full * 1.001 { format!(" ({beyond} off the scale)") } else { String::new() };
            out.push_str(&style.paint(Paint::Dim, &format!("{:>sizes$}  {mark} line rate of {link}{off}", "B")));
            out.push('\n');
        }
        out
    }
}

fn label(size: &SizeResult, result: &RunResult, long: bool) -> String {
    let shown = Shown::of(size, result.link_bps);
    let Some(rate) = shown.rate() else { return words::outcome(size, result.link_bps).to_owned() };
    let least = if matches!(shown, Shown::AtLeast(_)) { ">= " } else { "" };
    let rates = Rates::new(rate, size.frame_size_bytes, result.directions, result.link_bps);
    let percent = rates.line_percent.map_or_else(String::new, |p| format!(" {p:6.2} %"));
    let rate = format!("{:>11}", format!("{least}{rate}"));
    if !long {
        return rate;
    }
    let word = words::outcome(size, result.link_bps);
    let word = if word.is_empty() { String::new() } else { format!(" {word}") };
    format!("{rate}{percent}{word}")
}

/// Eighths of a cell where the terminal can show them. A rate above 0 is never drawn as an empty bar.
fn bar(share: f64, cells: usize, unicode: bool) -> String {
    let share = share.clamp(0.0, 1.0);
    if !unicode {
        let n = (share * cells as f64).round() as usize;
        return "#".repeat(if share > 0.0 { n.max(1) } else { 0 });
    }
    let eighths = (share * cells as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let mut bar = "█".repeat(eighths / 8);
    bar.extend([' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'].get(eighths % 8).filter(|c| **c != ' '));
    bar
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars_are_to_scale_and_never_vanish() {
        assert_eq!(bar(0.5, 8, true), "████");
        assert_eq!(bar(0.55, 8, true), "████▍");
        assert_eq!(bar(1e-9, 8, true), "▏");
        assert_eq!(
            (bar(0.0, 8, true), bar(1e-9, 8, false), bar(7.0, 8, false)),
            ("".into(), "#".into(), "########".into())
        );
    }
}
