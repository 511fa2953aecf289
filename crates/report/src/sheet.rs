//! A sheet: a table with a title and notes, as a section of a document or by itself.

use crate::{
    csv,
    document::{Audience, Block, Document, Note, Section, Topic},
    markdown,
    style::Paint,
    table::Table,
};

/// A heading with notes and without a table.
pub fn words(title: &str, notes: Vec<String>) -> Section {
    of(title.to_owned(), Table::default(), notes)
}

/// A table with its title and notes.
pub(crate) fn of(title: String, table: Table, notes: Vec<String>) -> Section {
    let notes = notes.into_iter().map(|note| Note::new(note, Paint::Warn)).collect();
    let csv = if table.is_empty() { Vec::new() } else { vec![Block::Data(table.clone())] };
    let section = Section::new(Topic::Sheet, title)
        .with(Audience::READERS, Block::Table(table))
        .with(Audience::READERS, Block::Notes(notes));
    csv.into_iter().fold(section, |section, data| section.with(Audience::CSV, data))
}

/// Sheets as sections of a Markdown document.
pub fn markdown(sheets: &[Section]) -> String {
    markdown::render(&Document::of(sheets.to_vec()))
}

/// Sheets as comma-separated values (RFC 4180), an empty line between two: bare figures; what is not known is empty.
pub fn csv(sheets: &[Section]) -> String {
    csv::figures(&Document::of(sheets.to_vec()))
}
