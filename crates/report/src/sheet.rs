//! A table with its title and what must be said of it: a section that also stands by itself.

use std::fmt::Write;

use crate::{
    csv,
    document::{Audience, Block, Detail, Document, Note, Section, Topic},
    markdown,
    style::{Paint, Style},
    table::Table,
    terminal,
};

/// A heading and what is to be said, where there is no table.
pub fn words(title: &str, notes: Vec<String>) -> Section {
    of(title.to_owned(), Table::default(), notes)
}

/// A table with what must be said of it.
pub(crate) fn of(title: String, table: Table, notes: Vec<String>) -> Section {
    let notes = notes.into_iter().map(|note| Note::new(note, Paint::Warn)).collect();
    let csv = if table.is_empty() { Vec::new() } else { vec![Block::Data(table.clone())] };
    let section = Section::new(Topic::Sheet, title)
        .with(Audience::READERS, Block::Table(table))
        .with(Audience::READERS, Block::Notes(notes));
    csv.into_iter().fold(section, |section, data| section.with(Audience::CSV, data))
}

/// Sheets for a terminal or a pipe, each with an empty line in front.
pub fn text(sheets: &[Section], style: &Style) -> String {
    let mut out = String::new();
    for sheet in sheets {
        let document = Document::of(vec![sheet.clone()]);
        let _ = write!(out, "\n{}", terminal::render(&document, Detail::Verbose, style, &[]));
    }
    out
}

/// Sheets as sections of a Markdown document.
pub fn markdown(sheets: &[Section]) -> String {
    markdown::render(&Document::of(sheets.to_vec()))
}

/// Sheets as comma-separated values (RFC 4180), an empty line between two: bare figures; what is not known is empty.
pub fn csv(sheets: &[Section]) -> String {
    csv::figures(&Document::of(sheets.to_vec()))
}
