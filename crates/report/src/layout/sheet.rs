//! Results in a layout.

use measure::result::RunResult;

use super::{columns, kind::Layout};
use crate::{
    document::Section,
    figures::simulated,
    sheet,
    table::{Cell, Table},
    text,
};

/// Results in a layout: a row a frame size of each, in order.
pub fn sheet(results: &[&RunResult], layout: Layout) -> Section {
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
    sheet::of(columns::title(layout, results), table, notes)
}
