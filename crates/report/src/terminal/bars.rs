use measure::result::{RunResult, SizeResult};

use crate::{
    figures::{Rates, Shown},
    style::Paint,
    text, words, Style,
};

/// Throughput against frame size as horizontal bars, with a mark at the line rate when the link is known.
pub(crate) fn render(result: &RunResult, style: &Style) -> String {
    // As wide as five digits, or a mix of sizes.
    let sizes = result.sizes.iter().map(|s| s.frame_size_bytes.to_string().len()).fold(5, usize::max);
    let best =
        result.sizes.iter().filter_map(|s| Shown::of(s, result.link_bps).rate()).map(|r| r.get()).fold(0.0, f64::max);
    if best <= 0.0 {
        return String::new();
    }
    let line_rate = |s: &SizeResult| result.link_bps.map(|l| l.line_rate(s.frame_size_bytes).get());
    let highest_line = result.sizes.iter().filter_map(line_rate).fold(0.0, f64::max);
    // A link far above the DUT would press every bar flat: its mark is then shown as off the scale.
    let full = if highest_line <= best * 3.0 { best.max(highest_line) } else { best * 1.05 };

    // Where the words would leave no room for the bars, the figures alone go with them.
    let labels = |long| result.sizes.iter().map(|s| label(s, result, long)).collect::<Vec<_>>();
    let width = |labels: &[String]| labels.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    let long = labels(true);
    let labels = if style.width < width(&long) + 30 { labels(false) } else { long };
    let label_width = width(&labels);
    let cells = style.width.saturating_sub(label_width + 10);
    let (mark, beyond) = if style.unicode { ('┃', '→') } else { ('|', '>') };

    let each = if result.directions > 1 { " each way" } else { "" };
    let mut out = style.heading(&format!("Throughput against frame size, pps{each}"));
    for (size, label) in result.sizes.iter().zip(&labels) {
        let rate = Shown::of(size, result.link_bps).rate().map_or(0.0, |r| r.get());
        let mut bar = bar(rate / full, cells, style.unicode);
        let mut marked = None;
        if let Some(line) = line_rate(size) {
            let at = (line / full * cells as f64).round() as usize;
            let (at, c) = if line > full * 1.001 { (cells, beyond) } else { (at, mark) };
            marked = Some(" ".repeat(at.saturating_sub(bar.chars().count())) + &c.to_string());
            bar = text::clip_hard(&bar, at);
        }
        let line = format!(
            "{:>sizes$}  {}  {}{}",
            size.frame_size_bytes.to_string(),
            style.paint(words::outcome_paint(size, result.link_bps), &format!("{label:<label_width$}")),
            style.paint(Paint::Bar, &bar),
            style.paint(Paint::Warn, &marked.unwrap_or_default()),
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
    if let Some(link) = result.link_bps {
        let off = if highest_line > full * 1.001 { format!(" ({beyond} off the scale)") } else { String::new() };
        out.push_str(&style.paint(Paint::Dim, &format!("{:>sizes$}  {mark} line rate of {link}bit/s{off}", "B")));
        out.push('\n');
    }
    out
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

/// Eighths of a cell where the terminal can show them; something, however little, is never nothing.
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
