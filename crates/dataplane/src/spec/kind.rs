use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{model::Fdb, SpecError};

/// A network function by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FunctionKind {
    /// `null`: port to port, frames unchanged.
    #[default]
    Null,
    /// `pass`: the same; by the name of what it is for, ports in promiscuous mode.
    Pass,
    /// `l2`: layer-2 cross-connect.
    L2,
    /// `l2:macswap`: the same, MAC addresses swapped.
    L2MacSwap,
    /// `bridge`: a learning bridge.
    Bridge,
    /// `l3`: IPv4 and IPv6 routing.
    L3,
    /// `mpls`: label switching, and routing.
    Mpls,
    /// `vxlan`: a tunnel end point, and routing.
    Vxlan,
}

use FunctionKind::{Bridge, Mpls, Null, Pass, Vxlan, L2, L3};

const LEGAL: &str = "must be null, pass, l2, l2:macswap, bridge, l3, mpls or vxlan";

macro_rules! keys {
    ($($more:literal),*) => {
        &["addresses", "routes", "neighbours", "check_mac", "icmp_errors_per_second", "neighbour_age", $($more),*]
    };
}

impl FunctionKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [Null, Pass, L2, Self::L2MacSwap, Bridge, L3, Mpls, Vxlan];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Null => "null",
            Pass => "pass",
            L2 => "l2",
            Self::L2MacSwap => "l2:macswap",
            Bridge => "bridge",
            L3 => "l3",
            Mpls => "mpls",
            Vxlan => "vxlan",
        }
    }

    /// The keys of a [`PlaneSpec`](super::PlaneSpec) that it uses.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Null | Pass | L2 | Self::L2MacSwap => &[],
            Bridge => &["fdb", "bridge_ageing", "bridge_entries"],
            L3 => keys!(),
            Mpls => keys!("labels"),
            Vxlan => keys!("networks", "remotes", "fdb", "bridge_ageing", "bridge_entries"),
        }
    }

    /// Errors on a key that it does not use.
    pub(crate) fn uses(self, key: &str) -> Result<(), SpecError> {
        let keys = self.keys();
        if keys.contains(&key) {
            return Ok(());
        }
        let what = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
        Err(SpecError::new("key", key, format!("kind {self} does not use it; it uses {what}")))
    }

    /// Errors on an entry of the other kind of forwarding database.
    pub(crate) fn takes(self, fdb: &Fdb, what: impl FnOnce() -> String) -> Result<(), SpecError> {
        match (self, fdb) {
            (Bridge, Fdb::Vxlan(_)) => Err(SpecError::new(what(), fdb, "must be MAC LINK")),
            (Vxlan, Fdb::Bridge(_)) => Err(SpecError::new(what(), fdb, "must be VNI MAC ADDR")),
            _ => Ok(()),
        }
    }
}

impl FromStr for FunctionKind {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let named = Self::ALL.into_iter().find(|kind| kind.name() == text.trim());
        named.ok_or_else(|| SpecError::new("function", text, LEGAL))
    }
}

impl fmt::Display for FunctionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for FunctionKind {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FunctionKind {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A duration that may be left out, as text like `5m`.
pub(super) mod span {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::spec) fn serialize<S: Serializer>(span: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
        match span {
            Some(span) => s.collect_str(&format_args!("{}s", span.as_secs_f64())),
            None => s.serialize_none(),
        }
    }

    pub(in crate::spec) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
        units::parse_duration(&String::deserialize(d)?).map(Some).map_err(serde::de::Error::custom)
    }
}
