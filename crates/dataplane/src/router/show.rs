//! Everything a router has, to be shown.

use std::net::IpAddr;

use packet::MacAddr;

use super::{
    neighbours::NeighbourState,
    rows::{Counts, NeighbourRow, Origin, RouteRow},
    state::Router,
};
use crate::{
    model::{Address, BridgeEntry, Fdb, Item, LabelRoute, Neighbour, Route, StaticEntry},
    tables::Interface,
};

impl Router {
    /// The forwarding table, IPv4 first, each family in the order of its addresses.
    pub fn routes(&self) -> impl Iterator<Item = RouteRow<'_>> + '_ {
        self.installed.iter().map(|(&prefix, &hop)| {
            let origin = self.wanted(prefix).map_or(Origin::Static, |(origin, _)| origin);
            let set = self.rib.routes.get(&prefix).filter(|_| origin == Origin::Static);
            let paths = set.map_or(&[][..], |&set| self.hops.paths(set));
            RouteRow { prefix, origin, paths, hops: self.hops.adjacencies_of(hop) }
        })
    }

    /// The neighbours that are known, in the order of their addresses, then those that are asked for.
    pub fn neighbours(&self) -> impl Iterator<Item = NeighbourRow> + '_ {
        let known = self.neighbours.table.iter().map(|(&(addr, number), entry)| {
            let age = entry.learned.map(|learned| self.now.saturating_sub(learned.seen));
            let (state, mac) = match (entry.fixed, entry.learned) {
                (Some(mac), _) => (NeighbourState::Static, Some(mac)),
                (None, Some(learned)) if learned.asked.is_some() => (NeighbourState::Probing, Some(learned.mac)),
                (None, Some(learned)) if age > Some(self.neighbours.age) => (NeighbourState::Stale, Some(learned.mac)),
                (None, learned) => (NeighbourState::Reachable, learned.map(|learned| learned.mac)),
            };
            let age = age.filter(|_| entry.fixed.is_none());
            NeighbourRow { addr, mac, link: self.links.link(number), state, age }
        });
        let asked = self.hops.unresolved().iter().map(|&(addr, number)| NeighbourRow {
            addr,
            mac: None,
            link: self.links.link(number),
            state: NeighbourState::Incomplete,
            age: None,
        });
        known.chain(asked)
    }

    /// The labels that were configured, in their order.
    pub fn labels(&self) -> impl Iterator<Item = LabelRoute> + '_ {
        self.rib.labels.iter().map(|(&label, (action, _))| LabelRoute { label, action: action.clone() })
    }

    /// The addresses that were configured.
    pub fn addresses(&self) -> impl Iterator<Item = Address> + '_ {
        let address =
            |(&(addr, number), &len): (&(IpAddr, u16), &u8)| Address { link: self.links.link(number), addr, len };
        self.rib.addresses.iter().map(address)
    }

    /// The stations of the bridge that were configured.
    pub fn bridge_entries(&self) -> impl Iterator<Item = BridgeEntry> + '_ {
        self.rib.bridge.iter().map(|(&mac, &link)| BridgeEntry { mac, link })
    }

    /// Everything that is configured, as it would be given again: addresses first.
    pub fn config(&self) -> impl Iterator<Item = Item> + '_ {
        let fixed = self.neighbours.table.iter().filter_map(|(&(addr, number), entry)| {
            Some(Neighbour { link: self.links.link(number), addr, mac: entry.fixed? })
        });
        let routes = self.rib.routes.iter();
        let routes = routes.map(|(&prefix, &set)| Route { prefix, paths: self.hops.paths(set).to_vec() });
        let station = |(&(vni, mac), &addr): (&(u32, MacAddr), &IpAddr)| Fdb::Vxlan(StaticEntry { vni, mac, addr });
        let stations = self.rib.stations.iter().map(station).chain(self.bridge_entries().map(Fdb::Bridge));
        self.addresses()
            .map(Item::Address)
            .chain(fixed.map(Item::Neighbour))
            .chain(routes.map(Item::Route))
            .chain(self.labels().map(Item::Label))
            .chain(self.rib.networks.values().cloned().map(Item::Network))
            .chain(self.rib.remotes.iter().copied().map(Item::Remote))
            .chain(stations.map(Item::Fdb))
    }

    /// The interfaces in use, by number.
    pub fn interfaces(&self) -> impl Iterator<Item = (u16, &Interface)> + '_ {
        (0..).zip(&self.derived.interfaces).filter(|&(number, _)| self.links.in_use(number))
    }

    /// How much there is of everything.
    pub fn counts(&self) -> Counts {
        let [ip4, ip6] = self.counts;
        Counts {
            ip4,
            ip6,
            fib4: self.fib4.memory(),
            fib6: self.fib6.memory(),
            routes: self.rib.routes.len(),
            neighbours: self.neighbours.table.len(),
            labels: self.rib.labels.len(),
            adjacencies: self.hops.adjacency_count(),
            groups: self.hops.groups().len(),
        }
    }
}
