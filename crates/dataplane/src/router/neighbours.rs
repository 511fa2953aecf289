//! The table of neighbours.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use packet::MacAddr;

use super::derived::is_link_local;

/// A neighbour: its address and the interface it is on.
pub(super) type Host = (IpAddr, u16);

/// How sure a neighbour's MAC address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NeighbourState {
    /// Configured.
    Static,
    /// It said so lately.
    Reachable,
    /// It said so too long ago, and will be asked.
    Stale,
    /// It is being asked.
    Probing,
    /// A gateway whose MAC address is not known.
    Incomplete,
}

impl NeighbourState {
    /// A short name, for tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Reachable => "reachable",
            Self::Stale => "stale",
            Self::Probing => "probing",
            Self::Incomplete => "incomplete",
        }
    }
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) fixed: Option<MacAddr>,
    pub(super) learned: Option<Learned>,
    pub(super) adjacency: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Learned {
    pub(super) mac: MacAddr,
    pub(super) seen: Duration,
    /// Asked since then, and last then.
    pub(super) asked: Option<(Duration, Duration)>,
}

impl Entry {
    fn mac(&self) -> Option<MacAddr> {
        self.fixed.or(self.learned.map(|learned| learned.mac))
    }
}

#[derive(Debug)]
pub(super) struct Neighbours {
    pub(super) table: BTreeMap<Host, Entry>,
    pub(super) learned: usize,
    /// When each unknown gateway is asked for next, and how long after that.
    pub(super) pending: BTreeMap<Host, (Duration, Duration)>,
    /// After how long a learned one is asked whether it is still there.
    pub(super) age: Duration,
}

impl Neighbours {
    pub(super) fn new(age: Duration) -> Self {
        Self { table: BTreeMap::new(), learned: 0, pending: BTreeMap::new(), age }
    }

    /// The MAC address of a neighbour.
    pub(super) fn mac(&self, host: Host) -> Option<MacAddr> {
        self.table.get(&host)?.mac()
    }

    /// Whether anything is known of a neighbour.
    pub(super) fn has(&self, host: Host) -> bool {
        self.table.contains_key(&host)
    }

    /// The MAC address that was configured.
    pub(super) fn fixed(&self, host: Host) -> Option<MacAddr> {
        self.table.get(&host)?.fixed
    }

    /// The adjacency of the neighbour with this address; of several the one on `interface`.
    pub(super) fn adjacency(&self, addr: IpAddr, interface: Option<u16>) -> Option<u32> {
        if is_link_local(addr) {
            return None;
        }
        let mut found = self.table.range((addr, 0)..=(addr, u16::MAX));
        let first = found.next()?;
        let best = std::iter::once(first).chain(found).find(|((_, number), _)| Some(*number) == interface);
        Some(best.unwrap_or(first).1.adjacency)
    }
}
