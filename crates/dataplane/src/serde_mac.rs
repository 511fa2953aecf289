//! MAC addresses as text in configuration, for `#[serde(with)]`.

use packet::MacAddr;
use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(mac: &MacAddr, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(mac)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<MacAddr, D::Error> {
    String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
}

/// The same for an address that may be left out.
pub(crate) mod option {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(mac: &Option<MacAddr>, s: S) -> Result<S::Ok, S::Error> {
        match mac {
            Some(mac) => s.collect_str(mac),
            None => s.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<MacAddr>, D::Error> {
        super::deserialize(d).map(Some)
    }
}
