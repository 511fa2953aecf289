//! Every valid trial, and how many were discarded for what.

use std::collections::BTreeMap;

use measure::{
    result::RunResult,
    trial::{Rule, TrialRecord},
};
use units::Frames;

use crate::{
    document::{Audience, Block, Note, Section, Topic},
    figures::{self, TrialTally},
    num,
    table::Table,
    words,
};

/// Most valid trials listed; the JSON result has all.
const LISTED: usize = 400;

/// All trials: the valid ones in a list, the others counted.
pub(crate) fn section(result: &RunResult) -> Section {
    let tally = TrialTally::of(&result.trials);
    let valid: Vec<&TrialRecord> = result.trials.iter().filter(|t| t.valid()).collect();
    let mut notes = Vec::new();
    if valid.len() > LISTED {
        notes.push(Note::plain(format!("and {} more valid trials: the JSON result lists them", valid.len() - LISTED)));
    }
    Section::new(Topic::Trials, format!("Trials: {} run, {} invalid", tally.run, tally.invalid))
        .folded()
        .with(Audience::FILE, Block::Table(table(valid.into_iter().take(LISTED))))
        .with(Audience::FILE, Block::Notes(notes))
        .with(Audience::FILE, Block::Table(invalid(&result.trials)))
        .with(Audience::FILE, Block::Notes(examples(&result.trials)))
}

/// A row a frame size: its invalid trials, and how many broke each rule.
fn invalid(trials: &[TrialRecord]) -> Table {
    let mut sizes: BTreeMap<Frames, Vec<&TrialRecord>> = BTreeMap::new();
    for trial in trials.iter().filter(|t| !t.valid()) {
        sizes.entry(trial.spec.frame_size_bytes).or_default().push(trial);
    }
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.right(1, "invalid", "trials");
    t.left(1, "rules broken", "");
    for (size, trials) in sizes {
        let tally = TrialTally::of(trials);
        let rules: Vec<String> = tally
            .by_rule
            .iter()
            .map(|(rule, n)| format!("{} {}", words::rule(*rule), num::thousands(*n as u64)))
            .collect();
        t.row(vec![size.to_string().into(), num::thousands(tally.invalid as u64).into(), rules.join(", ").into()]);
    }
    t
}

/// The first trial that broke each rule, with its evidence.
fn examples(trials: &[TrialRecord]) -> Vec<Note> {
    let mut first: BTreeMap<Rule, String> = BTreeMap::new();
    for (trial, violation) in trials.iter().flat_map(|t| t.violations.iter().map(move |v| (t, v))) {
        first
            .entry(violation.rule)
            .or_insert_with(|| format!("trial {} {}: {}", trial.number, words::rule(violation.rule), violation.text));
    }
    first.into_values().map(Note::plain).collect()
}

/// A row a trial.
fn table<'a>(trials: impl Iterator<Item = &'a TrialRecord>) -> Table {
    let mut t = Table::default();
    t.right(0, "#", "");
    t.right(1, "frame", "B");
    t.left(1, "purpose", "");
    t.right(1, "try", "");
    t.right(1, "load", "pps");
    t.right(1, "duration", "s");
    t.right(2, "sent", "frames");
    t.right(2, "received", "frames");
    t.right(2, "lost", "frames");
    t.right(2, "loss", "");
    t.right(2, "placement", "");
    t.left(3, "validity", "");
    for trial in trials {
        t.row(vec![
            trial.number.to_string().into(),
            trial.spec.frame_size_bytes.to_string().into(),
            words::purpose(trial.spec.purpose).into(),
            trial.attempt.to_string().into(),
            num::pps(trial.spec.load_fps).into(),
            num::trim(trial.real_duration_s, 3).into(),
            num::thousands(trial.directions.iter().map(|d| d.sent).sum()).into(),
            num::thousands(trial.directions.iter().map(|d| d.received).sum()).into(),
            num::thousands(trial.lost()).into(),
            figures::loss(&trial.directions).map(|l| l.to_string()).into(),
            trial.interference.placement.map(|p| p.to_string()).into(),
            words::validity(trial).into(),
        ]);
    }
    t
}
