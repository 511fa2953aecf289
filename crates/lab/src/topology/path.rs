//! The way of a frame through a topology.

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
pub struct Passage {
    /// The port.
    pub end: End,
    /// Into its node or out of it.
    pub way: Way,
}

impl Topology {
    /// The port by which a frame leaves a node that it entered by `end`; `None` if the node does not forward it.
    fn leaves_by(&self, end: &End) -> Option<End> {
        if let Some(switch) = self.switch_named(&end.node) {
            let to = switch.flows.iter().find_map(|&[a, b]| match end.port {
                port if port == a => Some(b),
                port if port == b => Some(a),
                _ => None,
            });
            return to.map(|port| End::new(&end.node, port));
        }
        // A guest, or the kernel: two ports, in by one and out by the other.
        (end.port < 2).then(|| End::new(&end.node, 1 - end.port))
    }

    /// The way of the frames that the tester sends by `port`, from the tester to the tester.
    ///
    /// # Errors
    ///
    /// In a sentence: where the way ends.
    pub fn path(&self, port: u32) -> Result<Vec<Passage>, String> {
        let mut path = Vec::new();
        let mut from = End::new(TESTER, port);
        // Each port is passed once in, once out: links and flows join ports in pairs.
        for _ in 0..=self.link.len() * 2 {
            let Some(to) = self.peer(&from).cloned() else {
                return Err(format!("{from}: has no link, so frames from {TESTER}:{port} end there"));
            };
            path.push(Passage { end: from, way: Way::Out });
            path.push(Passage { end: to.clone(), way: Way::In });
            if to.is_tester() {
                return Ok(path);
            }
            let Some(next) = self.leaves_by(&to) else {
                return Err(format!("{to}: nothing forwards the frames from {TESTER}:{port} that come in there"));
            };
            from = next;
        }
        Err(format!("frames from {TESTER}:{port} never come back: a loop"))
    }
}
