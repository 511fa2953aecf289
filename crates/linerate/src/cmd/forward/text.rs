//! Plain columns of text, and lines cut to a width.

use report::{Cell, Table};

/// A table of counters: figures to the right, words (a name that begins with `<`) to the left.
pub struct Columns {
    table: Table,
    columns: usize,
}

impl Columns {
    /// With these columns.
    pub fn new(names: &[&str]) -> Self {
        let mut table = Table::default();
        for name in names {
            match name.strip_prefix('<') {
                Some(name) => table.left(0, name, ""),
                None => table.right(0, name, ""),
            }
        }
        Self { table, columns: names.len() }
    }

    /// Adds a row; missing cells are empty.
    pub fn row(&mut self, cells: &[&str]) {
        // What comes from outside, such as a port's name, may not move the cursor.
        let clean = |cell: &&str| cell.chars().map(|c| if c.is_control() { '?' } else { c }).collect::<String>().into();
        let mut cells: Vec<Cell> = cells.iter().map(clean).collect();
        cells.resize(self.columns, Cell::default());
        self.table.row(cells);
    }

    /// The table, a line for each row.
    pub fn text(&self) -> String {
        self.table.plain()
    }
}

/// A line of at most `width` characters: whole columns and whole clauses are left out behind, with a sign that they are,
/// because half a figure misleads.
pub fn clip(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let end = |n: usize| line.char_indices().nth(n).map_or(line.len(), |(at, _)| at);
    let head = &line[..end(width)];
    let gap = ["  ", ", ", "; "].iter().filter_map(|gap| head.rfind(gap)).max();
    let kept = |at: usize| Some(head[..at].trim_end_matches([' ', ',', ';'])).filter(|kept| !kept.trim().is_empty());
    let word = || line[..end(width.saturating_sub(1))].rfind(' ');
    match gap.and_then(kept).or_else(|| word().and_then(kept)) {
        Some(kept) => format!("{kept} …"),
        None if width == 0 => String::new(),
        None => format!("{}…", &line[..end(width - 1)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_cut_inside_a_figure() {
        let table = "  123  4567    89";
        for (width, text) in [
            (17, table),
            (16, "  123  4567 …"),
            (13, "  123  4567 …"),
            (12, "  123 …"),
            (5, "  12…"),
            (1, "…"),
            (0, ""),
        ] {
            assert_eq!(clip(table, width), text, "{width}");
        }
        assert_eq!(clip("0.1 % busy, 2.0 vectors a poll", 25), "0.1 % busy …");
        assert_eq!(clip("größer als breit", 13), "größer als …");
    }

    #[test]
    fn words_stand_left_and_figures_right() {
        let mut t = Columns::new(&["<name", "n"]);
        t.row(&["a", "100"]);
        t.row(&["long name", "7"]);
        t.row(&["bad\x1b[2J", ""]);
        assert_eq!(t.text(), "name         n\na          100\nlong name    7\nbad?[2J\n");
    }
}
