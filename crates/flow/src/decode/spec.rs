//! How frames are read.

use serde::{Deserialize, Serialize};

use crate::Distinguish;

/// Tunnels looked into, one in the other: VXLAN and Ethernet pseudowires.
pub const TUNNELS: u8 = 3;

/// UDP port of VXLAN (RFC 7348 5).
pub const VXLAN_PORT: u16 = 4789;

/// What is looked at of a packet in a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The tunnel.
    Outer,
    /// What is in it.
    Inner,
}

/// How frames are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DecodeSpec {
    /// What of MPLS; the inner packet unless told. Outer: not IP.
    pub mpls: Layer,
    /// What of VXLAN; the outer packet unless told.
    pub vxlan: Layer,
    /// UDP destination port of VXLAN.
    pub vxlan_port: u16,
    /// What besides the 5-tuple tells flows apart. The outermost in the frame counts; a VNI also when the outer packet is
    /// looked at.
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
