//! The live view as lines of text, made to fit a terminal.

use crate::text::clip;

/// How soon a line is left out where there is no room: the later, the sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Spare {
    Last,
    /// Receive queues.
    Queue,
    /// Rows of nodes, which `show runtime` has.
    Node,
}

/// A title and lines, some of which can be left out.
#[derive(Debug, Clone)]
pub struct LiveView {
    title: String,
    lines: Vec<(Spare, String)>,
}

impl LiveView {
    /// A view of its title alone.
    pub fn new(title: String) -> Self {
        Self { title, lines: Vec::new() }
    }

    /// Adds text that is left out last.
    pub fn add_always(&mut self, text: &str) {
        self.add(Spare::Last, text);
    }

    /// Adds text about receive queues, left out after the rows of nodes.
    pub fn add_queues(&mut self, text: &str) {
        self.add(Spare::Queue, text);
    }

    /// Adds rows of nodes, left out first.
    pub fn add_nodes(&mut self, text: &str) {
        self.add(Spare::Node, text);
    }

    fn add(&mut self, spare: Spare, text: &str) {
        self.lines.extend(text.lines().map(|line| (spare, line.to_owned())));
    }

    /// The lines that fit a terminal with the given columns and lines. The cursor takes one of the lines.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_least_is_left_out_and_the_top_stays() {
        let shown = |lines| {
            let mut view = LiveView::new("title".into());
            view.add_always("port\n\n");
            view.add_queues("queue\n");
            view.add_nodes("rx\ntx\n");
            view.add_always("sum\n");
            view.fit((80, lines)).join("|")
        };
        assert_eq!(shown(8), "title|port||queue|rx|tx|sum");
        assert_eq!(shown(7), "title; lines left out: 1|port||queue|rx|sum");
        assert_eq!(shown(5), "title; lines left out: 3|port||sum");
        assert_eq!(shown(3), "title; lines left out: 5|port");
        assert_eq!(shown(0), "title; lines left out: 6");
    }
}
