//! How frames are read.

use serde::{Deserialize, Serialize};

use crate::Distinguish;

/// Depth to which nested tunnels are decoded: VXLAN and Ethernet pseudowires.
pub const TUNNELS: u8 = 3;

/// UDP port of VXLAN (RFC 7348 5).
pub const VXLAN_PORT: u16 = 4789;

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
    /// What identifies a flow besides the 5-tuple. The outermost identifier counts. A VNI also counts when the outer packet
    /// is the key.
    pub distinguish: Distinguish,
    /// Whether both directions are one flow, a biflow (RFC 5103).
    pub biflow: bool,
}

impl Default for DecodeSpec {
    fn default() -> Self {
        Self {
            mpls: Layer::Inner,
            vxlan: Layer::Outer,
            vxlan_port: VXLAN_PORT,
            distinguish: Distinguish::None,
            biflow: false,
        }
    }
}
