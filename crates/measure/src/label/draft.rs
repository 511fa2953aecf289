//! A label in the making.

use std::time::Duration;

use super::facts::LabelFacts;
use crate::schema::outcome::{Compliance, StandardLabel};

/// Time for what was learned to settle (RFC 2544 §23 b).
const LEARNING_WAIT: Duration = Duration::from_secs(2);

/// Name, and departures as they are found.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) name: String,
    departures: Vec<String>,
    /// Something that the standard says MUST be was not.
    must: bool,
}

impl Draft {
    /// Of a standard; a simulation departs first of all.
    pub(super) fn of(name: impl Into<String>, facts: &LabelFacts) -> Self {
        let mut draft = Self { name: name.into(), ..Self::default() };
        draft.must(facts.simulated, "simulated: no frame was sent and no device measured");
        draft
    }

    /// A departure from what the standard says SHOULD be.
    pub(super) fn should(&mut self, when: bool, text: impl Into<String>) {
        if when {
            self.departures.push(text.into());
        }
    }

    /// A departure from what the standard says MUST be, or from what its figure is by definition.
    pub(super) fn must(&mut self, when: bool, text: impl Into<String>) {
        self.must |= when;
        self.should(when, text);
    }

    pub(super) fn shorter(&mut self, given: Duration, least_s: u64, clause: &str) {
        let text = format!("trials of {} s instead of {least_s} s ({clause})", given.as_secs_f64());
        self.should(given.as_secs_f64() < least_s as f64, text);
    }

    /// Phases a and b of a trial, before its frames (RFC 2544 §23); of a test of LAN switches, what RFC 2889 has of them.
    pub(super) fn prepared(&mut self, facts: &LabelFacts, of_switches: bool) {
        if facts.simulated {
            return;
        }
        let text = "no routing update before each trial, which a router is to get (RFC 2544 §23 a)";
        self.should(!of_switches, text);
        match facts.learning_wait {
            None if of_switches => self.must(true, "no learning frames before each trial (RFC 2889 §5.6.3.1)"),
            None => self.should(true, "no learning frames before each trial (RFC 2544 §23 b)"),
            Some(wait) => {
                let text = format!(
                    "as little as {} s instead of 2 s behind learning frames (RFC 2544 §23 b)",
                    wait.as_secs_f64()
                );
                self.should(wait < LEARNING_WAIT, text);
            }
        }
    }

    /// The label, and how far its standard is met.
    pub(super) fn finish(self, facts: &LabelFacts) -> (StandardLabel, Compliance) {
        let compliance = match (self.must, self.departures.is_empty()) {
            (true, _) => Compliance::Departs,
            (false, true) => Compliance::Unconditional,
            (false, false) => Compliance::Conditional,
        };
        let name = if facts.simulated { format!("simulation of {}", self.name) } else { self.name };
        (StandardLabel { name, departures: self.departures }, compliance)
    }
}
