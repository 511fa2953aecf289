//! A label that is being built.

use std::time::Duration;

use super::facts::LabelFacts;
use crate::schema::outcome::{Compliance, StandardLabel};

/// Wait after learning frames (RFC 2544 §23 b).
const LEARNING_WAIT: Duration = Duration::from_secs(2);

/// The name of the label, and the departures found so far.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) name: String,
    departures: Vec<String>,
    /// Whether a MUST of the standard was not met.
    must: bool,
}

impl Draft {
    /// A label with this name. For a simulation, the first departure says so.
    pub(super) fn of(name: impl Into<String>, facts: &LabelFacts) -> Self {
        let mut draft = Self { name: name.into(), ..Self::default() };
        draft.must(facts.simulated, "simulated: no frame was sent and no device measured");
        draft
    }

    /// Adds a departure from a SHOULD of the standard, if `when` holds.
    pub(super) fn should(&mut self, when: bool, text: impl Into<String>) {
        if when {
            self.departures.push(text.into());
        }
    }

    /// Adds a departure from a MUST of the standard, or from the definition of its figure, if `when` holds.
    pub(super) fn must(&mut self, when: bool, text: impl Into<String>) {
        self.must |= when;
        self.should(when, text);
    }

    /// Adds a departure if the trials are shorter than the standard asks for.
    pub(super) fn shorter(&mut self, given: Duration, least_s: u64, clause: &str) {
        let text = format!("trials of {} s instead of {least_s} s ({clause})", given.as_secs_f64());
        self.should(given.as_secs_f64() < least_s as f64, text);
    }

    /// Phases a and b, which come before the frames of a trial (RFC 2544 §23). `of_switches`: as RFC 2889 has them.
    pub(super) fn prepared(&mut self, facts: &LabelFacts, of_switches: bool) {
        if facts.simulated {
            return;
        }
        let text = "no routing update to a router before each trial (RFC 2544 §23 a)";
        self.should(!of_switches, text);
        match facts.learning_wait {
            None if of_switches => self.must(true, "no learning frames before each trial (RFC 2889 §5.6.3.1)"),
            None => self.should(true, "no learning frames before each trial (RFC 2544 §23 b)"),
            Some(wait) => {
                let text = format!(
                    "{} s instead of 2 s of waiting after learning frames (RFC 2544 §23 b)",
                    wait.as_secs_f64()
                );
                self.should(wait < LEARNING_WAIT, text);
            }
        }
    }

    /// The label, and how far the standard is met.
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
