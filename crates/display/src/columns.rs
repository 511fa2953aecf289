//! The columns of the flow table, as many as fit the terminal.

use ratatui::{
    style::Modifier,
    text::{Line, Span},
};

use flow::watch::{
    board::{Board, Flow, Sort},
    text::{endpoint, fit, five, protocol, span, tcp_flags},
};

/// An IPv4 endpoint with its port.
const LEAST_ENDPOINT: usize = 21;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Logger,
    Source,
    Destination,
    Protocol,
    Flags,
    Ingress,
    Scope,
    Figure(Sort),
}

use Column::{Destination, Figure, Flags, Ingress, Logger, Protocol, Scope, Source};

impl Column {
    fn name(self) -> &'static str {
        match self {
            Logger => "logger",
            Source => "source",
            Destination => "destination",
            Protocol => "proto",
            Flags => "flags",
            Ingress => "in",
            Scope => "scope",
            Figure(sort) => sort.name(),
        }
    }

    fn width(self) -> usize {
        match self {
            Logger => 12,
            Source | Destination => LEAST_ENDPOINT,
            Protocol => 5,
            Flags => 6,
            Ingress => 3,
            Scope => 8,
            Figure(Sort::Age) => 6,
            // `packets` and the mark of the sort column.
            Figure(_) => 8,
        }
    }

    fn is_text(self) -> bool {
        matches!(self, Logger | Source | Destination | Protocol | Flags)
    }
}

/// Columns and their widths.
pub struct Layout(Vec<(Column, usize)>);

impl Layout {
    /// For these flows on a terminal this wide.
    pub fn new(board: &Board, flows: &[Flow<'_>], width: u16) -> Self {
        let width = usize::from(width);
        let mut columns = vec![Logger, Source, Destination, Protocol, Flags, Ingress, Scope];
        columns.extend([Sort::Packets, Sort::Bytes, Sort::PacketRate, Sort::BitRate, Sort::Age].map(Figure));
        if !board.all || board.loggers.len() == 1 {
            columns.retain(|c| *c != Logger);
        }
        if flows.iter().all(|f| f.row.record.key.scope.is_none()) {
            columns.retain(|c| *c != Scope);
        }
        // Removes the least important columns first, never the sort column.
        let figures = [Sort::Packets, Sort::Age, Sort::Bytes, Sort::PacketRate, Sort::BitRate].map(Figure);
        let spare = [Flags, Ingress, Scope].into_iter().chain(figures).chain([Protocol, Logger]);
        let needed = |columns: &[Column]| columns.iter().map(|c| c.width() + 1).sum::<usize>();
        for column in spare.filter(|c| *c != Figure(board.sort)) {
            if needed(&columns) <= width + 1 {
                break;
            }
            columns.retain(|c| *c != column);
        }
        // Remaining room goes to the addresses, as far as needed.
        let left = (width + 1).saturating_sub(needed(&columns));
        let page = flows.iter().skip(board.offset).take(board.page);
        let longest = page.map(|f| source(f).len().max(destination(f).len())).max().unwrap_or(0);
        let address = longest.clamp(LEAST_ENDPOINT, LEAST_ENDPOINT + left / 2);
        let wide = |c: Column| if matches!(c, Source | Destination) { address } else { c.width() };
        Self(columns.into_iter().map(|c| (c, wide(c))).collect())
    }

    /// The head; it marks the column that flows are sorted by.
    pub fn head(&self, sort: Sort) -> Line<'static> {
        let mut line = Line::default();
        for &(column, width) in &self.0 {
            let sorted = column == Figure(sort);
            let name = format!("{}{}", column.name(), if sorted { "▼" } else { "" });
            let style = if sorted { Modifier::BOLD | Modifier::UNDERLINED } else { Modifier::UNDERLINED };
            line.push_span(Span::styled(cell(column, width, &name), style));
            line.push_span(" ");
        }
        line
    }

    /// A flow.
    pub fn row(&self, board: &Board, flow: &Flow<'_>) -> Line<'static> {
        let r = &flow.row.record;
        let mut text = String::new();
        for &(column, width) in &self.0 {
            let value = match column {
                Logger => board.loggers.get(flow.logger).map_or_else(String::new, |l| l.name().to_owned()),
                Source => source(flow),
                Destination => destination(flow),
                Protocol => protocol(r.key.protocol),
                Flags if r.key.protocol == 6 => tcp_flags(r.tcp_flags()),
                Flags => String::new(),
                Ingress => r.ingress.to_string(),
                Scope => r.key.scope.map_or_else(|| "-".into(), |scope| scope.to_string()),
                Figure(Sort::Packets) => five(flow.packets() as f64),
                Figure(Sort::Bytes) => five(flow.bytes() as f64),
                Figure(Sort::PacketRate) => five(flow.row.packet_rate),
                Figure(Sort::BitRate) => five(flow.row.bit_rate),
                Figure(Sort::Age) => span(flow.age),
            };
            text += &cell(column, width, &value);
            text.push(' ');
        }
        Line::raw(text)
    }
}

fn cell(column: Column, width: usize, text: &str) -> String {
    let text = fit(text, width);
    if column.is_text() {
        format!("{text:<width$}")
    } else {
        format!("{text:>width$}")
    }
}

/// The source.
pub fn source(flow: &Flow<'_>) -> String {
    let key = &flow.row.record.key;
    endpoint(key.addresses.src(), key.sport)
}

/// The destination; for ICMP with type and code.
pub fn destination(flow: &Flow<'_>) -> String {
    let key = &flow.row.record.key;
    match key.protocol {
        1 | 58 => format!("{} {}/{}", key.addresses.dst(), key.dport >> 8, key.dport & 0xff),
        _ => endpoint(key.addresses.dst(), key.dport),
    }
}
