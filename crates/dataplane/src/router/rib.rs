//! What was configured, one table for each kind of entry.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use packet::MacAddr;

use crate::{
    model::{LabelAction, Link, Network, Remote},
    Prefix,
};

/// What was configured. Neighbours are with those that were learned.
#[derive(Debug, Default)]
pub(super) struct Rib {
    pub(super) addresses: BTreeMap<(IpAddr, u16), u8>,
    /// The set of paths of each route.
    pub(super) routes: BTreeMap<Prefix, u32>,
    /// The action of each label and the set of its path.
    pub(super) labels: BTreeMap<u32, (LabelAction, Option<u32>)>,
    pub(super) networks: BTreeMap<u32, Network>,
    pub(super) remotes: BTreeSet<Remote>,
    pub(super) stations: BTreeMap<(u32, MacAddr), IpAddr>,
    pub(super) bridge: BTreeMap<MacAddr, Link>,
}

/// One entry of one table, with what it holds or shall hold; nothing is no entry.
#[derive(Debug)]
pub(super) enum Slot {
    Address(IpAddr, u16, Option<u8>),
    Route(Prefix, Option<u32>),
    Neighbour(IpAddr, u16, Option<MacAddr>),
    Label(u32, Option<(LabelAction, Option<u32>)>),
    Network(u32, Option<Box<Network>>),
    Remote(Remote, bool),
    Station(u32, MacAddr, Option<IpAddr>),
    Bridge(MacAddr, Option<Link>),
}

/// What a batch has changed so far, besides the entries.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    /// Prefixes whose next hop may be another one.
    pub(super) touched: Vec<Prefix>,
    pub(super) addresses: bool,
    pub(super) labels: bool,
    pub(super) overlay: bool,
    /// Adjacencies were rewritten.
    pub(super) adjacencies: bool,
}

/// Sets or removes an entry; returns the one before.
pub(super) fn set_entry<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) -> Option<V> {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    }
}

impl Rib {
    /// The remote ends of a network.
    pub(super) fn remotes_of(&self, vni: u32) -> impl Iterator<Item = &Remote> {
        let end = |addr| Remote { vni, addr };
        self.remotes.range(end(IpAddr::V4(0.into()))..=end(IpAddr::V6(u128::MAX.into())))
    }
}
