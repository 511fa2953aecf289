//! What `show`, the live view and the final report say.

mod counters;
mod drops;
mod ports;
mod reports;
mod runtime;
mod tables;

use serde_json::Value;

pub(crate) use counters::Counters;
pub(crate) use reports::{live, summary, total};
pub(crate) use tables::{show_table, TableView};

/// Whether `show what` is about counters; else about a table.
pub(crate) fn is_of_counters(what: &str) -> bool {
    matches!(what, "runtime" | "ports" | "drops")
}

/// Answers `show runtime`, `show ports` and `show drops`, as data or as text.
pub(crate) fn show_counters(what: &str, json: bool, counters: &Counters<'_>) -> Result<Value, String> {
    Ok(match (what, json) {
        ("runtime", true) => serde_json::to_value(counters.runtime()).map_err(|e| e.to_string())?,
        ("runtime", false) => runtime::text(counters).into(),
        ("ports", true) => ports::json(counters),
        ("ports", false) => ports::text(counters).into(),
        (_, true) => drops::DropTotals::of(&counters.now).json(),
        (_, false) => drops::DropTotals::of(&counters.now).text().into(),
    })
}
