//! VXLAN networks, their remote ends and stations, as they are configured or learned.

use std::net::IpAddr;

use packet::MacAddr;

use super::path::Link;

/// One VXLAN network, written `VNI local ADDR access LINK[,LINK...] [port UDP] [learn on|off]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The network identifier, 0 to 2^24 - 1.
    pub vni: u32,
    /// Our tunnel address, one of the router's own.
    pub local: IpAddr,
    /// Links whose frames belong to the network.
    pub access: Vec<Link>,
    /// UDP port of the tunnels; 4789 by default.
    pub udp_port: u16,
    /// Whether MAC addresses are learned from tunnels and links. On by default.
    pub learn: bool,
}

/// A remote end that unknown and broadcast frames of a network are copied to, written `VNI ADDR`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Remote {
    /// The network.
    pub vni: u32,
    /// The tunnel end.
    pub addr: IpAddr,
}

/// A MAC address that is known to be behind a tunnel, written `VNI MAC ADDR`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticEntry {
    /// The network.
    pub vni: u32,
    /// The station.
    pub mac: MacAddr,
    /// The tunnel end.
    pub addr: IpAddr,
}

/// Everything that was configured or learned of the overlay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OverlayConfig {
    /// The networks, by VNI.
    pub networks: Vec<Network>,
    /// Their flood lists.
    pub remotes: Vec<Remote>,
    /// Static stations.
    pub entries: Vec<StaticEntry>,
    /// Tunnel ends that were learned from frames they sent.
    pub learned: Vec<Remote>,
}
