//! The live view, made to fit the terminal.

use super::text::clip;

/// What is left out last, and nearest to the end first.
pub const KEPT: u8 = 0;
/// The receive queues, left out when the nodes were not enough.
pub const QUEUES: u8 = 1;
/// Rows of nodes: `show runtime` has them.
pub const NODES: u8 = 2;

/// Lines, and how soon each can be done without.
pub struct View {
    title: String,
    lines: Vec<(u8, String)>,
}

impl View {
    /// With its first line.
    pub fn new(title: String) -> Self {
        Self { title, lines: Vec::new() }
    }

    /// Adds text below.
    pub fn add(&mut self, spare: u8, text: &str) {
        self.lines.extend(text.lines().map(|line| (spare, line.to_owned())));
    }

    /// The lines for a terminal of so many columns and lines, of which the cursor takes one.
    pub fn fit(mut self, (columns, lines): (usize, usize)) -> Vec<String> {
        let room = lines.saturating_sub(2);
        let missing = self.lines.len().saturating_sub(room);
        for _ in 0..missing {
            let last = self.lines.iter().enumerate().max_by_key(|(n, (spare, _))| (*spare, *n)).map(|(n, _)| n);
            last.map(|n| self.lines.remove(n));
        }
        if missing > 0 {
            self.title += &format!("; lines left out: {missing}");
        }
        std::iter::once(&self.title).chain(self.lines.iter().map(|l| &l.1)).map(|line| clip(line, columns)).collect()
    }
}

/// Columns and lines of the terminal that standard output is; of one that does not say, without end.
pub fn size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    let of = |n: Option<u16>| n.filter(|n| *n > 0).map_or(usize::MAX, usize::from);
    (of(size.map(|s| s.ws_col)), of(size.map(|s| s.ws_row)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_least_is_left_out_and_the_top_stays() {
        let shown = |lines| {
            let mut view = View::new("title".into());
            view.add(KEPT, "port\n\n");
            view.add(QUEUES, "queue\n");
            view.add(NODES, "rx\ntx\n");
            view.add(KEPT, "sum\n");
            view.fit((80, lines)).join("|")
        };
        assert_eq!(shown(8), "title|port||queue|rx|tx|sum");
        assert_eq!(shown(7), "title; lines left out: 1|port||queue|rx|sum");
        assert_eq!(shown(5), "title; lines left out: 3|port||sum");
        assert_eq!(shown(3), "title; lines left out: 5|port");
        assert_eq!(shown(0), "title; lines left out: 6");
    }
}
