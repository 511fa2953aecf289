//! What a router shows: rows of its tables, and how much it has of everything.

use std::{net::IpAddr, time::Duration};

use packet::MacAddr;

use super::{fibs::FibMemory, neighbours::NeighbourState};
use crate::{
    model::{Link, Path},
    tables::Adjacency,
    Prefix,
};

/// Why a prefix is in the forwarding table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// It is one of the router's own addresses.
    Local,
    /// A route was configured.
    Static,
    /// It is a neighbour's address.
    Neighbour,
    /// It is on a link.
    Connected,
    /// It is never routed.
    Martian,
}

impl Origin {
    /// A short name, for tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Static => "static",
            Self::Neighbour => "neighbour",
            Self::Connected => "connected",
            Self::Martian => "martian",
        }
    }
}

/// One prefix of the forwarding table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteRow<'a> {
    /// The prefix.
    pub prefix: Prefix,
    /// Why it is there.
    pub origin: Origin,
    /// Its paths, if it was configured.
    pub paths: &'a [Path],
    /// Where its frames go.
    pub hops: Vec<Adjacency>,
}

/// One neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeighbourRow {
    /// Its address.
    pub addr: IpAddr,
    /// Its MAC address, if known.
    pub mac: Option<MacAddr>,
    /// The link it is on.
    pub link: Link,
    /// How sure that is.
    pub state: NeighbourState,
    /// How long ago it was heard; only of one that was learned.
    pub age: Option<Duration>,
}

/// How much a router has of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// IPv4 prefixes in the forwarding table.
    pub ip4: usize,
    /// IPv6 prefixes in the forwarding table.
    pub ip6: usize,
    /// Memory of the IPv4 table, and the number of routes it was made for.
    pub fib4: (FibMemory, usize),
    /// Memory of the IPv6 table, and the number of routes it was made for.
    pub fib6: (FibMemory, usize),
    /// Routes configured.
    pub routes: usize,
    /// Neighbours with a MAC address.
    pub neighbours: usize,
    /// Labels.
    pub labels: usize,
    /// Numbers that adjacencies have or had.
    pub adjacencies: usize,
    /// Groups of equal-cost paths.
    pub groups: usize,
}
