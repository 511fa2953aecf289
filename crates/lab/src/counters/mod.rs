//! What the ports of a lab have counted.

mod kernel;
mod linerate;
mod openflow;
mod pmd;
mod testpmd;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{line::CommandLine, topology::End};

pub use self::{
    kernel::parse as kernel, linerate::parse as linerate, openflow::parse as openflow, pmd::parse as pmd,
    pmd::ThreadCounts, testpmd::parse as testpmd,
};

/// Where the counters of a node are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The node.
    pub node: String,
    /// Where.
    pub place: Place,
    /// The ports that are counted.
    pub ends: Vec<Counted>,
}

/// A port that is counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The port.
    pub end: End,
    /// Its name in its node, where that is not its number.
    pub name: String,
}

impl From<End> for Counted {
    fn from(end: End) -> Self {
        Self { end, name: String::new() }
    }
}

/// Where counters are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// `ovs-ofctl dump-ports`: read from the datapath when asked for, unlike the column `statistics` of the database, which
    /// is up to 5 s old.
    OpenFlow {
        /// The command.
        line: CommandLine,
    },
    /// `show port stats all` of the dpdk-testpmd of this name.
    Testpmd {
        /// The program's name in the lab.
        program: String,
    },
    /// The control socket of a `linerate forward`.
    Linerate {
        /// Its path.
        socket: String,
    },
    /// A virtual machine counts itself: the socket of its virtio-serial port.
    Guest {
        /// Its path.
        socket: String,
    },
    /// `ip -s -j link show`.
    Kernel {
        /// The command.
        line: CommandLine,
    },
}

/// What a port has counted since its start, frames. What cannot be read is `None`, never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PortCounts {
    /// Came in.
    pub rx: Option<u64>,
    /// Went out.
    pub tx: Option<u64>,
    /// Came to the port and were dropped there.
    pub rx_dropped: Option<u64>,
    /// Were to go out and were dropped by the port.
    pub tx_dropped: Option<u64>,
    /// Which run of which program counted: one that was started again counts from 0.
    #[serde(default)]
    pub run: Option<u64>,
}

impl PortCounts {
    /// What was counted from `before` to `self`. What was started again meanwhile is unknown.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        if self.run != before.run {
            return Self::default();
        }
        let minus = |now: Option<u64>, before: Option<u64>| now?.checked_sub(before?);
        Self {
            rx: minus(self.rx, before.rx),
            tx: minus(self.tx, before.tx),
            rx_dropped: minus(self.rx_dropped, before.rx_dropped),
            tx_dropped: minus(self.tx_dropped, before.tx_dropped),
            run: self.run,
        }
    }
}

/// Counters by port.
pub type Counts = BTreeMap<String, PortCounts>;

/// Counters of the switch's polling threads, by CPU.
pub type Threads = BTreeMap<u32, ThreadCounts>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_stays_unknown() {
        let before = PortCounts { rx: Some(5), tx: Some(9), rx_dropped: None, tx_dropped: Some(1), run: Some(1) };
        let now = PortCounts { rx: Some(7), tx: Some(3), rx_dropped: Some(4), tx_dropped: Some(1), run: Some(1) };
        let wanted = PortCounts { rx: Some(2), tx: None, rx_dropped: None, tx_dropped: Some(0), run: Some(1) };
        assert_eq!(now.since(&before), wanted);
        let again = PortCounts { run: Some(2), ..now };
        assert_eq!(again.since(&before), PortCounts::default(), "another run has counted from 0");
    }
}
