//! Plain columns of text, and lines cut to a width.

/// A table. Columns of figures are flush right; those of words, whose name begins with `<`, flush left.
pub struct Columns {
    names: Vec<(String, bool)>,
    rows: Vec<Vec<String>>,
}

impl Columns {
    /// With these columns.
    pub fn new(names: &[&str]) -> Self {
        let name = |name: &&str| match name.strip_prefix('<') {
            Some(name) => (name.to_owned(), true),
            None => ((*name).to_owned(), false),
        };
        Self { names: names.iter().map(name).collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub fn row(&mut self, cells: &[&str]) {
        // Text from outside, such as a port's name, must not move the cursor.
        let clean = |cell: &&str| cell.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        self.rows.push(cells.iter().map(clean).collect());
    }

    /// The table, a line a row.
    pub fn text(&self) -> String {
        let cell = |row: &Vec<String>, i: usize| row.get(i).cloned().unwrap_or_default();
        let wide = |i: usize, name: &str| {
            self.rows.iter().map(|row| cell(row, i).chars().count()).max().unwrap_or(0).max(name.chars().count())
        };
        let widths: Vec<_> = self.names.iter().enumerate().map(|(i, (name, _))| wide(i, name)).collect();
        let line = |cells: &dyn Fn(usize) -> String| {
            let mut line = String::new();
            for (i, (_, left)) in self.names.iter().enumerate() {
                let (text, width) = (cells(i), widths[i]);
                let gap = if i == 0 { "" } else { "  " };
                line += &if *left { format!("{gap}{text:<width$}") } else { format!("{gap}{text:>width$}") };
            }
            line.trim_end().to_owned() + "\n"
        };
        let mut out = line(&|i| self.names[i].0.clone());
        for row in &self.rows {
            out += &line(&|i| cell(row, i));
        }
        out
    }
}

/// A line of at most `width` characters. What does not fit is left out by whole columns and clauses, because half a figure
/// misleads; `…` says so.
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
