//! The steps that bring a lab up, and the questions that show that it is up.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::line::CommandLine;

/// One step. A lab runs it; a script prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A file with this text.
    Write {
        /// Its path.
        path: String,
        /// What is in it.
        text: String,
    },
    /// A command that must succeed.
    Run(CommandLine),
    /// A program that goes on running.
    Start(Program),
    /// A question, repeated until the answer is right.
    Await(Question),
}

/// A program that goes on running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its name in the lab: of its log, too.
    pub name: String,
    /// What starts it.
    pub line: CommandLine,
    /// CPUs that it may run on; none: all.
    pub cpus: Vec<u32>,
    /// Its standard input stays open: it ends with its input.
    pub wants_input: bool,
    /// A word to write to its input for a clean end.
    pub quits_by: Option<String>,
}

/// A question, its right answer, and how long that may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// What is shown by the right answer: `br0: all ports without error`.
    pub what: String,
    /// The command that asks.
    pub line: CommandLine,
    /// The right answer.
    pub want: Want,
    /// How long it may take.
    pub within: Duration,
    /// What to do when the answer stays wrong.
    pub remedy: String,
    /// It is about the tester's ports, which are up only while the tester measures.
    pub only_while_measured: bool,
}

/// The right answer of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Want {
    /// It succeeds.
    Success,
    /// It prints this, blanks and quotes aside.
    Prints(String),
    /// It prints each of these.
    Holds(Vec<String>),
    /// It prints this so many times.
    Times(usize, String),
    /// It prints (as `pmd-rxq-show` does) that these queues are polled by these threads, isolated, and no others of these
    /// ports: port, queue, CPU.
    Queues(Vec<(String, u32, u32)>),
}

impl Want {
    /// Whether this is the right answer.
    pub fn is_met(&self, succeeded: bool, printed: &str) -> bool {
        let bare = |text: &str| text.chars().filter(|c| !c.is_whitespace() && *c != '"').collect::<String>();
        succeeded
            && match self {
                Self::Success => true,
                Self::Prints(text) => bare(printed) == bare(text),
                Self::Holds(parts) => parts.iter().all(|part| bare(printed).contains(&bare(part))),
                Self::Times(times, part) => bare(printed).matches(&bare(part)).count() == *times,
                Self::Queues(wanted) => {
                    let mut found = crate::rxq::parse(printed);
                    found.retain(|queue| wanted.iter().any(|(port, ..)| *port == queue.port));
                    let wanted = |q: &crate::rxq::Queue| {
                        q.isolated
                            && wanted.iter().any(|w| (w.0.as_str(), w.1, w.2) == (q.port.as_str(), q.queue, q.cpu))
                    };
                    found.len() == self.queues() && found.iter().all(wanted)
                }
            }
    }

    fn queues(&self) -> usize {
        match self {
            Self::Queues(wanted) => wanted.len(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_compared_without_blanks_and_quotes() {
        let prints = Want::Prints("true".into());
        assert!(prints.is_met(true, "\"true\"\n") && !prints.is_met(false, "true") && !prints.is_met(true, "truer"));
        let holds = Want::Holds(vec!["isolated : true".into(), "port: dpdk0".into()]);
        assert!(holds.is_met(true, "  isolated: true\n  port:  dpdk0  queue-id: 0"));
        assert!(
            !holds.is_met(true, "isolated: true") && Want::Success.is_met(true, "") && !Want::Success.is_met(false, "")
        );
    }
}
