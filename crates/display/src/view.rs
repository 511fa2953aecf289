//! The screen: a panel for each logger, the flows below.

use std::time::Instant;

use ratatui::{
    layout::Rect,
    style::{Color, Modifier, Style},
    text::{Line, Span},
    Frame,
};
use runner::text::clip;

use crate::{
    area::{draw_line, split_bottom, split_top},
    columns,
    panel::{self, Size},
};
use flow::watch::{
    board::{Board, Sort, State},
    text::{fit, five, five_of},
};

/// Least lines for flows, their head included, before panels become smaller.
const FLOWS: u16 = 6;

/// Draws the board. A small terminal shows as much as fits.
pub fn draw(frame: &mut Frame<'_>, board: &mut Board, now: Instant) {
    let area = frame.area();
    let (head, rest) = split_top(area, 1);
    let (rest, foot) = split_bottom(rest, u16::from(rest.height > 1));
    draw_line(frame, head, header(board));
    draw_line(frame, foot, footer(board));
    board.most = board.most.max(board.flows().len());
    let grid = Grid::fit(board, rest);
    let (panels, flows) = split_top(rest, grid.height());
    draw_panels(frame, board, panels, &grid, now);
    draw_flows(frame, board, flows);
}

fn header(board: &Board) -> Line<'static> {
    let up = board.loggers.iter().filter(|l| l.state == State::Connected);
    let (mut count, mut packets, mut bits) = (0, 0.0, 0.0);
    for interface in up.inspect(|_| count += 1).filter_map(|l| l.look.as_ref()).flat_map(|l| &l.totals.interfaces) {
        packets += interface.packet_rate;
        bits += interface.bit_rate;
    }
    let all = board.loggers.len();
    let loggers = if all == 1 { String::new() } else { format!("{count} of {all} loggers  ") };
    let mut spans = vec![
        Span::styled("linerate flows  ", Style::new().add_modifier(Modifier::BOLD)),
        Span::raw(format!("{loggers}{}  {}", five_of(packets, "pps"), five_of(bits, "bit/s"))),
    ];
    if board.paused {
        spans.push(Span::styled("  PAUSED", Style::new().add_modifier(Modifier::BOLD).fg(Color::Yellow)));
    }
    Line::from(spans)
}

fn footer(board: &Board) -> Line<'static> {
    match &board.entry {
        Some((text, wrong)) if wrong.is_empty() => Line::from(format!(
            "filter: {text}_   (prefix=10.0.0.0/8,port=53,protocol=udp  Enter applies, Esc cancels)"
        )),
        Some((text, wrong)) => {
            Line::from(vec![Span::raw(format!("filter: {text}_  ")), Span::styled(wrong.clone(), Color::Red)])
        }
        None => {
            let loggers = if board.loggers.len() > 1 { "Tab logger  a all  " } else { "" };
            let text = format!("q quit  p pause  s < > sort  / filter  {loggers}arrows Page Home End");
            Line::styled(text, Modifier::DIM)
        }
    }
}

/// How panels are laid out.
struct Grid {
    size: Size,
    columns: usize,
    /// Rows of panels shown, and the first of them.
    rows: usize,
    first: usize,
}

impl Grid {
    /// The largest panels that leave room for flows; if even the smallest do not fit, as many as go in, the selected one
    /// among them.
    fn fit(board: &Board, area: Rect) -> Self {
        let count = board.loggers.len().max(1);
        let flows = usize::from(FLOWS.max(area.height / 5 * 2)).min(board.most + 2);
        let budget = usize::from(area.height).saturating_sub(flows);
        let pairs = board.loggers.iter().map(panel::pairs).max().unwrap_or(1);
        for size in Size::choices(pairs) {
            let most = (usize::from(area.width) / usize::from(size.least_width())).clamp(1, count);
            if usize::from(area.width) < usize::from(size.least_width()) && size != Size::Title {
                continue;
            }
            // As few columns as possible: wide panels show more.
            for columns in 1..=most {
                let rows = count.div_ceil(columns);
                if rows * usize::from(size.height()) <= budget {
                    return Self { size, columns, rows, first: 0 };
                }
            }
        }
        let columns = (usize::from(area.width) / usize::from(Size::Title.least_width())).clamp(1, count);
        let rows = budget.min(count.div_ceil(columns));
        let first = (board.selected / columns + 1).saturating_sub(rows);
        Self { size: Size::Title, columns, rows, first }
    }

    fn height(&self) -> u16 {
        (self.rows as u16).saturating_mul(self.size.height())
    }
}

fn draw_panels(frame: &mut Frame<'_>, board: &Board, area: Rect, grid: &Grid, now: Instant) {
    let shown = board.loggers.iter().enumerate().skip(grid.first * grid.columns).take(grid.rows * grid.columns);
    for (place, (n, logger)) in shown.enumerate() {
        let (column, row) = ((place % grid.columns) as u32, (place / grid.columns) as u16);
        let edge = |c: u32| (u32::from(area.width) * c / grid.columns as u32) as u16;
        let y = area.y + (row * grid.size.height()).min(area.height);
        let height = grid.size.height().min(area.bottom().saturating_sub(y));
        let x = area.x + edge(column);
        let panel = Rect { x, y, width: area.x + edge(column + 1) - x, height };
        panel::draw(frame, panel, grid.size, logger, board.all || n == board.selected, now);
    }
}

fn draw_flows(frame: &mut Frame<'_>, board: &mut Board, area: Rect) {
    let (title, rest) = split_top(area, 1);
    let (head, rows) = split_top(rest, 1);
    board.page = usize::from(rows.height).max(1);
    let count = board.flows().len();
    board.offset = board.offset.min(count.saturating_sub(board.page));
    let flows = board.flows();
    draw_line(frame, title, flows_title(board, count, usize::from(area.width)));
    let layout = columns::Layout::new(board, &flows, area.width);
    draw_line(frame, head, layout.head(board.sort));
    for (n, flow) in flows.iter().skip(board.offset).take(usize::from(rows.height)).enumerate() {
        let line = Rect { y: rows.y + n as u16, height: 1, ..rows };
        draw_line(frame, line, layout.row(board, flow));
    }
}

fn flows_title(board: &Board, count: usize, width: usize) -> Line<'static> {
    let logger = board.loggers.get(board.selected);
    let of = match logger {
        _ if board.all => "all loggers".to_owned(),
        Some(logger) => fit(logger.name(), 24),
        None => String::new(),
    };
    let of_all = board.matching().filter(|m| *m > count as u64);
    let of_all = of_all.map(|m| format!(" largest of {}", five(m as f64))).unwrap_or_default();
    let from = (board.offset + 1).min(count);
    let order = if board.sort == Sort::Age && !of_all.is_empty() { "bytes, then by age" } else { board.sort.name() };
    let filter = flow::watch::filter::show(&board.filter);
    let filter = if filter.is_empty() { String::new() } else { format!(", only {filter}") };
    let mut text = format!(
        "Flows of {of}: {from}-{} of {count}{of_all} by {order}{filter}",
        (board.offset + board.page).min(count)
    );
    // If there are no flows, the reason.
    if let (0, false, Some(logger)) = (count, board.all, logger) {
        text = match (&logger.state, logger.look.as_ref().map(|look| &look.page)) {
            (State::Connected, Some(Some(Err(why)))) => format!("Flows of {of}: {why}"),
            (State::Connected, Some(None)) => format!("Flows of {of}: requested"),
            (State::Connected, _) => text,
            _ => format!("Flows of {of}: unknown, the logger does not answer"),
        };
    }
    Line::styled(clip(&text, width), Modifier::BOLD)
}
