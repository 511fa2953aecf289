//! One change of the configuration: what it sets, how it is taken back, and what must hold after it.

use std::{collections::BTreeMap, net::IpAddr};

use packet::MacAddr;

use super::{
    rib::{set_entry, Slot},
    state::Router,
};
use crate::{
    model::{BridgeEntry, Fdb, Hop, Item, Key, LabelAction, Op, Refusal, StaticEntry},
    SpecError,
};

impl Router {
    /// Sets one entry; returns it as it was, to be put back if need be.
    pub(super) fn set_slot(&mut self, slot: Slot) -> Slot {
        let (rib, dirty) = (&mut self.rib, &mut self.dirty);
        match slot {
            Slot::Address(addr, number, len) => {
                let before = set_entry(&mut rib.addresses, (addr, number), len);
                self.links.exchange(number, before.is_some(), len.is_some());
                dirty.addresses = true;
                Slot::Address(addr, number, before)
            }
            Slot::Route(prefix, set) => {
                set.into_iter().for_each(|set| self.hops.retain_set(set));
                let before = set_entry(&mut rib.routes, prefix, set);
                before.into_iter().for_each(|set| self.hops.release_set(set));
                dirty.touched.push(prefix);
                Slot::Route(prefix, before)
            }
            Slot::Neighbour(addr, number, mac) => {
                let before = self.put_neighbour((addr, number), mac);
                self.links.exchange(number, before.is_some(), mac.is_some());
                Slot::Neighbour(addr, number, before)
            }
            Slot::Label(label, entry) => {
                entry.iter().filter_map(|entry| entry.1).for_each(|set| self.hops.retain_set(set));
                let before = set_entry(&mut rib.labels, label, entry);
                before.iter().filter_map(|entry| entry.1).for_each(|set| self.hops.release_set(set));
                dirty.labels = true;
                Slot::Label(label, before)
            }
            Slot::Network(vni, network) => {
                let before = rib.networks.remove(&vni);
                before.iter().flat_map(|n| &n.access).for_each(|&link| self.links.mention(link, false));
                if let Some(network) = network {
                    network.access.iter().for_each(|&link| self.links.mention(link, true));
                    rib.networks.insert(vni, *network);
                }
                dirty.overlay = true;
                Slot::Network(vni, before.map(Box::new))
            }
            Slot::Remote(remote, there) => {
                dirty.overlay = true;
                let was = if there { !rib.remotes.insert(remote) } else { rib.remotes.remove(&remote) };
                Slot::Remote(remote, was)
            }
            Slot::Station(vni, mac, addr) => {
                dirty.overlay = true;
                Slot::Station(vni, mac, set_entry(&mut rib.stations, (vni, mac), addr))
            }
            Slot::Bridge(mac, link) => Slot::Bridge(mac, set_entry(&mut rib.bridge, mac, link)),
        }
    }

    /// The entry that a change asks for. A set of paths seen for the first time goes into `new`.
    pub(super) fn plan(&mut self, op: &Op, new: &mut Vec<u32>) -> Result<Slot, Refusal> {
        let (item, replace) = match op {
            Op::Del(key) => return self.plan_del(key),
            Op::Add(item) => (item, false),
            Op::Replace(item) => (item, true),
        };
        let rib = &self.rib;
        let (there, slot) = match item {
            Item::Address(a) => {
                let number = self.links.number(a.link)?;
                (rib.addresses.contains_key(&(a.addr, number)), Slot::Address(a.addr, number, Some(a.len)))
            }
            Item::Route(route) => {
                let (set, fresh) = self.hops.set(&route.paths, &mut self.links)?;
                new.extend(fresh.then_some(set));
                (rib.routes.contains_key(&route.prefix), Slot::Route(route.prefix, Some(set)))
            }
            Item::Neighbour(n) => {
                let number = self.links.number(n.link)?;
                let there = self.neighbours.fixed((n.addr, number)).is_some();
                (there, Slot::Neighbour(n.addr, number, Some(n.mac)))
            }
            Item::Label(l) => {
                let path = match &l.action {
                    LabelAction::Swap { path, .. } | LabelAction::Pop { path } => Some(path),
                    LabelAction::Lookup | LabelAction::Drop => None,
                };
                let mut set = None;
                if let Some(path) = path {
                    if matches!(path.hop, Hop::Connected { .. }) {
                        let legal = "must be via ADDR, port LINK mac MAC or drop";
                        return Err(SpecError::new("label path", path, legal).into());
                    }
                    let (number, fresh) = self.hops.set(std::slice::from_ref(path), &mut self.links)?;
                    new.extend(fresh.then_some(number));
                    set = Some(number);
                }
                (rib.labels.contains_key(&l.label), Slot::Label(l.label, Some((l.action.clone(), set))))
            }
            Item::Network(n) => {
                for &link in &n.access {
                    self.links.number(link)?;
                }
                (rib.networks.contains_key(&n.vni), Slot::Network(n.vni, Some(Box::new(n.clone()))))
            }
            Item::Remote(r) => (rib.remotes.contains(r), Slot::Remote(*r, true)),
            Item::Fdb(Fdb::Vxlan(StaticEntry { vni, mac, addr })) => {
                (rib.stations.contains_key(&(*vni, *mac)), Slot::Station(*vni, *mac, Some(*addr)))
            }
            Item::Fdb(Fdb::Bridge(BridgeEntry { mac, link })) => {
                self.links.number(*link)?;
                (rib.bridge.contains_key(mac), Slot::Bridge(*mac, Some(*link)))
            }
        };
        if there && !replace {
            return Err(Refusal::already_there(item));
        }
        Ok(slot)
    }

    fn plan_del(&mut self, key: &Key) -> Result<Slot, Refusal> {
        let rib = &self.rib;
        let number = |link| self.links.find(link);
        let slot = match *key {
            Key::Address(a) => number(a.link)
                .filter(|&number| rib.addresses.get(&(a.addr, number)) == Some(&a.len))
                .map(|number| Slot::Address(a.addr, number, None)),
            Key::Route(prefix) => rib.routes.contains_key(&prefix).then_some(Slot::Route(prefix, None)),
            Key::Neighbour(link, addr) => number(link)
                .filter(|&number| self.neighbours.fixed((addr, number)).is_some())
                .map(|number| Slot::Neighbour(addr, number, None)),
            Key::Label(label) => rib.labels.contains_key(&label).then_some(Slot::Label(label, None)),
            Key::Network(vni) => rib.networks.contains_key(&vni).then_some(Slot::Network(vni, None)),
            Key::Remote(remote) => rib.remotes.contains(&remote).then_some(Slot::Remote(remote, false)),
            Key::Fdb(Some(vni), mac) => rib.stations.contains_key(&(vni, mac)).then_some(Slot::Station(vni, mac, None)),
            Key::Fdb(None, mac) => rib.bridge.contains_key(&mac).then_some(Slot::Bridge(mac, None)),
        };
        slot.ok_or_else(|| {
            let known = |link, addr| number(link).is_some_and(|number| self.neighbours.has((addr, number)));
            match *key {
                Key::Neighbour(link, addr) if known(link, addr) => Refusal::learned(key),
                Key::Remote(remote) if self.remotes.contains(&remote) => Refusal::learned(key),
                _ => Refusal::not_there(key),
            }
        })
    }

    /// What must hold after a batch with this change.
    pub(super) fn check_after(&self, op: &Op) -> Result<(), SpecError> {
        let rib = &self.rib;
        let end = |vni: u32, addr: IpAddr| match rib.networks.get(&vni) {
            None => Err(SpecError::new("VNI", vni, "is not a configured network: add the network first")),
            Some(network) if network.local.is_ipv4() != addr.is_ipv4() => Err(SpecError::new(
                "remote address",
                addr,
                format!("must be of the same address family as {}", network.local),
            )),
            Some(network) if network.local == addr => Err(SpecError::new(
                "remote address",
                addr,
                format!("is the local address of network {vni}: must be the address of another tunnel end"),
            )),
            Some(_) => Ok(()),
        };
        match op {
            Op::Add(Item::Neighbour(n)) | Op::Replace(Item::Neighbour(n)) if self.derived.is_own(n.addr) => {
                Err(SpecError::new(
                    "neighbour address",
                    n.addr,
                    "is an address of this router or the broadcast address of a network: must be another host's",
                ))
            }
            Op::Add(Item::Network(n)) | Op::Replace(Item::Network(n)) if rib.networks.contains_key(&n.vni) => {
                let ends = rib.remotes_of(n.vni).map(|r| r.addr);
                let stations = rib.stations.range((n.vni, MacAddr::default())..=(n.vni, MacAddr::BROADCAST));
                ends.chain(stations.map(|(_, &addr)| addr)).try_for_each(|addr| end(n.vni, addr))
            }
            Op::Add(Item::Remote(r)) | Op::Replace(Item::Remote(r)) if rib.remotes.contains(r) => end(r.vni, r.addr),
            Op::Add(Item::Fdb(Fdb::Vxlan(e))) | Op::Replace(Item::Fdb(Fdb::Vxlan(e))) => {
                rib.stations.get(&(e.vni, e.mac)).map_or(Ok(()), |&addr| end(e.vni, addr))
            }
            Op::Del(Key::Network(vni)) if !rib.networks.contains_key(vni) => {
                let remotes = rib.remotes_of(*vni).next().is_some();
                let stations = rib.stations.range((*vni, MacAddr::default())..=(*vni, MacAddr::BROADCAST));
                if remotes || stations.count() > 0 {
                    return Err(SpecError::new(
                        "network",
                        vni,
                        "has remotes or fdb entries: delete them in the same batch",
                    ));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// What must hold of all networks together.
    pub(super) fn check_networks(&self) -> Result<(), SpecError> {
        let mut taken = BTreeMap::new();
        for (vni, network) in &self.rib.networks {
            if !self.rib.addresses.range((network.local, 0)..=(network.local, u16::MAX)).any(|_| true) {
                let legal = format!(
                    "of network {vni} must be an address of this router: add address LINK {}/LEN",
                    network.local
                );
                return Err(SpecError::new("local address", network.local, legal));
            }
            for link in &network.access {
                if let Some(other) = taken.insert(*link, vni) {
                    let legal = format!(
                        "is an access link of network {other} and of network {vni}: a link belongs to one network"
                    );
                    return Err(SpecError::new("link", link, legal));
                }
            }
        }
        Ok(())
    }
}
