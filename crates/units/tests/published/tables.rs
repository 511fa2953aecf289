//! Whole tables: a row a frame size or test, columns by name.

use serde::Deserialize;
use units::{derived, rate, Fps, FrameSize, LinkSpeed};

use super::printed::{Finding, Printed};

/// A port may send this much faster than its nominal rate: IEEE 802.3 allows clocks 100 ppm.
const CLOCK: f64 = 1.000_1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    document: String,
    table: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: String,
    /// Where it stands: for who looks it up.
    #[allow(dead_code)]
    place: String,
    /// Speed of each port.
    link: Option<LinkText>,
    /// Ports whose links the percentages are of.
    #[serde(default = "one")]
    ports: u32,
    /// Of every row, where the table has no column of it.
    frame: Option<u32>,
    columns: Vec<String>,
    rows: String,
    #[serde(default)]
    inconsistent: Vec<Inconsistent>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Inconsistent {
    row: String,
    column: String,
    computed: String,
    cause: String,
}

type LinkText = String;

fn one() -> u32 {
    1
}

pub fn check(toml: &str) -> Vec<Finding> {
    let file: File = toml::from_str(toml).unwrap();
    file.table.iter().flat_map(|table| of_table(&file.document, table)).collect()
}

fn of_table(document: &str, table: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    for line in table.rows.lines().filter(|l| !l.trim().is_empty()) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells.len(), table.columns.len(), "{document}, {}: {line}", table.name);
        let row = Row { table, cells };
        let expected: Vec<_> = table.columns.iter().filter_map(|c| Some((c, row.expected(c)?))).collect();
        for (column, (low, high)) in expected {
            let printed = row.printed(column).unwrap();
            let listed = table.inconsistent.iter().find(|i| i.row == row.cells[0] && i.column == *column);
            findings.push(Finding {
                table: format!("{document}, {}", table.name),
                row: format!("{}, {column}", row.cells[0]),
                printed: row.text(column).unwrap().to_owned(),
                ours: printed.like(if high == f64::INFINITY { low } else { (low + high) / 2.0 }),
                reproduced: printed.covers((low, high)),
                listed: listed.map(|i| (i.computed.clone(), i.cause.clone())),
            });
        }
    }
    for i in &table.inconsistent {
        let known = table.rows.lines().any(|l| l.split_whitespace().next() == Some(&i.row));
        assert!(known && table.columns.contains(&i.column), "{document}, {}: no {} {}", table.name, i.row, i.column);
    }
    findings
}

/// Rows of the documentation: the bit rate and the percentage of each row of frames of `bytes`, by its pps, when they are
/// taken for frames of `bytes` and when for frames of `other`, and which of these the printed figure follows from.
pub fn readings(toml: &str, bytes: u32, other: u32) -> Vec<String> {
    let file: File = toml::from_str(toml).unwrap();
    let mut rows = Vec::new();
    for table in &file.table {
        for line in table.rows.lines().filter(|l| !l.trim().is_empty()) {
            let row = Row { table, cells: line.split_whitespace().collect() };
            if row.text("frame") != Some(bytes.to_string().as_str()) {
                continue;
            }
            let sizes = [bytes, other].map(|bytes| FrameSize::new(bytes).unwrap());
            let mut cells = vec![format!("{}, {}", table.name, row.cells[0])];
            for column in ["l2_no_fcs", "percent"] {
                cells.push(row.text(column).unwrap().to_owned());
                cells.extend(sizes.map(|size| row.reading(column, size)));
            }
            rows.push(format!("| {} |", cells.join(" | ")));
        }
    }
    rows
}

struct Row<'a> {
    table: &'a Table,
    cells: Vec<&'a str>,
}

impl Row<'_> {
    fn text(&self, column: &str) -> Option<&str> {
        let at = self.table.columns.iter().position(|c| c == column)?;
        self.cells.get(at).copied()
    }

    /// A column's figure in base units.
    fn printed(&self, column: &str) -> Option<Printed> {
        let scale = if column.contains("mbps") { 1e6 } else { 1.0 };
        Some(Printed::read(self.text(column)?).times(scale))
    }

    fn size(&self) -> Option<FrameSize> {
        let bytes = self.text("frame").map(|t| t.parse().unwrap()).or(self.table.frame)?;
        Some(FrameSize::new(bytes).unwrap())
    }

    fn link(&self) -> Option<LinkSpeed> {
        let each: LinkSpeed = self.table.link.as_ref()?.parse().unwrap();
        Some(LinkSpeed::new(each.bps() * u64::from(self.table.ports)).unwrap())
    }

    /// What a column comes to with frames of this size, one digit finer than printed, and whether it can be printed so.
    fn reading(&self, column: &str, size: FrameSize) -> String {
        let printed = self.printed(column).unwrap();
        let (low, high) = self.expected_of(column, Some(size)).unwrap();
        let verdict = if printed.covers((low, high)) { "yes" } else { "no" };
        format!("{} {verdict}", printed.finer().like((low + high) / 2.0))
    }

    /// Between which figures this column must lie, from the others of its row; `None` where nothing follows.
    fn expected(&self, column: &str) -> Option<(f64, f64)> {
        self.expected_of(column, self.size())
    }

    /// The same with frames of this size.
    fn expected_of(&self, column: &str, size: Option<FrameSize>) -> Option<(f64, f64)> {
        let prefix = if column.starts_with("old_") { "old_" } else { "" };
        let pps = self.printed(&format!("{prefix}pps")).map(Printed::range);
        let over = |f: &dyn Fn(Fps) -> f64| pps.map(|(low, high)| (f(Fps::from_raw(low)), f(Fps::from_raw(high))));
        match column.trim_start_matches(prefix) {
            // No more than the links carry.
            "pps" => {
                let line = self.link()?.line_rate(size?).get() * CLOCK;
                pps.map(|(low, high)| (low.min(line), high.min(line)))
            }
            "mbps_l1" => over(&|r| rate::l1_bps(r, size.unwrap())),
            "l2_no_fcs" => over(&|r| rate::l2_bps_without_fcs(r, size.unwrap())),
            "percent" => over(&|r| rate::line_percent(r, size.unwrap(), self.link().unwrap())),
            "improvement" => {
                let (new, old) = (self.printed("pps")?.range(), self.printed("old_pps")?.range());
                Some((derived::gain_percent(new.0, old.1)?, derived::gain_percent(new.1, old.0)?))
            }
            "vectors_per_call" => {
                let per_call = derived::cycles_per_frame(self.printed("vectors")?.value, self.printed("calls")?.value)?;
                Some((per_call, per_call))
            }
            "avg_ns" | "max_ns" => {
                let below = if column == "avg_ns" { "min_ns" } else { "avg_ns" };
                Some((self.printed(below)?.value, f64::INFINITY))
            }
            percentile if percentile.starts_with('p') && percentile != "p0" => {
                let at = self.table.columns.iter().position(|c| c == column)?;
                Some((self.printed(&self.table.columns[at - 1])?.value, f64::INFINITY))
            }
            _ => None,
        }
    }
}
