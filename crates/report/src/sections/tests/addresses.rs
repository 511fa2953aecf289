//! Rounds of the address tests (RFC 2889 §5.7.5, §5.8.5).

use measure::{
    addresses::{RoundRecord, RoundVerdict},
    plan::Test,
    procedure::Found,
    result::TestResult,
};

use super::cells::frame;
use crate::{
    num,
    style::Paint,
    table::{Cell, Table},
};

/// A row a round, in order.
pub(super) fn rounds(all: &[&TestResult]) -> Table {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.right(0, "addresses", "");
    t.right(1, "learning", "pps");
    t.right(1, "test frames", "");
    t.right(1, "forwarded", "");
    t.right(1, "flooded", "");
    t.right(1, "returned", "");
    t.left(1, "result", "");
    for test in all {
        let Found::Addresses(f) = &test.found else { continue };
        for RoundRecord { round, counts, verdict, .. } in &f.rounds {
            let (word, paint) = match verdict {
                RoundVerdict::Held => ("held", Paint::Good),
                RoundVerdict::Overflowed => ("not held", Paint::Plain),
                RoundVerdict::Invalid => ("invalid", Paint::Dim),
            };
            let count = |n: u64| Cell::from(num::thousands(n));
            t.row(vec![
                frame(test),
                count(round.addresses),
                num::pps(round.learning_fps).into(),
                count(counts.tested),
                count(counts.forwarded),
                count(counts.flooded),
                count(counts.returned),
                Cell::painted(word, paint),
            ]);
        }
    }
    t
}

/// What the rounds come to, in a sentence.
pub(super) fn answer(test: &TestResult) -> Option<String> {
    let Found::Addresses(f) = &test.found else { return None };
    if test.test == Test::AddressLearning {
        let n = num::thousands(f.addresses?);
        let upper = f.overflow_fps.map_or(String::new(), |fps| format!(", and not at {} pps", num::pps(fps)));
        let least = if f.overflow_fps.is_none() { "at least " } else { "" };
        return Some(format!("{n} addresses are learned at {least}{} pps{upper}", num::pps(f.learning_fps?)));
    }
    let upper = f.overflow_addresses.map_or(String::new(), |n| format!(", and not {}", num::thousands(n)));
    let least = if f.overflow_addresses.is_none() { "at least " } else { "" };
    Some(format!("it holds {least}{} addresses{upper}", num::thousands(f.addresses?)))
}
