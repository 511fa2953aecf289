//! The only table: it becomes text, Markdown or CSV. On a narrow terminal it falls apart into panels with the same key
//! columns rather than wrapping a line.

use super::cell::Cell;
use crate::{
    style::{Paint, Style},
    text,
};

/// One column: a name over a unit.
#[derive(Debug, Clone)]
struct Column {
    name: String,
    unit: String,
    /// Columns of one group stay in one panel when they can.
    group: u8,
    kind: Kind,
}

/// What a column holds: where its values stand, and how CSV writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Words, to the left.
    Words,
    /// Figures, to the right; CSV writes them bare.
    Figures,
    /// Values that CSV writes as they are.
    Data,
}

/// Columns and rows. A column without a value in any row is left out.
#[derive(Debug, Clone, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A column of figures; group 0 holds the keys, repeated in each panel.
    pub fn right(&mut self, group: u8, name: &str, unit: &str) {
        self.columns.push(Column { name: name.into(), unit: unit.into(), group, kind: Kind::Figures });
    }

    /// A column of words.
    pub fn left(&mut self, group: u8, name: &str, unit: &str) {
        self.columns.push(Column { name: name.into(), unit: unit.into(), group, kind: Kind::Words });
    }

    /// A column of exact values for CSV, under the schema's own name. Text from outside goes through `text::field` first.
    pub fn data(&mut self, name: &str) {
        self.columns.push(Column { name: name.into(), unit: String::new(), group: 0, kind: Kind::Data });
    }

    /// Columns of exact values, from a list with commas between the names.
    pub fn data_columns(&mut self, names: &str) {
        names.split(',').for_each(|name| self.data(name));
    }

    /// A row of exact values.
    pub fn data_row(&mut self, values: Vec<String>) {
        self.row(values.into_iter().map(Cell::from).collect());
    }

    /// Adds a row, a cell for each column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Rows, the header not counted.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    fn cell(&self, row: usize, column: usize) -> Option<&Cell> {
        self.rows.get(row).and_then(|r| r.get(column))
    }

    fn used(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns
            .iter()
            .enumerate()
            .filter(|(c, _)| (0..self.rows.len()).any(|r| self.cell(r, *c).is_some_and(|cell| !cell.text.is_empty())))
    }

    fn width(&self, column: usize) -> usize {
        let head = self.columns.get(column).map_or(0, |c| chars(&c.name).max(chars(&c.unit)));
        (0..self.rows.len()).filter_map(|r| self.cell(r, column)).map(|c| chars(&c.text)).fold(head, usize::max)
    }

    /// Column numbers of each panel, the keys first in each.
    fn panels(&self, width: usize) -> Vec<Vec<usize>> {
        let keys: Vec<usize> = self.used().filter(|(_, c)| c.group == 0).map(|(i, _)| i).collect();
        let rest: Vec<(usize, u8)> = self.used().filter(|(_, c)| c.group > 0).map(|(i, c)| (i, c.group)).collect();
        let cost = |i: usize| self.width(i) + 2;
        let base: usize = keys.iter().map(|&i| cost(i)).sum();
        let mut panels = vec![keys.clone()];
        let mut taken = base;
        let mut at = 0;
        while let Some(&(_, group)) = rest.get(at) {
            let members: Vec<usize> = rest.iter().skip(at).take_while(|(_, g)| *g == group).map(|(i, _)| *i).collect();
            let whole: usize = members.iter().map(|&i| cost(i)).sum();
            if taken + whole > width + 2 && base + whole <= width + 2 {
                panels.push(keys.clone());
                taken = base;
            }
            for &column in &members {
                if taken + cost(column) > width + 2 && taken > base {
                    panels.push(keys.clone());
                    taken = base;
                }
                taken += cost(column);
                if let Some(panel) = panels.last_mut() {
                    panel.push(column);
                }
            }
            at += members.len();
        }
        panels
    }

    /// As text for a style, each line ending in a newline.
    pub fn text(&self, style: &Style) -> String {
        if self.is_empty() {
            return String::new();
        }
        let panels = self.panels(style.width);
        panels.iter().map(|panel| self.panel(panel, style)).collect::<Vec<_>>().join("\n")
    }

    fn panel(&self, columns: &[usize], style: &Style) -> String {
        let mut out = String::new();
        let mut line = |cells: Vec<(String, Paint)>| {
            let mut text = String::new();
            for (i, (cell, paint)) in cells.iter().enumerate() {
                let Some(&column) = columns.get(i) else { continue };
                let pad = " ".repeat(self.width(column).saturating_sub(chars(cell)));
                let left = self.columns.get(column).is_some_and(|c| c.kind == Kind::Words);
                text.push_str(if i > 0 { "  " } else { "" });
                let shown = if style.unicode { cell.clone() } else { cell.replace('█', "#") };
                let painted = style.paint(*paint, &shown);
                text.push_str(&if left { painted + &pad } else { pad + &painted });
            }
            out.push_str(text.trim_end());
            out.push('\n');
        };
        let heads: Vec<&Column> = columns.iter().filter_map(|&c| self.columns.get(c)).collect();
        line(heads.iter().map(|c| (c.name.clone(), Paint::Bold)).collect());
        if heads.iter().any(|c| !c.unit.is_empty()) {
            line(heads.iter().map(|c| (c.unit.clone(), Paint::Dim)).collect());
        }
        let rule = if style.unicode { "─" } else { "-" };
        line(columns.iter().map(|&c| (rule.repeat(self.width(c)), Paint::Dim)).collect());
        for row in 0..self.rows.len() {
            line(
                columns
                    .iter()
                    .map(|&c| self.cell(row, c).map_or_else(Default::default, |cell| (cell.text.clone(), cell.paint)))
                    .collect(),
            );
        }
        out
    }

    /// As a Markdown table; cells are escaped here.
    pub fn markdown(&self) -> String {
        let used: Vec<(usize, &Column)> = self.used().collect();
        let mut out = String::from("|");
        for (_, c) in &used {
            out.push_str(&format!(" {} |", text::markdown(format!("{} {}", c.name, c.unit).trim())));
        }
        out.push_str("\n|");
        for (_, c) in &used {
            out.push_str(if c.kind == Kind::Words { " :-- |" } else { " --: |" });
        }
        for row in 0..self.rows.len() {
            out.push_str("\n|");
            for (i, _) in &used {
                let cell = self.cell(row, *i).map_or("", |c| c.text.as_str());
                out.push_str(&format!(" {} |", text::markdown(cell)));
            }
        }
        out.push('\n');
        out
    }

    /// As comma-separated values (RFC 4180), every column, a header line of names with their units.
    pub fn csv(&self) -> String {
        let head = self.columns.iter().map(|c| text::field(format!("{} {}", c.name, c.unit).trim()));
        let mut out = head.collect::<Vec<_>>().join(",") + "\n";
        for row in &self.rows {
            let cells = self.columns.iter().zip(row).map(|(column, cell)| match column.kind {
                Kind::Words => text::field(&cell.text),
                Kind::Figures => figure(&cell.text),
                Kind::Data => cell.text.clone(),
            });
            out.push_str(&cells.collect::<Vec<_>>().join(","));
            out.push('\n');
        }
        out
    }

    /// As plain columns with one line of names and no rule, for the counters of a program that runs.
    pub fn plain(&self) -> String {
        let name = |c: &Column| format!("{} {}", c.name, c.unit).trim().to_owned();
        let wide = |column: usize, name: &str| {
            let cells = (0..self.rows.len()).filter_map(|r| self.cell(r, column)).map(|c| chars(&c.text));
            cells.fold(chars(name), usize::max)
        };
        let names: Vec<String> = self.columns.iter().map(name).collect();
        let widths: Vec<usize> = names.iter().enumerate().map(|(i, name)| wide(i, name)).collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let cell = |((c, width), text): ((&Column, &usize), &str)| {
                let pad = " ".repeat(width.saturating_sub(chars(text)));
                if c.kind == Kind::Words {
                    text.to_owned() + &pad
                } else {
                    pad + text
                }
            };
            let cells: Vec<String> = self.columns.iter().zip(&widths).zip(cells).map(cell).collect();
            cells.join("  ").trim_end().to_owned() + "\n"
        };
        let rows = self.rows.iter().map(|row| line(&mut row.iter().map(|c| c.text.as_str())));
        line(&mut names.iter().map(String::as_str)) + &rows.collect::<String>()
    }
}

/// A bare figure: no thousands separators, prefixes multiplied out, nothing for a dash; `>= ` stays.
fn figure(text: &str) -> String {
    let (least, digits) = text.strip_prefix(">= ").map_or(("", text), |rest| (">= ", rest));
    match units::parse_si(&digits.replace(',', "")) {
        Some((value, "")) => format!("{least}{}", (value * 1e3).round() / 1e3),
        _ if text == "-" => String::new(),
        _ => text::field(text),
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut t = Table::default();
        t.right(0, "frame", "B");
        t.right(1, "throughput", "pps");
        t.right(1, "never", "");
        t.right(2, "min", "us");
        t.right(2, "max", "us");
        t.row(vec!["64".into(), "14,880,952".into(), "".into(), "1.20".into(), "99.9".into()]);
        t
    }

    #[test]
    fn a_column_with_nothing_in_it_is_left_out() {
        insta::assert_snapshot!(table().text(&Style::PIPE), @r"
        frame  throughput   min   max
            B         pps    us    us
        ─────  ──────────  ────  ────
           64  14,880,952  1.20  99.9
        ");
        assert_eq!(table().csv(), "frame B,throughput pps,never,min us,max us\n64,14880952,,1.2,99.9\n");
    }

    #[test]
    fn a_narrow_terminal_gets_panels_never_long_lines() {
        let text = table().text(&Style { width: 20, ..Style::PIPE });
        assert_eq!(text.matches("frame").count(), 2);
        assert!(text.lines().all(|l| l.chars().count() <= 20), "{text}");
        assert!(text.contains("   64  1.20  99.9"));
    }

    /// Columns of 2, 1, 2 and 2 characters: a key, a group of one, a group of two.
    fn narrow() -> Table {
        let mut t = Table::default();
        for (group, name) in [(0, "k0"), (1, "a"), (2, "b0"), (2, "b1")] {
            t.right(group, name, "");
        }
        t.row(["1", "2", "3", "4"].map(Cell::from).into());
        t
    }

    #[test]
    fn a_group_moves_to_the_next_panel_only_where_it_fits_as_a_whole() {
        let all: [&[usize]; 1] = [&[0, 1, 2, 3]];
        assert_eq!(narrow().panels(13), all, "as wide as the table");
        assert_eq!(narrow().panels(12), [[0, 1].as_slice(), &[0, 2, 3]]);
        assert_eq!(narrow().panels(10), [[0, 1].as_slice(), &[0, 2, 3]], "as wide as the panel of the group");
        assert_eq!(narrow().panels(9), [[0, 1, 2].as_slice(), &[0, 3]], "the group is torn apart");
        assert_eq!(narrow().panels(1), [[0, 1], [0, 2], [0, 3]], "each panel has a column, however wide");
    }

    #[test]
    fn plain_columns_have_one_line_of_names() {
        let mut t = table();
        t.left(3, "port", "");
        t.rows[0].push("a".into());
        let again = ["1518", "812,743", "", "1.2", "10", "port-1"].map(Cell::from);
        t.row(again.into());
        insta::assert_snapshot!(t.plain(), @r"
        frame B  throughput pps  never  min us  max us  port
             64      14,880,952           1.20    99.9  a
           1518         812,743            1.2      10  port-1
        ");
    }

    #[test]
    fn figures_for_csv_are_bare() {
        for (text, bare) in
            [("14,880,952", "14880952"), (">= 1.5M", ">= 1500000"), ("-", ""), ("n/a", "n/a"), ("a,b", "\"a,b\"")]
        {
            assert_eq!(figure(text), bare, "{text}");
        }
    }
}
