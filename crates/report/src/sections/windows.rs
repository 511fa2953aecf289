//! The windows of a trial: a row a window and direction.

use measure::{shape::WindowSummary, trial::TrialRecord};

use crate::{
    document::{Audience, Block, Section, Topic},
    names::Names,
    num,
    table::{Cell, Table},
};

/// Most windows shown; the result holds all.
const SHOWN: usize = 30;

/// The windows that the trial asked for.
pub(crate) fn section(trial: &TrialRecord) -> Section {
    Section::new(Topic::Windows, title(trial)).with(Audience::READERS, Block::Table(table(trial)))
}

/// What stands over the table.
fn title(trial: &TrialRecord) -> String {
    let all = trial.directions.iter().map(|d| d.windows.len()).max().unwrap_or(0);
    if all > SHOWN {
        format!("Windows: the {SHOWN} of {all} with the most frames missing, then the largest PDV")
    } else {
        "Windows".to_owned()
    }
}

/// The windows, the worst of them where they are many, in order of time. Empty without any.
fn table(trial: &TrialRecord) -> Table {
    let mut t = Table::default();
    t.right(0, "from", "s");
    t.right(0, "to", "s");
    t.left(0, "direction", "");
    t.right(1, "received", "frames");
    t.right(1, "missing", "frames");
    for name in ["min", "p50", "p99", "max"] {
        t.right(2, name, "us");
    }
    t.right(3, "PDV", "p99.9 us");
    t.right(3, "IPDV", "p5 us");
    t.right(3, "IPDV", "p95 us");
    let names = Names::of_trial(trial);
    for d in &trial.directions {
        let mut worst: Vec<&WindowSummary> = d.windows.iter().collect();
        if worst.len() > SHOWN {
            worst.sort_by_key(|w| std::cmp::Reverse((w.missing, w.pdv_p99_9_ns)));
            worst.truncate(SHOWN);
            worst.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
        }
        let named = if trial.directions.len() > 1 { names.direction(d) } else { String::new() };
        for w in worst {
            // Without frames there is no delay.
            let us = |ns: u64| Cell::from((w.received > 0).then(|| num::us(ns as f64)));
            let ipdv = |of: fn(&measure::trial::IpdvSummary) -> i64| {
                Cell::from(w.ipdv.as_ref().map(|i| num::us(of(i) as f64)))
            };
            t.row(vec![
                num::trim(w.from_s, 6).into(),
                num::trim(w.to_s, 6).into(),
                named.clone().into(),
                num::thousands(w.received).into(),
                num::thousands(w.missing).into(),
                us(w.min_ns),
                us(w.p50_ns),
                us(w.p99_ns),
                us(w.max_ns),
                us(w.pdv_p99_9_ns),
                ipdv(|i| i.p5_ns),
                ipdv(|i| i.p95_ns),
            ]);
        }
    }
    t
}
