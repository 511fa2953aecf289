//! What the routing functions read: one snapshot of everything the control side has decided.
//!
//! Made by [`router`](crate::router), read by `l3`, `mpls` and `vxlan` through a [`Reader`](crate::Reader). The FIB maps
//! a destination to the number of a next hop: an index into [`Tables::adjacencies`], or, with [`GROUP`] set, into
//! [`Tables::groups`].

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use packet::MacAddr;

use crate::{
    fib::{Fib4, Fib6, Lookup4, Lookup6},
    mpls::Labels,
    vxlan::Overlay,
    DropReason,
};

/// Set in a next hop number that is the index of a [`Group`] of equal-cost paths.
pub const GROUP: u32 = 1 << 30;

/// Adjacency 0: no route.
pub const ADJ_NO_ROUTE: u32 = 0;
/// Adjacency 1: a destination that must not be routed (RFC 1812 5.3.7).
pub const ADJ_MARTIAN: u32 = 1;
/// Adjacency 2: one of the router's own addresses.
pub const ADJ_LOCAL: u32 = 2;

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

/// What becomes of a frame with this next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It leaves by the adjacency's port with its addresses.
    Forward,
    /// It is dropped.
    Drop(DropReason),
    /// It is for the router itself.
    Local,
    /// Its destination is on the adjacency's link, but that host's MAC address is not known yet.
    Glean,
    /// It goes to a gateway whose MAC address is not known yet; the control side probes for it.
    Unresolved,
}

/// What happens to the VLAN tag of a frame that leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// It keeps the tag it came with, or none: on ports without VLAN interfaces.
    Keep,
    /// It leaves without.
    None,
    /// It leaves with this VID.
    Vid(u16),
}

/// What a next hop number stands for. 32 bytes, so that two share a cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Adjacency {
    /// Destination and source MAC address, as they stand in the frame.
    pub macs: [u8; 12],
    /// Egress port.
    pub port: u16,
    /// Egress interface.
    pub interface: u16,
    /// Largest IP packet, with MPLS labels, that the link takes, in bytes.
    pub mtu: u16,
    /// The tag.
    pub tag: Tag,
    /// What becomes of the frame.
    pub next: Next,
    /// MPLS labels to push: index into [`Labels::stacks`] plus one, or zero for none.
    pub push: u16,
}

impl Adjacency {
    /// One that drops.
    pub const fn drop(reason: DropReason) -> Self {
        Self { next: Next::Drop(reason), ..Self::EMPTY }
    }

    /// One for the router's own addresses.
    pub const LOCAL: Self = Self { next: Next::Local, ..Self::EMPTY };

    const EMPTY: Self = Self {
        macs: [0; 12],
        port: 0,
        interface: 0,
        mtu: 1500,
        tag: Tag::Keep,
        next: Next::Drop(DropReason::NoRoute),
        push: 0,
    };

    /// One that forwards.
    pub fn forward(port: u16, interface: u16, dst: MacAddr, src: MacAddr) -> Self {
        let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (dst.0, src.0);
        Self { macs: [a, b, c, d, e, f, g, h, i, j, k, l], port, interface, next: Next::Forward, ..Self::EMPTY }
    }
}

/// Equal-cost paths: a frame's flow hash picks one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Adjacency numbers, as many of each as its weight asks for; a power of two of them, at most 256.
    pub paths: Box<[u32]>,
}

impl Group {
    /// The adjacency for this hash.
    #[inline]
    pub fn pick(&self, hash: u32) -> u32 {
        let slot = hash as usize & self.paths.len().wrapping_sub(1);
        self.paths.get(slot).copied().unwrap_or(ADJ_NO_ROUTE)
    }
}

/// Which destination MAC addresses are taken: those where `first 8 bytes & mask == want`, little endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacFilter {
    mask: u64,
    want: u64,
}

impl MacFilter {
    /// Any unicast address.
    pub const UNICAST: Self = Self { mask: 1, want: 0 };

    /// Only this address.
    pub fn only(mac: MacAddr) -> Self {
        let [a, b, c, d, e, f] = mac.0;
        Self { mask: 0xffff_ffff_ffff, want: u64::from_le_bytes([a, b, c, d, e, f, 0, 0]) }
    }

    /// Whether a frame that begins like this is taken.
    #[inline(always)]
    pub fn takes(self, head: [u8; 8]) -> bool {
        u64::from_le_bytes(head) & self.mask == self.want
    }

    /// What the masked bits have to be.
    #[inline(always)]
    pub(crate) fn wanted(self) -> u64 {
        self.want
    }

    /// Whether frames that differ in these bits from what is wanted are taken all the same.
    #[inline(always)]
    pub(crate) fn same(self, differ: u64) -> bool {
        differ & self.mask == 0
    }
}

/// No interface.
pub const NO_INTERFACE: u16 = u16::MAX;

/// What is known of a port.
#[derive(Debug, Clone)]
pub struct PortTable {
    /// Which frames are taken.
    pub macs: MacFilter,
    /// Interface of untagged frames; every port has one.
    pub untagged: u16,
    /// Interface by VID, [`NO_INTERFACE`] where there is none. Without any VLAN interface on the port this is `None`:
    /// then any single tag is taken as if it were not there, and kept.
    pub vlans: Option<Box<[u16; 4096]>>,
}

/// A router's attachment to a link: a port, or one VLAN of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The port.
    pub port: u16,
    /// The VID; none for untagged frames.
    pub vlan: Option<u16>,
    /// The router's MAC address there.
    pub mac: MacAddr,
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// The router's IPv4 addresses with their prefix lengths.
    pub ip4: Vec<(Ipv4Addr, u8)>,
    /// The router's IPv6 addresses with their prefix lengths; an interface with any also has its link-local one.
    pub ip6: Vec<(Ipv6Addr, u8)>,
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
}
