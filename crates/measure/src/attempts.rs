//! One policy of repeats: when a trial is made again, and when a load, a placement of the cores, the tester or the device
//! is given up.
//!
//! All searches, the tests besides the throughput, the rounds of the address tests, the confirmation of a throughput and
//! the scores of a flow logger go by it. A trial that breaks a validity rule is *invalid*: it is discarded and repeated.
//! Every limit stands in `limits`, every sentence about giving up in `ruling`. What a device that sends nothing back does to
//! a search is in [`search`](crate::search), since it asks for trials of its own.

mod bounds;
mod confirmation;
mod limits;
mod load;
mod ruling;
mod scores;

pub use self::{
    bounds::{Budget, Streak},
    confirmation::{Confirmation, Lowering, Said},
    limits::*,
    load::{broken, is_elsewhere, within_tester, Attempts},
    ruling::{GivenUp, Ruling},
    scores::ScoreAttempts,
};

#[cfg(test)]
mod tests;
