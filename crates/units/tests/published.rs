//! The published tables of the source documents through this crate's arithmetic (`docs/published-tables.md`).
//!
//! A figure is reproduced when what follows from the printed figures it is derived from can, rounded or cut, be printed
//! as it was. What is not reproduced must be listed with what ours gives, and what is listed must not be reproduced.
#![allow(clippy::unwrap_used, clippy::panic)]

mod published {
    pub mod figures;
    pub mod printed;
    pub mod tables;
}

use published::{figures, printed::Finding, tables};

const DOCUMENTS: [&str; 4] = [
    include_str!("published/nfvi.toml"),
    include_str!("published/onp.toml"),
    include_str!("published/router.toml"),
    include_str!("published/latency.toml"),
];

fn findings() -> Vec<Finding> {
    let mut all: Vec<Finding> = DOCUMENTS.iter().flat_map(|toml| tables::check(toml)).collect();
    all.extend(figures::check(include_str!("published/figures.toml")));
    all
}

#[test]
fn every_published_figure_is_reproduced_or_listed() {
    let all = findings();
    let wrong: Vec<String> = all.iter().filter_map(Finding::fault).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(all.len() > 500, "only {} figures were checked", all.len());
}

/// What "1514b" of the small-router document is, figure by figure.
#[test]
fn the_documentation_tells_which_frame_size_each_figure_follows_from() {
    let page = include_str!("../../../docs/published-tables.md");
    let readings = tables::readings(include_str!("published/router.toml"), 1514, 1518);
    let missing: Vec<&str> = readings.iter().map(String::as_str).filter(|row| !page.contains(row)).collect();
    assert!(readings.len() == 8 && missing.is_empty(), "not in docs/published-tables.md:\n{}", missing.join("\n"));
    let shown = page.lines().filter(|l| l.ends_with(" yes |") || l.ends_with(" no |")).count();
    assert_eq!(shown, readings.len(), "docs/published-tables.md has rows that the data has not");
}

/// The page for people lists what the data lists, no more and no less.
#[test]
fn the_documentation_lists_the_same() {
    let page = include_str!("../../../docs/published-tables.md");
    let rows: Vec<&str> =
        page.lines().filter(|l| l.starts_with("| ") && l.matches(" | ").count() == 4).skip(1).collect();
    let listed: Vec<String> = findings().iter().filter_map(Finding::row).collect();
    let missing: Vec<&str> = listed.iter().map(String::as_str).filter(|row| !rows.contains(row)).collect();
    assert!(missing.is_empty(), "not in docs/published-tables.md:\n{}", missing.join("\n"));
    assert_eq!(rows.len(), listed.len(), "docs/published-tables.md has rows that the data has not");
}
