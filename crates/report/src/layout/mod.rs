//! Results in the layouts of the source documents, and one result against another.
//!
//! `docs/tables.md` shows each. The figures are those of every other report; only names, units and rounding are the
//! document's.

mod columns;
mod compare;

use std::fmt;

use measure::result::{RunResult, WarningKind};

pub use compare::{compare, plan_against};

use crate::{
    style::Paint,
    table::{Cell, Table},
    terminal::paragraph,
    text, Style,
};

/// A source document's way to lay out a table of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// The two-VM document, tables 3 and 4: packets/s, layer-1 Mbps and percentage over both ports.
    Nfvi,
    /// The ONP report, section 7: the same in whole figures, and latency in nanoseconds.
    Onp,
    /// The small-router document: bit/s of layer 2 without the FCS and of layer 1, a row a load test.
    Router,
    /// The flow logger's rates: Mpps over both ports, share of full bandwidth, cycles a packet.
    Flowlog,
}

impl Layout {
    /// Every layout.
    pub const ALL: [Self; 4] = [Self::Nfvi, Self::Onp, Self::Router, Self::Flowlog];

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nfvi => "nfvi",
            Self::Onp => "onp",
            Self::Router => "router",
            Self::Flowlog => "flowlog",
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One table with its title and what must be said of it.
#[derive(Debug, Clone)]
pub struct Sheet {
    title: String,
    table: Table,
    notes: Vec<String>,
}

impl Sheet {
    /// A heading and what is to be said, where there is no table.
    pub fn words(title: &str, notes: Vec<String>) -> Self {
        Self { title: title.to_owned(), table: Table::default(), notes }
    }

    /// A table with what must be said of it.
    pub(crate) fn of(title: String, table: Table, notes: Vec<String>) -> Self {
        Self { title, table, notes }
    }

    /// For a terminal or a pipe, with an empty line in front.
    pub fn text(&self, style: &Style) -> String {
        let mut out = style.heading(&text::styled(&self.title, style));
        out.push_str(&self.table.text(style));
        for note in &self.notes {
            out.push_str(&paragraph("", &text::styled(note, style), Paint::Warn, style));
        }
        out
    }

    /// A section of a Markdown document.
    pub fn markdown(&self) -> String {
        let mut out = format!("\n## {}\n", text::markdown(&self.title));
        if !self.table.is_empty() {
            out.push_str(&format!("\n{}", self.table.markdown()));
        }
        for (i, note) in self.notes.iter().enumerate() {
            out.push_str(&format!("{}- {}\n", if i == 0 { "\n" } else { "" }, text::markdown(note)));
        }
        out
    }

    /// Comma-separated values (RFC 4180): a line a row, bare figures; what is not known is empty.
    pub fn csv(&self) -> String {
        self.table.csv()
    }
}

/// Results in a layout: a row a frame size of each, in order.
pub fn sheet(results: &[&RunResult], layout: Layout) -> Sheet {
    let several = results.len() > 1 && layout != Layout::Router;
    let columns = columns::of(layout, results);
    let mut table = Table::default();
    if several {
        table.left(0, "Run", "");
    }
    for column in &columns {
        column.add_to(&mut table);
    }
    table.left(1, "result", "");
    for result in results {
        for size in &result.sizes {
            let row = columns::Row::of(result, size);
            let mut cells: Vec<Cell> = Vec::new();
            if several {
                cells.push(text::clip(&columns::run_name(result), 32).into());
            }
            cells.extend(columns.iter().map(|c| row.cell(c)));
            cells.push(row.outcome());
            table.row(cells);
        }
    }
    let mut notes: Vec<String> = columns::note(layout).into_iter().map(str::to_owned).collect();
    if results.iter().any(|r| simulated(r)) {
        notes.push("simulated: no frame was sent and no device measured".to_owned());
    }
    Sheet { title: columns::title(layout, results), table, notes }
}

/// Whether the device was simulated.
pub(crate) fn simulated(result: &RunResult) -> bool {
    result.warnings.iter().any(|w| w.kind == WarningKind::Simulated)
}
