//! How frames are read.

use serde::{Deserialize, Serialize};

use crate::{Distinguish, Sampling};

/// Depth to which nested tunnels are decoded, Ethernet pseudowires among them.
pub const TUNNELS: u8 = 3;

/// UDP port of VXLAN (RFC 7348 5).
pub const VXLAN_PORT: u16 = 4789;
/// UDP port of GTP-U (3GPP TS 29.281 4.4.2).
pub const GTPU_PORT: u16 = 2152;

/// Which packet of a tunnel is the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The outer one.
    Outer,
    /// The inner one.
    Inner,
}

/// How frames are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DecodeSpec {
    /// For MPLS. Default: the inner packet; with outer, MPLS is not IP.
    pub mpls: Layer,
    /// For VXLAN. Default: the outer packet.
    pub vxlan: Layer,
    /// UDP destination port of VXLAN.
    pub vxlan_port: u16,
    /// For GRE. Default: the outer packet.
    pub gre: Layer,
    /// For IPv4 and IPv6 directly inside IP. Default: the outer packet.
    pub ipip: Layer,
    /// For GTP-U. Default: the outer packet.
    pub gtpu: Layer,
    /// What identifies a flow besides the 5-tuple. The outermost identifier counts. A VNI also counts when the outer packet
    /// is the key.
    pub distinguish: Distinguish,
    /// Which frames are counted in flows; none: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// Whether both directions are one flow, a biflow (RFC 5103).
    pub biflow: bool,
    /// Whether both directions of a biflow come by one port, instead of by the two of a pair.
    pub ports_apart: bool,
}

impl Default for DecodeSpec {
    fn default() -> Self {
        Self {
            mpls: Layer::Inner,
            vxlan: Layer::Outer,
            vxlan_port: VXLAN_PORT,
            gre: Layer::Outer,
            ipip: Layer::Outer,
            gtpu: Layer::Outer,
            distinguish: Distinguish::None,
            sampling: None,
            biflow: false,
            ports_apart: false,
        }
    }
}
