//! Links, and the paths that routes and labels take over them.

use std::net::IpAddr;

use packet::MacAddr;

/// Most labels that one path pushes.
pub const MAX_PUSH: usize = 4;

/// A link a router is attached to, written `PORT` or `PORT.VID`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link {
    /// The port, counted from 0 in the order the ports were given.
    pub port: usize,
    /// The VID; none for untagged frames.
    pub vlan: Option<u16>,
}

/// Where a path leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hop {
    /// `via ADDR [port LINK]`: to this gateway, whose MAC address ARP or ND finds; the link is that of the connected
    /// network which holds the address, unless named.
    Via {
        /// The gateway.
        addr: IpAddr,
        /// Its link.
        link: Option<Link>,
    },
    /// `port LINK mac MAC [from MAC]`: to this station, with nothing to resolve.
    Station {
        /// The link.
        link: Link,
        /// Its MAC address.
        mac: MacAddr,
        /// The source address of the frames; the interface's own by default.
        from: Option<MacAddr>,
    },
    /// `port LINK`: the destination itself is on this link.
    Connected {
        /// The link.
        link: Link,
    },
    /// `drop`: nowhere.
    Drop,
}

/// One way to a destination: a hop, MPLS labels to push (top first, at most [`MAX_PUSH`]), and a weight
/// among the other ways. Written `HOP [labels L[/L...]] [weight N]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    /// The hop.
    pub hop: Hop,
    /// Labels pushed, top first.
    pub labels: Vec<u32>,
    /// Weight, 1 to 255.
    pub weight: u8,
}
