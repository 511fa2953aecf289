//! The snapshot of all tables.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use packet::MacAddr;

use super::{
    adjacency::{Adjacency, Group, Next, ADJ_NO_ROUTE, GROUP},
    interface::{Interface, MacFilter, PortTable},
    labels::Labels,
    overlay::Overlay,
};
use crate::{
    fib::{Fib4, Fib6, Lookup4, Lookup6},
    DropReason,
};

/// A snapshot of all tables.
#[derive(Debug)]
pub struct Tables {
    /// IPv4 destinations.
    pub fib4: Arc<dyn Lookup4>,
    /// IPv6 destinations.
    pub fib6: Arc<dyn Lookup6>,
    /// What next hop numbers stand for.
    pub adjacencies: Vec<Adjacency>,
    /// Sets of equal-cost paths.
    pub groups: Vec<Group>,
    /// By port.
    pub ports: Vec<PortTable>,
    /// By interface number.
    pub interfaces: Vec<Interface>,
    /// MPLS labels.
    pub labels: Arc<Labels>,
    /// VXLAN networks and tunnels.
    pub overlay: Arc<Overlay>,
    /// Neighbours to ask for, once each time `probe_round` changes.
    pub probes: Vec<Probe>,
    /// Counts the times that `probes` was made.
    pub probe_round: u64,
    /// Most ICMP errors an lcore sends in a second (RFC 1812 4.3.2.8).
    pub icmp_errors_per_second: u32,
}

/// A neighbour to be asked for: a gateway not yet resolved, or an entry grown old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// On this interface.
    pub interface: u16,
    /// Its address.
    pub addr: IpAddr,
}

impl Tables {
    /// Tables without a route, for ports with these MAC addresses: one interface a port, nothing configured. Adjacencies
    /// 0 to 2 are there.
    pub fn bare(macs: &[MacAddr]) -> Self {
        let interface = |(port, &mac): (usize, &MacAddr)| Interface {
            port: port as u16,
            vlan: None,
            mac,
            mtu: 1500,
            ip4: Vec::new(),
            ip6: Vec::new(),
        };
        let port = |port: usize| PortTable { macs: MacFilter::UNICAST, untagged: port as u16, vlans: None };
        Self {
            fib4: Arc::new(Fib4::new(&[])),
            fib6: Arc::new(Fib6::new(&[])),
            adjacencies: vec![
                Adjacency::drop(DropReason::NoRoute),
                Adjacency::drop(DropReason::MartianDestination),
                Adjacency::LOCAL,
            ],
            groups: Vec::new(),
            ports: (0..macs.len()).map(port).collect(),
            interfaces: macs.iter().enumerate().map(interface).collect(),
            labels: Arc::default(),
            overlay: Arc::default(),
            probes: Vec::new(),
            probe_round: 0,
            icmp_errors_per_second: 1000,
        }
    }

    /// The number of the adjacency an IPv4 destination leads to; `hash` picks among equal-cost paths.
    pub fn route4(&self, dst: Ipv4Addr, hash: u32) -> u32 {
        let mut hop = [0];
        self.fib4.lookup(&[dst.into()], &mut hop);
        self.pick(hop[0] as u32, hash)
    }

    /// The number of the adjacency an IPv6 destination leads to; `hash` picks among equal-cost paths.
    pub fn route6(&self, dst: Ipv6Addr, hash: u32) -> u32 {
        let mut hop = [0];
        self.fib6.lookup(&[dst.octets()], &mut hop);
        self.pick(hop[0] as u32, hash)
    }

    /// The adjacency number of a next hop number.
    #[inline]
    pub fn pick(&self, hop: u32, hash: u32) -> u32 {
        if hop & GROUP == 0 {
            return hop;
        }
        self.groups.get((hop & !GROUP) as usize).map_or(ADJ_NO_ROUTE, |group| group.pick(hash))
    }

    /// Tunnel ends that are on a link of the router's own and whose MAC address is not known. Frames to them are dropped
    /// until it is, so the control side asks for it. (It asks for the gateways of the other tunnel ends anyway.)
    pub fn unresolved_tunnels(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let glean = |&(next_hop, _): &(u32, IpAddr)| {
            let adjacency = self.adjacencies.get(self.pick(next_hop, 0) as usize);
            adjacency.is_some_and(|a| a.next == Next::Glean)
        };
        self.overlay.tunnel_ends().filter(glean).map(|(_, addr)| addr)
    }
}
