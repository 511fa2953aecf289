//! `[traffic]` of a plan: addresses, headers, varied fields and directions of the frames.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::schema::text;

/// Which ports send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The first port sends, the second receives.
    #[default]
    OneWay,
    /// Both do both, each direction at the load (RFC 2544 §14).
    BothWays,
}

/// IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IpVersion {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

/// Transport header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum L4 {
    /// UDP.
    #[default]
    Udp,
    /// TCP.
    Tcp,
    /// None: the payload follows the IP header, whose protocol is 253 (RFC 3692 §2.1).
    None,
}

/// `[traffic]`: what is sent. The second direction swaps addresses and ports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Traffic {
    /// Which ports send.
    pub direction: Direction,
    /// Distinct 5-tuples per direction: source ports and then addresses, without a transport header addresses only.
    pub flows: u64,
    /// IP version.
    pub ip: IpVersion,
    /// Transport header.
    pub l4: L4,
    /// VLAN ids, outer first; at most two.
    pub vlan: Vec<u16>,
    /// MPLS labels, top first.
    pub mpls: Vec<u32>,
    /// MPLS labels of the second direction; empty: the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mpls_back: Vec<u32>,
    /// Source MAC of the first port and, when there are two, of the second; empty: the ports' own.
    pub src_mac: Vec<String>,
    /// Destination MAC of frames sent by the first port and by the second; empty: the other port's.
    pub dst_mac: Vec<String>,
    /// Source address of the first flow; absent: 198.18.0.2 or 2001:2:0:1::2.
    #[serde(deserialize_with = "text::opt_ip::deserialize", skip_serializing_if = "Option::is_none")]
    pub src_ip: Option<IpAddr>,
    /// Destination address of the first flow; absent: 198.19.0.2 or 2001:2:0:2::2.
    #[serde(deserialize_with = "text::opt_ip::deserialize", skip_serializing_if = "Option::is_none")]
    pub dst_ip: Option<IpAddr>,
    /// Source port of the first flow; not used without a transport header.
    pub src_port: u16,
    /// Destination port of the first flow (RFC 2544 C.2.6.4: echo); not used without a transport header.
    pub dst_port: u16,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// DSCP, 0 to 63.
    pub dscp: u8,
    /// Seed of everything random.
    pub seed: u64,
    /// Fields varied per frame, beside the flows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub field: Vec<FieldPlan>,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            direction: Direction::OneWay,
            flows: 1,
            ip: IpVersion::V4,
            l4: L4::Udp,
            vlan: Vec::new(),
            mpls: Vec::new(),
            mpls_back: Vec::new(),
            src_mac: Vec::new(),
            dst_mac: Vec::new(),
            src_ip: None,
            dst_ip: None,
            src_port: 49184,
            dst_port: 7,
            ttl: 64,
            dscp: 0,
            seed: 1,
            field: Vec::new(),
        }
    }
}

impl Traffic {
    /// Directions loaded.
    pub fn directions(&self) -> u32 {
        match self.direction {
            Direction::OneWay => 1,
            Direction::BothWays => 2,
        }
    }

    /// Source and destination address of the first flow, given or default: the benchmarking prefixes 198.18.0.0/15
    /// (RFC 2544 C.2.2) and 2001:2::/48 (RFC 5180 §8).
    pub fn addresses(&self) -> (IpAddr, IpAddr) {
        let (src, dst): (IpAddr, IpAddr) = match self.ip {
            IpVersion::V4 => (Ipv4Addr::new(198, 18, 0, 2).into(), Ipv4Addr::new(198, 19, 0, 2).into()),
            IpVersion::V6 => {
                (Ipv6Addr::new(0x2001, 2, 0, 1, 0, 0, 0, 2).into(), Ipv6Addr::new(0x2001, 2, 0, 2, 0, 0, 0, 2).into())
            }
        };
        (self.src_ip.unwrap_or(src), self.dst_ip.unwrap_or(dst))
    }
}

/// How a field varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldMode {
    /// `start`, `start + step`, ... `count` values, then again.
    Increment,
    /// One of `count` values from `start`.
    Random,
    /// Fixed bits and random ones: `mask`.
    Mask,
    /// `values` in turn.
    List,
}

/// `[[traffic.field]]`: one field varied per frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldPlan {
    /// `src_mac`, `dst_mac`, `src_ip`, `dst_ip`, `src_port`, `dst_port`, `vlan`, `mpls`, or `raw@OFFSET` (mask only).
    pub field: String,
    /// How it varies.
    pub mode: FieldMode,
    /// First value, a number or an address; absent: the field's own value in the first flow.
    #[serde(default, deserialize_with = "text::value::deserialize", skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Number of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Distance between values; absent: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// One character a bit, most significant first: `0`, `1`, or `X` for a random bit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<String>,
    /// The values of a list.
    #[serde(default, deserialize_with = "text::values::deserialize", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}
