//! What the tests beside the throughput found: a section for each test. A short text of many rows has one table for all.

mod addresses;
mod cells;
mod delays;
mod loads;
mod notes;
mod summary;

use measure::{
    plan::Test,
    result::{RunResult, TestResult},
};

use crate::{
    document::{Audience, Block, Note, Section, Topic},
    table::Table,
};

/// Rows of all tables up to which a short text shows them as they are.
const SHORT_ROWS: usize = 12;

/// Every test of the run, in the order of its first answer.
pub(crate) fn sections(result: &RunResult) -> Vec<Section> {
    let mut order: Vec<Test> = Vec::new();
    for t in &result.tests {
        if !order.contains(&t.test) {
            order.push(t.test);
        }
    }
    let sections: Vec<Section> = order.iter().map(|test| section(result, *test)).collect();
    let rows: usize = sections.iter().map(Section::rows).sum();
    if rows <= SHORT_ROWS {
        return sections;
    }
    let long = sections.into_iter().map(|section| section.without(Audience::SHORT));
    std::iter::once(summary::section(result, &order)).chain(long).collect()
}

fn section(result: &RunResult, test: Test) -> Section {
    let all: Vec<&TestResult> = result.tests.iter().filter(|t| t.test == test).collect();
    let (title, table) = match test {
        Test::FrameLoss => ("Frame loss rate by load", loads::frame_loss(&all)),
        Test::BackToBack => ("Back-to-back frames", loads::back_to_back(&all)),
        Test::Recovery => ("System recovery", loads::recovery(&all)),
        Test::Reset => ("Reset", loads::reset(&all)),
        Test::Bursty => ("Bursty traffic: smallest interval between bursts", loads::bursty(&all)),
        Test::ForwardingRate => ("Forwarding rate", loads::forwarding_rate(&all)),
        Test::LatencyProfile => ("One-way delay by load", delays::profile(&all)),
        Test::Pdv => ("Delay variation, whole and by window", delays::pdv(&all)),
        Test::Soak => ("Soak", delays::soak(&all)),
        Test::AddressCaching => ("Address caching capacity", addresses::rounds(&all)),
        Test::AddressLearning => ("Address learning rate", addresses::rounds(&all)),
        Test::Throughput | Test::Latency => ("", Table::default()),
    };
    let mut notes = notes::reasons(&all);
    let mut add = |lines: Vec<String>| notes.extend(lines.into_iter().map(Note::plain));
    match test {
        Test::LatencyProfile => add(all.iter().filter_map(|t| delays::tagged(t)).collect()),
        Test::Reset => add(all.iter().flat_map(|t| loads::commands(t)).collect()),
        test if test.is_of_addresses() => add(all.iter().filter_map(|t| addresses::answer(t)).collect()),
        _ => {}
    }
    Section::new(Topic::Test(test), title)
        .with(Audience::READERS, Block::Table(table))
        .with(Audience::READERS, Block::Notes(notes))
        .with(Audience::DETAILS, Block::Notes(notes::standards(&all)))
}
