//! A document for a person at a terminal.

use std::path::PathBuf;

use crate::{
    document::{Audience, Block, Detail, Document, Fact, Render, Section, Topic},
    style::{Paint, Style},
    text,
};

/// Columns that labels take.
const LABELS: usize = 11;
/// Columns in front of notes.
const INDENT: usize = 2;

/// The document as text for a terminal or a pipe. `files` are the documents already written.
pub fn render(document: &Document, detail: Detail, style: &Style, files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().map(|f| f.to_string_lossy().into_owned()).collect();
    let written = (!names.is_empty()).then(|| {
        let facts = match detail {
            Detail::Short => vec![Fact::new("written", in_one_line(&names, style), Paint::Plain)],
            Detail::Verbose => names.into_iter().map(|name| Fact::new("written", name, Paint::Plain)).collect(),
        };
        Section::new(Topic::Written, "").with(Audience::TERMINAL, Block::Facts(facts))
    });
    let mut terminal = Terminal { detail, style, out: String::new(), after_table: false };
    document.render(&mut terminal);
    Document::of(written.into_iter().collect()).render(&mut terminal);
    terminal.out
}

/// The names of files in one line: all, or the last part of one and how many more.
fn in_one_line(names: &[String], style: &Style) -> String {
    let room = style.width.saturating_sub(LABELS);
    let all = names.join(", ");
    match names {
        [first, rest @ ..] if all.chars().count() > room => {
            let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
            text::clip_front(first, room.saturating_sub(more.len())) + &more
        }
        _ => all,
    }
}

/// The text so far.
struct Terminal<'a> {
    detail: Detail,
    style: &'a Style,
    out: String,
    /// A table is the last thing of it.
    after_table: bool,
}

impl Render for Terminal<'_> {
    fn audience(&self) -> Audience {
        match self.detail {
            Detail::Short => Audience::SHORT,
            Detail::Verbose => Audience::VERBOSE,
        }
    }

    fn open(&mut self, section: &Section) {
        let title = section.heading(self.audience());
        // The first section, the standing and the files follow without a gap.
        let close = matches!(section.topic(), Topic::Setting | Topic::Standing | Topic::Written);
        if !close && !self.out.is_empty() {
            self.out.push('\n');
        }
        if !title.is_empty() {
            for line in text::wrap(&text::styled(title, self.style), self.style.width) {
                self.out.push_str(&self.style.paint(Paint::Bold, &line));
                self.out.push('\n');
            }
        }
    }

    fn block(&mut self, block: &Block) {
        let style = self.style;
        match block {
            Block::Title(title) => {
                let title = text::styled(title, style);
                let lines = match self.detail {
                    Detail::Short => vec![text::clip(&title, style.width)],
                    Detail::Verbose => text::wrap(&title, style.width),
                };
                for line in lines {
                    self.out.push_str(&style.paint(Paint::Bold, &line));
                    self.out.push('\n');
                }
            }
            Block::Facts(facts) | Block::Statements(facts) => {
                facts.iter().for_each(|f| self.out.push_str(&statement(f, style)));
            }
            Block::Notes(notes) => {
                notes.iter().for_each(|n| self.out.push_str(&paragraph("", &n.text, n.paint, n.lines, style)));
            }
            Block::Table(table) => {
                if self.after_table {
                    self.out.push('\n');
                }
                self.out.push_str(&table.text(style));
            }
            Block::Data(_) => {}
            Block::Bars(bars) => self.out.push_str(&bars.text(style)),
            Block::Standing(standing) => {
                for line in text::wrap(&text::styled(&standing.text, style), style.width) {
                    self.out.push_str(&style.paint(standing.paint, &line));
                    self.out.push('\n');
                }
            }
            Block::Picture(text) | Block::Json(text) => text.lines().for_each(|line| {
                self.out.push_str(&text::styled_with_spaces(line, style));
                self.out.push('\n');
            }),
        }
        self.after_table = matches!(block, Block::Table(_));
    }

    fn close(&mut self, _: &Section) {
        self.after_table = false;
    }
}

/// A labelled statement; one that has an ending, in one line.
fn statement(fact: &Fact, style: &Style) -> String {
    let body = match &fact.ending {
        Some(ending) => {
            let ending = text::styled(ending, style);
            let room = style.width.saturating_sub(LABELS + ending.chars().count());
            text::clip(&text::styled(&fact.text, style), room) + &ending
        }
        None => fact.text.clone(),
    };
    paragraph(&fact.label, &body, fact.paint, None, style)
}

/// A paragraph that wraps under itself, behind its label if it has one; cut after so many lines.
fn paragraph(label: &str, body: &str, paint: Paint, most: Option<usize>, style: &Style) -> String {
    let indent = if label.is_empty() { INDENT } else { LABELS };
    let width = style.width.saturating_sub(indent);
    let mut lines = text::wrap(&text::styled(body, style), width);
    if let Some(most) = most.filter(|most| lines.len() > *most) {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = format!("{} ...", text::clip_hard(last, width.saturating_sub(4)));
        }
    }
    let mut out = String::new();
    for (i, line) in lines.iter().enumerate() {
        let head = if i == 0 { format!("{label:<indent$}") } else { " ".repeat(indent) };
        out.push_str(&style.paint(Paint::Dim, &head));
        out.push_str(&style.paint(paint, line));
        out.push('\n');
    }
    out
}
