//! The document of a run: the one order of its sections.

use measure::result::RunResult;

use crate::{
    bars::Bars,
    data,
    document::{Audience, Block, Document, Section, Topic},
    figures,
    sections::{appendix, delay, lab, power, runtime, setting, tests, throughput, trial, trials, trust},
    standing::standing_line,
};

/// The whole document of a result, with tables in other layouts (`sheets`). A result without frame sizes
/// (`linerate trial`) has its trial instead of tables.
pub fn document(result: &RunResult, sheets: impl IntoIterator<Item = Section>) -> Document {
    let mut sections = vec![setting::section(result)];
    if !result.sizes.is_empty() {
        sections.extend([
            throughput::section(result),
            throughput::goals_section(result),
            delay::section(result),
            picture(result),
            runtime::section(result),
            runtime::load_section(result),
        ]);
    } else if let Some(one) = figures::single(result).filter(|_| result.tests.is_empty()) {
        sections.extend(trial::sections(result, one));
    }
    sections.push(lab::hops_section(result));
    sections.push(lab::threads_section(result));
    sections.extend(tests::sections(result));
    sections.push(power::section(result));
    let before = sections.len();
    sections.extend(sheets);
    // In CSV, tables in other layouts stand alone.
    let csv = if sections.len() == before { Audience::CSV } else { Audience::NOBODY };
    sections.push(trust::section(result));
    sections.push(Section::new(Topic::Standing, "").with(Audience::TERMINAL, Block::Standing(standing_line(result))));
    sections.push(lab::facts_section(result));
    sections.extend([appendix::host(result), appendix::plan(result), trials::section(result)]);
    sections.push(
        Section::new(Topic::Data, "")
            .with(csv, Block::Data(data::figures(result)))
            .with(Audience::CSV_TESTS, Block::Data(data::tests(result))),
    );
    Document::of(sections)
}

/// Bars of the throughput; a short text of an MLRsearch has goals in their place, one of several tests the tests.
fn picture(result: &RunResult) -> Section {
    let goals = result.sizes.iter().any(|s| !s.goals.is_empty());
    let audience = if goals || !result.tests.is_empty() { Audience::DETAILS } else { Audience::READERS };
    let bars = Bars::of(result);
    Section::new(Topic::Picture, bars.title()).with(audience, Block::Bars(bars))
}
