//! Why frames are dropped: the reasons and their counters.

use std::ops::Index;

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $help:literal;)*) => {
        /// Why a frame was not forwarded. The discriminant is the index of its counter.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum DropReason {
            $(#[doc = $help] $variant,)*
        }

        impl DropReason {
            /// Every reason, in the order of the counters.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// A short fixed name, for tables and JSON keys.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// One line that says what happened to the frame.
            pub const fn describe(self) -> &'static str {
                match self { $(Self::$variant => $help,)* }
            }
        }
    };
}

reasons! {
    Runt = "runt", "Shorter than the headers it claims to have.";
    LinkGroup = "link-group", "Sent to a link-layer broadcast or multicast address, which a router must not forward (RFC 1812 5.3.4).";
    NotOurMac = "not-our-mac", "Sent to another station's MAC address.";
    NotIp = "not-ip", "EtherType neither IPv4 nor IPv6, untagged or behind one VLAN tag.";
    Ip4Header = "ip4-header", "IPv4 with a wrong version or a header length below 20 bytes (RFC 1812 5.2.2).";
    Ip4Length = "ip4-length", "IPv4 total length below its header length or beyond the frame (RFC 1812 5.2.2).";
    Ip4Checksum = "ip4-checksum", "IPv4 header checksum wrong (RFC 1812 5.2.2).";
    Ip4Ttl = "ip4-ttl", "IPv4 time to live used up (RFC 1812 5.3.1).";
    Ip6Header = "ip6-header", "IPv6 with a wrong version (RFC 8200 3).";
    Ip6Length = "ip6-length", "IPv6 payload length beyond the frame (RFC 8200 3).";
    Ip6HopLimit = "ip6-hop-limit", "IPv6 hop limit used up (RFC 8200 3).";
    MartianSource = "martian-source", "Source address that no host can have, or that must not leave its link (RFC 1812 5.3.7, RFC 4291 2.5).";
    MartianDestination = "martian-destination", "Destination that must not be routed: this network, loopback, link-local, multicast, reserved.";
    NoRoute = "no-route", "No prefix in the FIB covers the destination.";
    BlackHole = "black-hole", "The route says to drop.";
    NoNeighbour = "no-neighbour", "The next hop's MAC address did not become known in time, or too many frames were waiting for one.";
    Mtu = "mtu", "Longer than the egress link takes.";
    VlanUnknown = "vlan-unknown", "Tagged with a VID that no interface of its port has, or tagged twice.";
    NotListening = "not-listening", "To one of our own addresses, for a protocol or port that nothing here answers.";
    Arp = "arp", "ARP that is malformed, or asks for an address that is not ours (RFC 826).";
    Nd = "nd", "Neighbour discovery that is malformed or not from this link (RFC 4861 7.1), or asks for an address that is not ours.";
    Icmp = "icmp", "ICMP to ourselves that is malformed, has a wrong checksum, or is of a type that gets no answer.";
    MplsNoLabel = "mpls-no-label", "The label table has no such label.";
    MplsReserved = "mpls-reserved", "A reserved label other than explicit null, or implicit null, which never stands in a frame (RFC 3032 2.1).";
    MplsTtl = "mpls-ttl", "MPLS time to live used up (RFC 3443).";
    MplsStack = "mpls-stack", "The label stack does not end within the frame, or holds more labels than are looked at.";
    MplsPayload = "mpls-payload", "What is below the last label is not what the label's entry forwards.";
    BridgeReserved = "bridge-reserved", "To a reserved group address (01:80:c2:00:00:00 to 0f), which a bridge must not forward (IEEE 802.1Q 8.6.3).";
    BridgeSource = "bridge-source", "From a group address, which no station has.";
    SamePort = "same-port", "Its destination is where it came from.";
    NoMember = "no-member", "Nobody else in its bridge or network to flood it to.";
    NoBuffer = "no-buffer", "No buffer for a copy or for headers in front of it.";
    VxlanHeader = "vxlan-header", "VXLAN too short or without the I flag (RFC 7348 5).";
    VxlanVni = "vxlan-vni", "Of a VXLAN network that is not configured here (RFC 7348 4).";
    VxlanOuter = "vxlan-outer", "VXLAN with a bad outer UDP length or checksum.";
    VxlanRemote = "vxlan-remote", "VXLAN from a tunnel end that is not known, where learning is off.";
    VxlanMtu = "vxlan-mtu", "With its outer headers longer than the link to the tunnel's other end takes.";
    VxlanNoRoute = "vxlan-no-route", "No route to the tunnel's other end.";
    Logged = "logged", "Counted by the flow logger on a port that has no other to pass it to.";
    NoPort = "no-port", "The egress port is not there.";
    TxFull = "tx-full", "The egress port's transmit queue stayed full.";
    Policed = "policed", "Over the rate of the `impair` policer.";
    Lost = "impair-loss", "Lost on purpose by `impair`.";
    HoldFull = "hold-full", "The hold queue of `impair` was full.";
}

const REASONS: usize = DropReason::ALL.len();

/// One counter of frames for each [`DropReason`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropCounters([u64; REASONS]);

impl Default for DropCounters {
    fn default() -> Self {
        Self([0; REASONS])
    }
}

impl DropCounters {
    /// Counts `n` frames dropped for this reason.
    #[inline]
    pub fn add(&mut self, reason: DropReason, n: usize) {
        self.0[reason as usize] += n as u64;
    }

    /// All frames dropped, whatever the reason.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Each reason with its count, in fixed order, zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().copied().zip(self.0)
    }

    /// What was counted after `earlier` was taken.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut diff = self.clone();
        for (count, before) in diff.0.iter_mut().zip(earlier.0) {
            *count = count.saturating_sub(before);
        }
        diff
    }

    pub(crate) fn from_counts(counts: impl Iterator<Item = u64>) -> Self {
        let mut drops = Self::default();
        for (slot, count) in drops.0.iter_mut().zip(counts) {
            *slot = count;
        }
        drops
    }
}

impl Index<DropReason> for DropCounters {
    type Output = u64;
    fn index(&self, reason: DropReason) -> &u64 {
        &self.0[reason as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_its_counters_index() {
        for (i, &reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(reason as usize, i);
            assert!(!reason.name().contains(' ') && reason.describe().ends_with('.'));
        }
    }

    #[test]
    fn differences_name_what_moved() {
        let mut drops = DropCounters::default();
        drops.add(DropReason::NoRoute, 2);
        let before = drops.clone();
        drops.add(DropReason::NoRoute, 3);
        drops.add(DropReason::TxFull, 1);
        let moved: Vec<_> = drops.since(&before).iter().filter(|&(_, n)| n > 0).collect();
        assert_eq!(moved, [(DropReason::NoRoute, 3), (DropReason::TxFull, 1)]);
        assert_eq!(drops.total(), 6);
    }
}
