//! The way of frames through a topology.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{End, Topology, TESTER};

/// Whether a frame enters a node or leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Into the node.
    In,
    /// Out of the node.
    Out,
}

/// A frame passes a port of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// The port.
    pub end: End,
    /// Into its node or out of it.
    pub way: Way,
}

/// One place of the way: every frame passes exactly one of its ports. More than one where a switch spreads frames over
/// several ways; a shorter one of these waits, at the port where it comes back, until the others are as far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// The ports.
    pub ports: Vec<Passed>,
    /// The way through those that were passed last.
    pub way: Way,
}

impl fmt::Display for Passage {
    /// `br0:3`, or `br0:3+br0:5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, port) in self.ports.iter().enumerate() {
            write!(f, "{}{}", if n == 0 { "" } else { "+" }, port.end)?;
        }
        Ok(())
    }
}

/// Where frames go that came into a node.
enum Next {
    /// Nowhere.
    Ends,
    /// Out by this port: they are all that leave there.
    By(End),
    /// Out by one of these.
    OneOf(Vec<End>),
    /// Out by this port, together with those that come in by others.
    Joined(End),
}

impl Topology {
    /// Where frames go that entered a node by `end`.
    fn next(&self, end: &End) -> Next {
        let at = |port: u32| End::new(&end.node, port);
        let Some(switch) = self.switch_named(&end.node) else {
            // A guest, or the kernel: two ports, in by one and out by the other.
            return if end.port < 2 { Next::By(at(1 - end.port)) } else { Next::Ends };
        };
        for &[a, b] in &switch.flows {
            match end.port {
                port if port == a => return Next::By(at(b)),
                port if port == b => return Next::By(at(a)),
                _ => {}
            }
        }
        for spread in &switch.spread {
            if spread.port == end.port {
                return Next::OneOf(spread.over.iter().map(|&port| at(port)).collect());
            }
            if spread.over.contains(&end.port) {
                return Next::Joined(at(spread.port));
            }
        }
        Next::Ends
    }

    /// The way of the frames that the tester sends by `port`, from the tester to the tester.
    ///
    /// # Errors
    ///
    /// In a sentence: where the way ends.
    pub fn path(&self, port: u32) -> Result<Vec<Passage>, String> {
        let mut ports = vec![Passed { end: End::new(TESTER, port), way: Way::Out }];
        let mut path = vec![Passage { ports: ports.clone(), way: Way::Out }];
        // Each port is passed at most once in and once out, and every step passes one at least.
        for _ in 0..=self.link.len() * 4 {
            let way;
            (ports, way) = self.step(ports, port)?;
            path.push(Passage { ports: ports.clone(), way });
            match ports.as_slice() {
                [last] if last.end.is_tester() => return Ok(path),
                all if all.iter().all(|passed| passed.end.is_tester()) => {
                    return Err(format!("frames from {TESTER}:{port} come back by both ports of the {TESTER}"));
                }
                _ => {}
            }
        }
        Err(format!("frames from {TESTER}:{port} never come back: a loop"))
    }

    /// All frames one port further: along their cables, or through their nodes. Those that join others wait until nothing
    /// else can move.
    fn step(&self, ports: Vec<Passed>, from: u32) -> Result<(Vec<Passed>, Way), String> {
        let waits = |passed: &Passed| match passed.way {
            Way::Out => false,
            Way::In => passed.end.is_tester() || matches!(self.next(&passed.end), Next::Joined(_)),
        };
        let all_wait = ports.iter().all(waits);
        let (mut moved, mut way) = (Vec::new(), Way::In);
        for passed in ports {
            let stays = passed.end.is_tester() && passed.way == Way::In || (!all_wait && waits(&passed));
            let next = match passed.way {
                _ if stays => vec![passed],
                Way::Out => match self.peer(&passed.end) {
                    Some(to) => vec![Passed { end: to.clone(), way: Way::In }],
                    None => {
                        return Err(format!("{}: has no link, so frames from {TESTER}:{from} end there", passed.end))
                    }
                },
                Way::In => {
                    let ends = match self.next(&passed.end) {
                        Next::By(end) | Next::Joined(end) => vec![end],
                        Next::OneOf(ends) => ends,
                        Next::Ends => {
                            return Err(format!(
                                "{}: nothing forwards the frames from {TESTER}:{from} that come in there",
                                passed.end
                            ));
                        }
                    };
                    way = Way::Out;
                    ends.into_iter().map(|end| Passed { end, way: Way::Out }).collect()
                }
            };
            for passed in next {
                if !moved.contains(&passed) {
                    moved.push(passed);
                }
            }
        }
        Ok((moved, way))
    }
}
