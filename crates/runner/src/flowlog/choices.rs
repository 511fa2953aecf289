//! The values of the configuration that are one of a few words.

use flow::decode;
use serde::{Deserialize, Serialize};

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnOff {
    /// On.
    On,
    /// Off.
    Off,
}

/// Which headers of an encapsulated packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// Those inside.
    Inner,
    /// Those outside.
    Outer,
}

/// What distinguishes flows besides their 5-tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distinguish {
    /// Nothing else.
    None,
    /// The outer VLAN identifier.
    Vlan,
    /// The VXLAN network identifier.
    Vni,
    /// The top MPLS label.
    Label,
}

impl From<Layer> for decode::Layer {
    fn from(layer: Layer) -> Self {
        match layer {
            Layer::Inner => Self::Inner,
            Layer::Outer => Self::Outer,
        }
    }
}

impl From<Distinguish> for flow::Distinguish {
    fn from(by: Distinguish) -> Self {
        match by {
            Distinguish::None => Self::None,
            Distinguish::Vlan => Self::Vlan,
            Distinguish::Vni => Self::Vni,
            Distinguish::Label => Self::Label,
        }
    }
}
