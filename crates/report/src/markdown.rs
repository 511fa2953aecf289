//! A document as Markdown, whole, for an issue or a wiki. Text from outside stays text: no markup, no HTML, no broken table.

use crate::{
    document::{Audience, Block, Document, Render, Section},
    style::Style,
    text::{self, code, markdown as escape},
};

/// The document, with a newline at its end.
pub fn render(document: &Document) -> String {
    let mut markdown = Markdown { out: String::new() };
    document.render(&mut markdown);
    markdown.out
}

/// The text so far.
struct Markdown {
    out: String,
}

impl Markdown {
    /// An empty line between two blocks.
    fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }
}

impl Render for Markdown {
    fn audience(&self) -> Audience {
        Audience::FILE
    }

    fn open(&mut self, section: &Section) {
        self.gap();
        let title = escape(section.heading(Audience::FILE));
        match (title.is_empty(), section.is_folded()) {
            (true, _) => {}
            (_, true) => self.out.push_str(&format!("<details><summary>{title}</summary>\n")),
            (_, false) => self.out.push_str(&format!("## {title}\n")),
        }
    }

    fn block(&mut self, block: &Block) {
        self.gap();
        match block {
            Block::Title(title) => self.out.push_str(&format!("# {}\n", escape(title))),
            Block::Standing(standing) => self.out.push_str(&format!("**Standing: {}**\n", escape(&standing.text))),
            Block::Facts(facts) => {
                facts.iter().for_each(|f| self.out.push_str(&format!("- {}: {}\n", escape(&f.label), code(&f.text))));
            }
            Block::Statements(facts) => {
                facts
                    .iter()
                    .for_each(|f| self.out.push_str(&format!("- **{}**: {}\n", escape(&f.label), escape(&f.text))));
            }
            Block::Notes(notes) => notes.iter().for_each(|n| self.out.push_str(&format!("- {}\n", escape(&n.text)))),
            Block::Table(table) => self.out.push_str(&table.markdown()),
            Block::Data(_) => {}
            Block::Bars(bars) => self.out.push_str(&format!("```text\n{}```\n", bars.text(&Style::PIPE))),
            Block::Picture(text) => {
                let lines: Vec<String> = text.lines().map(text::clean_indented).collect();
                self.out.push_str(&format!("```text\n{}\n```\n", lines.join("\n").replace("```", "'''")));
            }
            Block::Json(json) => self.out.push_str(&fenced(json)),
        }
    }

    fn close(&mut self, section: &Section) {
        if section.is_folded() {
            self.out.push_str("\n</details>\n");
        }
    }
}

/// A code block whose fence is longer than any run of backticks in it.
fn fenced(body: &str) -> String {
    let body: String = body.lines().map(|l| text::clean_indented(l) + "\n").collect();
    let longest = body.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}json\n{body}{fence}\n")
}
