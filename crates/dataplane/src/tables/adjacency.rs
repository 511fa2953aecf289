//! What next hop numbers stand for.

use packet::MacAddr;

use crate::DropReason;

/// Set in a next hop number that is the index of a [`Group`] of equal-cost paths.
pub const GROUP: u32 = 1 << 30;

/// Adjacency 0: no route.
pub const ADJ_NO_ROUTE: u32 = 0;
/// Adjacency 1: a destination that must not be routed (RFC 1812 5.3.7).
pub const ADJ_MARTIAN: u32 = 1;
/// Adjacency 2: one of the router's own addresses.
pub const ADJ_LOCAL: u32 = 2;

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
