//! The panel of one logger, in the size that fits.

use std::time::Instant;

use flow::protocol::{Interface, Totals};
use ratatui::{
    layout::Rect,
    style::{Color, Modifier, Style},
    text::{Line, Span},
    Frame,
};

use crate::area::{draw_line, split_top};
use failure::Exit;
use flow::watch::{
    board::{seconds_until, Logger, State},
    text::{fit, five, five_of, span},
};
use runner::text::clip;

/// Pairs of interfaces a panel shows at most.
const MAX_PAIRS: u16 = 4;
/// Columns for both ports of a pair side by side, and for one with its name.
const PAIR: usize = 65;
const PORT: usize = 38;

/// How much of a logger is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Everything: this many pairs of interfaces, two lines each.
    Full(u16),
    /// State, the first pair, the table: labelled where there is room.
    Four,
    /// State and packet rates.
    Two,
    /// State.
    Title,
}

impl Size {
    /// Largest first.
    pub fn choices(pairs: u16) -> impl Iterator<Item = Self> {
        let full = (1..=pairs.clamp(1, MAX_PAIRS)).rev().map(Self::Full);
        full.chain([Self::Four, Self::Two, Self::Title])
    }

    /// Lines.
    pub fn height(self) -> u16 {
        match self {
            Self::Full(pairs) => 4 + 2 * pairs,
            Self::Four => 4,
            Self::Two => 2,
            Self::Title => 1,
        }
    }

    /// Columns it needs.
    pub fn least_width(self) -> u16 {
        match self {
            Self::Full(_) => 66,
            _ => 20,
        }
    }
}

/// Pairs of interfaces of a logger.
pub fn pairs(logger: &Logger) -> u16 {
    let interfaces = logger.look.as_ref().map_or(0, |look| look.totals.interfaces.len());
    (interfaces.div_ceil(2) as u16).max(1)
}

/// Draws it.
pub fn draw(frame: &mut Frame<'_>, area: Rect, size: Size, logger: &Logger, selected: bool, now: Instant) {
    let (title_area, mut rest) = split_top(area, 1);
    draw_line(frame, title_area, title(logger, usize::from(area.width), selected, now));
    let Some(look) = &logger.look else { return };
    // The last answer of a lost logger stays, in grey.
    let style = if logger.state == State::Connected { Style::new() } else { Style::new().add_modifier(Modifier::DIM) };
    let width = usize::from(area.width).saturating_sub(1);
    let lines = match size {
        Size::Full(pairs) => full(&look.totals, usize::from(pairs), width),
        _ if width >= PAIR => shorter(&look.totals, width),
        Size::Four if width >= PORT => narrow(&look.totals, width),
        _ => compact(&look.totals),
    };
    for line in lines.into_iter().take(usize::from(size.height()) - 1) {
        let (first, below) = split_top(rest, 1);
        draw_line(frame, first, Line::styled(clip(&line, width), style));
        rest = below;
    }
}

/// `name  state`, over the panel's whole width.
fn title(logger: &Logger, width: usize, selected: bool, now: Instant) -> Line<'static> {
    let (state, colour) = match &logger.state {
        State::Connecting => ("connecting".into(), Color::Yellow),
        State::Connected => (uptime(logger, width), Color::Green),
        State::Down(why, next) => {
            let left = seconds_until(*next, now);
            match (width >= 50, why.exit == Exit::Usage) {
                (true, true) => (format!("refused: {}; again in {left} s", why.text), Color::Red),
                (true, false) => (format!("reconnecting in {left} s: {}", why.text), Color::Red),
                (false, true) => ("refused".into(), Color::Red),
                (false, false) => (format!("retry {left} s"), Color::Red),
            }
        }
    };
    let mark = if selected { "> " } else { "  " };
    let room = width.saturating_sub(3);
    let address = if logger.name() == logger.address { String::new() } else { format!("  {}", logger.address) };
    let name = if width >= 50 { format!("{}{address}", logger.name()) } else { logger.name().to_owned() };
    let name = fit(&name, room.saturating_sub(state.chars().count().min(room / 2) + 1));
    let state = fit(&state, room.saturating_sub(name.chars().count() + 1));
    let gap = room.saturating_sub(name.chars().count() + state.chars().count());
    let bold =
        Style::new().add_modifier(if selected { Modifier::BOLD | Modifier::REVERSED } else { Modifier::UNDERLINED });
    Line::from(vec![
        Span::styled(format!("{mark}{name}{}", " ".repeat(gap)), bold),
        Span::styled(state, bold.fg(colour)),
    ])
}

fn uptime(logger: &Logger, width: usize) -> String {
    let up = logger.look.as_ref().map_or(0.0, |look| look.totals.uptime_s);
    let up = span((up * 1e9) as u64);
    if width >= 50 {
        format!("connected, up {up}")
    } else {
        format!("up {up}")
    }
}

/// Three lines of at most 19 characters: both ports of the first pair, then the table and what export lost.
fn compact(totals: &Totals) -> Vec<String> {
    let rate = |n: usize, f: fn(&Interface) -> f64| totals.interfaces.get(n).map_or_else(String::new, |i| five(f(i)));
    let pair = |f: fn(&Interface) -> f64, unit| format!("{:>7} {:>7} {unit}", rate(0, f), rate(1, f));
    let table = &totals.table;
    let mut last = format!("{} +{}/s", share(table.flows, table.capacity), five(table.new_rate));
    // Losses are more important than anything else.
    if totals.export.dropped > 0 {
        last = format!("{} lost {}", share(table.flows, table.capacity), five(totals.export.dropped as f64));
    }
    vec![pair(|i| i.packet_rate, "pps"), pair(|i| i.bit_rate, "bps"), last]
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1}%", 100.0 * part as f64 / whole.max(1) as f64)
}

/// Both ports of each pair side by side, then the table, then the counts of ended flows.
fn full(totals: &Totals, pairs: usize, width: usize) -> Vec<String> {
    let mut lines = ports(totals, pairs, width);
    lines.push(table(totals));
    let (t, e) = (&totals.table, &totals.export);
    let ended = t.ended.iter().fold(0u64, |sum, n| sum.saturating_add(*n));
    lines.push(format!(
        " ended {}  exported {}, sent {}, dropped {}",
        five(ended as f64),
        five(e.records as f64),
        five(e.sent as f64),
        five(e.dropped as f64)
    ));
    lines
}

/// Both ports of the first pair side by side, then the table.
fn shorter(totals: &Totals, width: usize) -> Vec<String> {
    let mut lines = ports(totals, 1, width);
    lines.push(lost(totals) + &table(totals));
    lines
}

/// The ports of the first pair one below the other, then the table.
fn narrow(totals: &Totals, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = totals.interfaces.iter().take(2).map(|i| rates(i, width)).collect();
    lines.resize(2, String::new());
    lines.push(lost(totals) + &table(totals));
    lines
}

/// Records that export dropped, which are shown first.
fn lost(totals: &Totals) -> String {
    match totals.export.dropped {
        0 => String::new(),
        n => format!(" records dropped {} ", five(n as f64)),
    }
}

fn ports(totals: &Totals, pairs: usize, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let half = width.saturating_sub(2) / 2;
    for pair in totals.interfaces.chunks(2).take(pairs) {
        let side = |line: fn(&Interface, usize) -> String| -> String {
            let cells = pair.iter().map(|i| format!("{:half$}", fit(&line(i, half), half)));
            cells.collect::<Vec<_>>().join("  ")
        };
        lines.push(side(rates));
        lines.push(side(counts));
    }
    lines.resize(2 * pairs, String::new());
    lines
}

fn table(totals: &Totals) -> String {
    let t = &totals.table;
    let full = match (t.refused_packets, t.evicted) {
        (0, 0) => String::new(),
        (refused, 0) => format!("  refused {} packets", five(refused as f64)),
        (0, evicted) => format!("  evicted {}", five(evicted as f64)),
        (refused, evicted) => format!("  refused {} packets, evicted {}", five(refused as f64), five(evicted as f64)),
    };
    format!(
        " flows {} of {} ({})  new {}{full}",
        five(t.flows as f64),
        five(t.capacity as f64),
        share(t.flows, t.capacity),
        five_of(t.new_rate, "flows/s"),
    )
}

/// ` 0 eth0        14.881 Mpps  7.6190 Gbit/s`
fn rates(i: &Interface, width: usize) -> String {
    let figures = format!("{:>11} {:>13}", five_of(i.packet_rate, "pps"), five_of(i.bit_rate, "bit/s"));
    let down = if i.up { "" } else { " DOWN" };
    let name = fit(&format!("{} {}", i.port, i.name), width.saturating_sub(figures.len() + down.len() + 1));
    let name = format!(" {name}{down}");
    format!("{name:<0$}{figures}", width.saturating_sub(figures.len()))
}

/// Exact counts if they fit. Errors replace less urgent counts. Figures are never cut.
fn counts(i: &Interface, width: usize) -> String {
    let wrong: String = [
        ("missed", i.missed),
        ("tx dropped", i.tx_dropped),
        ("cut", i.cut),
        ("malformed", i.malformed),
        ("not IP", i.not_ip),
    ]
    .iter()
    .filter(|(_, n)| *n > 0)
    .map(|(what, n)| format!("  {what} {}", five(*n as f64)))
    .collect();
    let exact = format!("   {} packets  {} bytes", i.packets, i.bytes);
    let short = format!("   {} packets  {}B", five(i.packets as f64), five(i.bytes as f64));
    let packets = format!("   {} packets", five(i.packets as f64));
    let choices = [exact, short, packets].map(|counts| counts + &wrong);
    let whole = choices.into_iter().find(|text| text.len() <= width);
    whole.unwrap_or_else(|| clip(&format!(" {wrong}"), width))
}
