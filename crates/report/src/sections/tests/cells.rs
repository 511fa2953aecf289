//! Cells and columns that the tables of several tests share.

use measure::{
    procedure::{Spread, TestOutcome},
    result::TestResult,
};

use crate::{
    table::{Cell, Table},
    words,
};

/// The frame size of a row.
pub(super) fn frame(t: &TestResult) -> Cell {
    t.frame_size_bytes.to_string().into()
}

/// How a test ended, as a cell.
pub(super) fn outcome(outcome: TestOutcome) -> Cell {
    let (word, paint) = words::test_outcome(outcome);
    Cell::painted(word, paint)
}

/// Mean, standard deviation, least, most and number of repeated values, each shown by `of`.
pub(super) fn spread(spread: Option<Spread>, of: impl Fn(f64) -> String) -> [Cell; 5] {
    let Some(s) = spread else { return Default::default() };
    [Cell::bold(of(s.mean)), of(s.stddev).into(), of(s.min).into(), of(s.max).into(), s.n.to_string().into()]
}

/// The columns of [`spread`].
pub(super) fn spread_columns(t: &mut Table, group: u8, what: &str, unit: &str) {
    t.right(group, what, unit);
    for (name, unit) in [("stddev", unit), ("min", unit), ("max", unit), ("N", "")] {
        t.right(group, name, unit);
    }
}
