//! The steps that bring a lab up, and the questions that show that it is up.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{line::CommandLine, virtio};

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
    /// What to do when the answer stays wrong; none: the logs say it.
    pub remedy: String,
    /// The programs whose logs say why it is wrong.
    #[serde(default)]
    pub logs: Vec<String>,
    /// It is about the tester's ports, which are up only while the tester measures.
    pub only_while_measured: bool,
    /// Commands that make the other side try again, once, when the answer is still wrong after a while; none: it tries by itself.
    #[serde(default)]
    pub again: Vec<CommandLine>,
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
    /// It prints (as `ovs-vsctl list Interface` does) that these ports are connected, each with so many rings of this size, by
    /// virtio 1, and with several queues where there are more than two rings.
    Rings {
        /// The ports.
        ports: Vec<String>,
        /// Rings of each.
        rings: u32,
        /// Descriptors of each ring.
        size: u32,
    },
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
                Self::Rings { .. } => self.lacks(printed).is_empty(),
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

    /// What an answer lacks, in words, for those that list several things: each port that is not as it should be.
    pub fn lacks(&self, printed: &str) -> Vec<String> {
        let Self::Rings { ports, rings, size } = self else { return Vec::new() };
        let found = virtio::parse(printed);
        let wrong = |name: &String| {
            let Some(port) = found.iter().find(|port| port.name == *name) else {
                return Some(format!("{name} is not connected"));
            };
            if port.rings.len() != *rings as usize || port.rings.iter().any(|ring| ring != size) {
                return Some(format!("{name} has rings of {:?}", port.rings));
            }
            let bits = [(virtio::VERSION_1, true), (virtio::MQ, *rings > 2)];
            let missing = bits.iter().find(|(bit, wanted)| *wanted && !port.has(*bit));
            missing.map(|(bit, _)| format!("{name} lacks feature bit {bit}"))
        };
        ports.iter().filter_map(wrong).collect()
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
    fn a_port_with_other_rings_is_not_what_was_asked_for() {
        let printed = |features: &str, size: u32, state: &str| {
            format!(
                "name : p\nstatus : {{features=\"{features}\", num_of_vrings=\"4\", status={state}, vring_0_size=\"1024\", \
                 vring_1_size=\"1024\", vring_2_size=\"1024\", vring_3_size=\"{size}\"}}"
            )
        };
        let rings = |rings: u32, port: &str| Want::Rings { ports: vec![port.to_owned()], rings, size: 1024 };
        let right = printed("0x0000000100400000", 1024, "connected");
        assert!(rings(4, "p").is_met(true, &right));
        assert!(!rings(4, "p").is_met(false, &right) && !rings(2, "p").is_met(true, &right));
        assert!(!rings(4, "q").is_met(true, &right));
        for wrong in [
            printed("0x0000000100400000", 256, "connected"),
            printed("0x0000000100000000", 1024, "connected"),
            printed("0x0000000000400000", 1024, "connected"),
            printed("0x0000000100400000", 1024, "disconnected"),
        ] {
            assert!(!rings(4, "p").is_met(true, &wrong), "{wrong}");
            assert_eq!(rings(4, "p").lacks(&wrong).len(), 1, "{wrong}");
        }
        let two = printed("0x0000000100000000", 1024, "connected").replace("\"4\"", "\"2\"");
        assert!(rings(2, "p").is_met(true, &two), "one queue needs no MQ");
    }

    #[test]
    fn an_answer_is_compared_without_blanks_and_quotes() {
        let prints = Want::Prints("true".into());
        assert!(prints.is_met(true, "\"true\"\n") && !prints.is_met(false, "true") && !prints.is_met(true, "truer"));
        let holds = Want::Holds(vec!["isolated : true".into(), "port: dpdk0".into()]);
        assert!(holds.is_met(true, "  isolated: true\n  port:  dpdk0  queue-id: 0"));
        let times = Want::Times(2, "forwarding".into());
        assert!(times.is_met(true, "state: forwarding\nstate: forwarding"));
        assert!(!times.is_met(true, "state: forwarding") && !times.is_met(true, "forwarding forwarding forwarding"));
        assert!(
            !holds.is_met(true, "isolated: true") && Want::Success.is_met(true, "") && !Want::Success.is_met(false, "")
        );
    }
}
