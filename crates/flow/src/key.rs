//! The key of a flow.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// Source and destination address of one IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Addresses {
    /// IPv4.
    V4 {
        /// Source.
        src: Ipv4Addr,
        /// Destination.
        dst: Ipv4Addr,
    },
    /// IPv6.
    V6 {
        /// Source.
        src: Ipv6Addr,
        /// Destination.
        dst: Ipv6Addr,
    },
}

impl Addresses {
    /// Source.
    pub fn src(&self) -> IpAddr {
        match *self {
            Self::V4 { src, .. } => src.into(),
            Self::V6 { src, .. } => src.into(),
        }
    }

    /// Destination.
    pub fn dst(&self) -> IpAddr {
        match *self {
            Self::V4 { dst, .. } => dst.into(),
            Self::V6 { dst, .. } => dst.into(),
        }
    }
}

/// What identifies a flow: the 5-tuple, the port it was seen on, and optionally its encapsulation.
///
/// The ports are zero for protocols without any and for fragments after the first. ICMP has its type and code in
/// `dport` (type * 256 + code), as IPFIX collectors expect, and zero in `sport`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// Addresses.
    #[serde(flatten)]
    pub addresses: Addresses,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// IP protocol number.
    pub protocol: u8,
    /// Where it was seen: the ingress port, or for a biflow the lower port of the pair.
    pub port: u8,
    /// VLAN identifier (the outermost), VNI or top label, as [`Distinguish`] selects, if the frame has one: 0 is a VLAN of
    /// its own, that of priority tags. At most 24 bits.
    pub scope: Option<u32>,
    /// Of a label, whether it is the bottom of its stack (RFC 3032 2.1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bottom: bool,
}

/// What identifies a flow besides the 5-tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distinguish {
    /// Nothing.
    #[default]
    None,
    /// The outermost VLAN identifier.
    Vlan,
    /// The VXLAN network identifier.
    Vni,
    /// The top MPLS label.
    Label,
}
