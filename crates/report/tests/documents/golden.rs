use std::path::PathBuf;

use insta::assert_snapshot;
use measure::trial::{Purpose, Rule};
use report::{csv, markdown, selftest, terminal, Style};

use crate::fixtures::*;

const WIDE: Style = Style { colour: false, unicode: true, width: 120 };
const NARROW: Style = Style { colour: false, unicode: false, width: 80 };

#[test]
fn one_way_over_ten_gig() {
    let files = [PathBuf::from("out/run.json"), PathBuf::from("out/run.svg")];
    assert_snapshot!(terminal::render(&ten_gig(), &WIDE, &files));
}

#[test]
fn one_way_over_ten_gig_in_80_columns_of_ascii() {
    let text = terminal::render(&ten_gig(), &NARROW, &[]);
    assert!(text.is_ascii());
    assert_snapshot!(text);
}

#[test]
fn both_ways_over_ten_gig() {
    assert_snapshot!(terminal::render(&both_ways(), &WIDE, &[]));
}

#[test]
fn a_link_far_above_the_dut() {
    let mut r = both_ways();
    r.link_bps = link("100G");
    assert_snapshot!(terminal::render(&r, &Style::PIPE, &[]));
}

#[test]
fn goals_of_an_mlrsearch() {
    let r = mlrsearch();
    let text = terminal::render(&r, &WIDE, &[]);
    let table = |text: &str| text.split_once("Search goals").unwrap().1.split_once("\nOne-way").unwrap().0.to_owned();
    assert_snapshot!(table(&text));
    assert!(markdown::render(&r).contains("| PDR "));
    assert!(text.contains("irregular") && !terminal::render(&ten_gig(), &WIDE, &[]).contains("Search goals"));
}

#[test]
fn csv_of_goals_has_a_line_each() {
    let mut r = mlrsearch();
    r.sizes.push(nothing(256, measure::result::Outcome::NoTraffic));
    assert_snapshot!(csv::sizes(&r));
}

#[test]
fn outcomes_without_a_figure() {
    assert_snapshot!(terminal::render(&every_outcome(), &WIDE, &[]));
}

#[test]
fn a_trial_thrown_away() {
    assert_snapshot!(terminal::render(&invalid_trial(), &Style::PIPE, &[]));
    assert_snapshot!("a_trial_thrown_away_markdown", markdown::render(&invalid_trial()));
}

#[test]
fn markdown_of_a_run() {
    assert_snapshot!(markdown::render(&ten_gig()));
}

#[test]
fn markdown_without_figures() {
    assert_snapshot!(markdown::render(&every_outcome()));
}

#[test]
fn csv_of_a_run() {
    assert_snapshot!(csv::sizes(&every_outcome()));
    assert_snapshot!("csv_of_the_trials", csv::trials(&invalid_trial()));
}

#[test]
fn selftest_table() {
    assert_snapshot!(selftest::render(&ten_gig().selftest, link("10G"), &Style::PIPE));
}

#[test]
fn trial_lines() {
    let bounds = (Some(fps(8.1e6)), Some(fps(14.2e6)));
    let line = |t| terminal::trial_line(&t, bounds, &Style::PIPE);
    let clean = trial(12, 64, 12.3e6, Purpose::Search, 0);
    assert_eq!(line(clean.clone()), "#12 64 B 12.30 Mpps 1 s  lost 0  [8.100 M .. 14.20 Mpps]  valid");
    let lossy = violated(trial(13, 64, 12.3e6, Purpose::Search, 12_300), Rule::Interrupted, "why");
    assert_eq!(
        line(violated(lossy, Rule::Moved, "why")),
        "#13 64 B 12.30 Mpps 1 s  lost 12,300 (0.1 %)  [8.100 M .. 14.20 Mpps]  invalid: interrupted, cores moved"
    );
    assert_eq!(
        terminal::trial_line(&violated(clean, Rule::Clock, "why"), (None, None), &Style::PIPE),
        "#12 64 B 12.30 Mpps 1 s  lost 0  valid, latency withheld"
    );
}

#[test]
fn colours_add_nothing_but_colours() {
    for r in [ten_gig(), both_ways(), every_outcome(), invalid_trial()] {
        let coloured = terminal::render(&r, &Style { colour: true, ..WIDE }, &[]);
        let mut plain = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, after)) = rest.split_once('\u{1b}') {
            plain.push_str(before);
            rest = after.split_once('m').unwrap().1;
        }
        plain.push_str(rest);
        let trimmed: Vec<&str> = plain.lines().map(str::trim_end).collect();
        let bare = terminal::render(&r, &WIDE, &[]);
        assert_eq!(trimmed, bare.lines().map(str::trim_end).collect::<Vec<_>>());
        assert!(coloured.contains("\u{1b}[1m") && !bare.contains('\u{1b}'));
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [40, 60, 80, 100, 120] {
        for r in [ten_gig(), both_ways(), every_outcome(), invalid_trial()] {
            let text = terminal::render(&r, &Style { width, ..WIDE }, &[]);
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn an_outcome_that_is_no_answer_shows_no_rate() {
    let text = terminal::render(&every_outcome(), &WIDE, &[]);
    let row = |size: &str| text.lines().find(|l| l.trim_start().starts_with(size)).unwrap().to_owned();
    assert!(row("64 ").contains(">= 12,300,000") && row("64 ").contains("tester-limited"));
    for size in ["256 ", "512 ", "1024 ", "1280 "] {
        assert!(!row(size).trim_start()[size.len()..].contains(|c: char| c.is_ascii_digit()), "{}", row(size));
    }
}
