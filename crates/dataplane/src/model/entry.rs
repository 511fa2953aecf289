//! Addresses, routes, neighbours and stations, as they are configured.

use std::net::IpAddr;

use packet::MacAddr;

use super::{
    overlay::StaticEntry,
    path::{Link, Path},
    prefix::Prefix,
};

/// One of the router's own addresses, written `LINK ADDR/LEN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// The link it is on.
    pub link: Link,
    /// The address.
    pub addr: IpAddr,
    /// Length of the prefix that is on the link.
    pub len: u8,
}

/// A route, written `PREFIX PATH [PATH...]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Route {
    /// Destinations covered.
    pub prefix: Prefix,
    /// The ways there, one at least: a frame's flow hash picks one.
    pub paths: Vec<Path>,
}

/// A neighbour whose MAC address is given, written `LINK ADDR MAC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Neighbour {
    /// The link it is on.
    pub link: Link,
    /// Its address.
    pub addr: IpAddr,
    /// Its MAC address.
    pub mac: MacAddr,
}

/// A station that the bridge need not learn, written `MAC LINK`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BridgeEntry {
    /// The station.
    pub mac: MacAddr,
    /// Where it is.
    pub link: Link,
}

/// A forwarding entry for a MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fdb {
    /// Behind a VXLAN tunnel.
    Vxlan(StaticEntry),
    /// Behind a port of the bridge.
    Bridge(BridgeEntry),
}
