//! The result of decoding a frame.

use crate::{
    packed::{Key4, Key6},
    PackedFacts,
};

/// The result of decoding a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// IPv4.
    Ip4(Packet4),
    /// IPv6.
    Ip6(Packet6),
    /// Not IP, or IP inside something that is not decoded.
    NotIp(NotIp),
    /// Marked as IP, but not readable as IP.
    Malformed,
}

/// What a frame without a decoded IP packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum NotIp {
    /// ARP.
    Arp,
    /// A length instead of an EtherType: LLC, such as STP and IS-IS.
    Llc,
    /// LLDP.
    Lldp,
    /// A slow protocol, such as LACP.
    Slow,
    /// PPPoE discovery, or a PPP protocol that is not IP (LCP, IPCP).
    Ppp,
    /// More than four VLAN tags.
    Tags,
    /// MPLS that is not decoded: more than 16 labels, or not IP below them, or none is asked for.
    Mpls,
    /// A tunnel that is decoded, but holds no IP packet: a keepalive, an echo, another protocol.
    Tunnel,
    /// Shorter than its Ethernet header and tags.
    Short,
    /// Any other EtherType.
    Other,
}

impl NotIp {
    /// Number of kinds.
    pub const KINDS: usize = 10;
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; Self::KINDS] = [
        Self::Arp,
        Self::Llc,
        Self::Lldp,
        Self::Slow,
        Self::Ppp,
        Self::Tags,
        Self::Mpls,
        Self::Tunnel,
        Self::Short,
        Self::Other,
    ];

    /// Its name in lists of counts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arp => "ARP",
            Self::Llc => "LLC",
            Self::Lldp => "LLDP",
            Self::Slow => "slow protocols",
            Self::Ppp => "PPP control",
            Self::Tags => "more than four tags",
            Self::Mpls => "MPLS",
            Self::Tunnel => "tunnel without IP",
            Self::Short => "too short",
            Self::Other => "other EtherTypes",
        }
    }
}

/// An IPv4 packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet4 {
    /// Its flow.
    pub key: Key4,
    /// What is counted of it.
    pub facts: PackedFacts,
}

/// An IPv6 packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet6 {
    /// Its flow.
    pub key: Key6,
    /// What is counted of it.
    pub facts: PackedFacts,
}
