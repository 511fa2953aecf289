//! Comma-separated values (RFC 4180) with the schema's names and base units, for a spreadsheet or a script.

use measure::result::RunResult;

use crate::{
    data,
    document::{Audience, Block, Document, Render, Section},
};

/// The figures of a document: its answers by frame size, or of a run that has none, such as a single trial, its trials.
pub fn figures(document: &Document) -> String {
    render(document, Audience::CSV)
}

/// One line for each figure of each test beside the throughput, under the schema's own names: `points.3.loss_ratio`.
pub fn tests(document: &Document) -> String {
    render(document, Audience::CSV_TESTS)
}

/// One line for each frame size, or with search goals one for each goal of it, with more columns. `throughput_fps` and what
/// follows from it are per direction unless named `_sum`; an outcome other than `found`, `at_maximum` or `tester_limited`
/// leaves them empty.
pub fn sizes(result: &RunResult) -> String {
    data::sizes(result).csv()
}

/// One line for each trial and direction, counts in frames.
pub fn trials(result: &RunResult) -> String {
    data::trials(result).csv()
}

/// One line for each figure of each test of a result.
pub(crate) fn tests_of(result: &RunResult) -> String {
    data::tests(result).csv()
}

fn render(document: &Document, audience: Audience) -> String {
    let mut csv = Csv { audience, out: String::new() };
    document.render(&mut csv);
    csv.out
}

/// The tables of one audience, one under the other.
struct Csv {
    audience: Audience,
    out: String,
}

impl Render for Csv {
    fn audience(&self) -> Audience {
        self.audience
    }

    fn open(&mut self, _: &Section) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn block(&mut self, block: &Block) {
        if let Block::Data(table) = block {
            self.out.push_str(&table.csv());
        }
    }

    fn close(&mut self, _: &Section) {}
}
