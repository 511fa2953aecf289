//! Ports and interfaces: which frames are taken, and whose addresses are there.

use std::net::{Ipv4Addr, Ipv6Addr};

use packet::MacAddr;

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
