//! Plain columns of text.

/// A table: figures to the right, words (a name that begins with `<`) to the left.
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
        // What comes from outside, such as a port's name, may not move the cursor.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_figures_right() {
        let mut t = Columns::new(&["<name", "n"]);
        t.row(&["a", "100"]);
        t.row(&["long name", "7"]);
        t.row(&["bad\x1b[2J", ""]);
        assert_eq!(t.text(), "name         n\na          100\nlong name    7\nbad?[2J\n");
    }
}
