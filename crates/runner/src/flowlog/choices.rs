//! The values of the configuration that are one of a few words.

use flow::decode;
use serde::{de, Deserialize, Deserializer, Serialize};

/// Whether both directions of a conversation are one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Biflow {
    /// Unless records go to a collector: many read only the forward direction of a biflow.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

impl<'de> Deserialize<'de> for Biflow {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(BiflowText)
    }
}

struct BiflowText;

impl de::Visitor<'_> for BiflowText {
    type Value = Biflow;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("\"auto\", \"on\" or \"off\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Biflow, E> {
        match text {
            "auto" => Ok(Biflow::Auto),
            "on" => Ok(Biflow::On),
            "off" => Ok(Biflow::Off),
            _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }
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
