//! How several runs stand together: the last line below the table of a suite or a sweep.

use measure::{result::RunResult, standing};

use crate::{
    document::{Audience, Block, Section, Topic},
    standing::{paint, Standing},
};

/// How several runs stand together, as the last line on a terminal. `None` of none.
pub fn of_several(results: &[RunResult]) -> Option<Section> {
    standing::of_several(results.iter().map(|r| r.standing)).map(section)
}

pub(crate) fn section(standing: measure::result::Standing) -> Section {
    let line = Standing { text: standing.describe().to_owned(), paint: paint(standing) };
    Section::new(Topic::Standing, "").with(Audience::TERMINAL, Block::Standing(line))
}
