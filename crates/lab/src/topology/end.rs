//! One end of a link: a port of a node.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The node that every topology has: Linerate's tester, with the ports 0 and 1.
pub const TESTER: &str = "tester";

/// Longest name of a node: a name of an interface is made of it.
const MAX_NAME: usize = 10;
/// What [`is_name`] takes.
pub(super) const NODE_RULE: &str = "1 to 10 lowercase letters, digits or `-`, a letter first";

/// Highest number of a port.
const MAX_PORT: u32 = 63;

/// A port of a node, written `NODE:PORT`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct End {
    /// The node.
    pub node: String,
    /// The number of the port: of the tester and of guests from 0, of switches from 1 as OpenFlow counts.
    pub port: u32,
}

impl End {
    /// A port of this node.
    pub fn new(node: &str, port: u32) -> Self {
        Self { node: node.to_owned(), port }
    }

    /// The name of a switch's port that is joined to this end, as the documents have them: `phy0`, `vm1p0`.
    pub fn port_name(&self) -> String {
        match self.is_tester() {
            true => format!("phy{}", self.port),
            false => format!("{}p{}", self.node, self.port),
        }
    }

    /// Whether it is a port of the tester.
    pub fn is_tester(&self) -> bool {
        self.node == TESTER
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.node, self.port)
    }
}

impl From<End> for String {
    fn from(end: End) -> Self {
        end.to_string()
    }
}

impl TryFrom<String> for End {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for End {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(':').and_then(|(node, port)| Some((node, port.parse::<u32>().ok()?)));
        match parts {
            Some((node, port)) if is_name(node) && port <= MAX_PORT => Ok(Self::new(node, port)),
            Some((node, _)) if !is_name(node) => Err(format!("{text:?}: the name of a node must be {NODE_RULE}")),
            _ => Err(format!("{text:?}: must be NODE:PORT, such as {TESTER}:0, with a port of 0 to {MAX_PORT}")),
        }
    }
}

/// Whether this can be the name of a node: a short word, since interfaces and files are named after it.
pub(super) fn is_name(text: &str) -> bool {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty()
        && text.len() <= MAX_NAME
        && text.chars().all(letters)
        && text.starts_with(|c: char| c.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_the_name_or_the_port() {
        let refused = |text: &str| text.parse::<End>().unwrap_err();
        let all = ["VM1:0", "vm_1:0", "a.b:0", "twelve-names:0", "vm1:64", "vm1"].map(refused);
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn an_end_is_a_node_and_a_port() {
        assert_eq!("vm1:0".parse(), Ok(End::new("vm1", 0)));
        assert_eq!(End::new("br0", 63).to_string(), "br0:63");
        assert_eq!(serde_json::to_string(&End::new("br0", 63)).unwrap(), "\"br0:63\"", "as files write it");
        assert!(End::new(TESTER, 1).is_tester() && !End::new("vm1", 1).is_tester());
        for wrong in
            ["", "vm1", "vm1:", ":0", "vm1:x", "vm1:64", "vm1:-1", "VM1:0", "1vm:0", "a-name-too-long:0", "v m:0"]
        {
            assert!(wrong.parse::<End>().is_err(), "{wrong}");
        }
    }
}
