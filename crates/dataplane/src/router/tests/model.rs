//! The router against what its configuration means, worked out slowly for one address at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use proptest::prelude::*;

use super::*;
use crate::{
    model::{Address, Hop, Item, Key, Link, Path},
    Prefix,
};

#[derive(Debug, Clone, Default)]
struct Model {
    addresses: BTreeMap<IpAddr, (Link, u8)>,
    routes: BTreeMap<Prefix, Vec<Path>>,
    neighbours: BTreeMap<IpAddr, (Link, MacAddr)>,
}

/// What becomes of a frame, and on which port with which tag.
type Fate = (Next, Option<MacAddr>, usize, Option<u16>);

fn fate(next: Next, mac: Option<MacAddr>, link: Link) -> Fate {
    (next, mac, link.port, link.vlan)
}

fn nowhere(next: Next) -> Fate {
    (next, None, 0, None)
}

fn seen(to: Adjacency) -> Fate {
    let mac = (to.next == Next::Forward).then(|| MacAddr(to.macs[..6].try_into().unwrap()));
    let vlan = if let Tag::Vid(vid) = to.tag { Some(vid) } else { None };
    (to.next, mac, to.port.into(), vlan)
}

fn broadcast(addr: IpAddr, len: u8) -> Option<IpAddr> {
    let IpAddr::V4(addr) = addr else { return None };
    (len <= 30).then(|| IpAddr::V4((u32::from(addr) | u32::MAX >> len).into()))
}

impl Model {
    /// Makes a change; `false` when it cannot be made.
    fn change(&mut self, op: &Op) -> bool {
        fn put<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: V, replace: bool) -> bool {
            map.insert(key, value).is_none() || replace
        }
        let replace = matches!(op, Op::Replace(_));
        match op {
            Op::Add(item) | Op::Replace(item) => match item {
                Item::Address(a) => put(&mut self.addresses, a.addr, (a.link, a.len), replace),
                Item::Route(r) => put(&mut self.routes, r.prefix, r.paths.clone(), replace),
                Item::Neighbour(n) => put(&mut self.neighbours, n.addr, (n.link, n.mac), replace),
                _ => false,
            },
            Op::Del(Key::Address(Address { addr, .. })) => self.addresses.remove(addr).is_some(),
            Op::Del(Key::Route(prefix)) => self.routes.remove(prefix).is_some(),
            Op::Del(Key::Neighbour(_, addr)) => self.neighbours.remove(addr).is_some(),
            Op::Del(_) => false,
        }
    }

    fn link_of(&self, addr: IpAddr) -> Option<Link> {
        let covering = self.addresses.iter().filter(|(own, (_, len))| Prefix::around(**own, *len).contains(addr));
        covering.max_by_key(|(_, (_, len))| *len).map(|(_, (link, _))| *link)
    }

    fn is_own(&self, addr: IpAddr) -> bool {
        self.addresses.contains_key(&addr)
            || self.addresses.iter().any(|(&own, &(_, len))| broadcast(own, len) == Some(addr))
    }

    fn holds(&self) -> bool {
        let way = |path: &Path| match path.hop {
            Hop::Via { addr, link } => !self.is_own(addr) && (link.is_some() || self.link_of(addr).is_some()),
            _ => true,
        };
        self.routes.values().flatten().all(way)
    }

    fn host(&self, addr: IpAddr, link: Link) -> Fate {
        let mac = self.neighbours.get(&addr).filter(|(l, _)| *l == link).map(|(_, mac)| *mac);
        fate(if mac.is_some() { Next::Forward } else { Next::Unresolved }, mac, link)
    }

    fn path(&self, path: &Path) -> Fate {
        match path.hop {
            Hop::Via { addr, link } => self.host(addr, link.or(self.link_of(addr)).unwrap()),
            Hop::Station { link, mac, .. } => fate(Next::Forward, Some(mac), link),
            Hop::Connected { link } => fate(Next::Glean, None, link),
            Hop::Drop => nowhere(Next::Drop(DropReason::BlackHole)),
        }
    }

    /// All that may become of frames to an address.
    fn fates(&self, dst: IpAddr) -> BTreeSet<String> {
        let martian = nowhere(Next::Drop(DropReason::MartianDestination));
        // By length of the prefix, then by rank.
        let mut ways: Vec<((u8, u8), Vec<Fate>)> = Vec::new();
        for (&own, &(link, len)) in &self.addresses {
            let network = Prefix::around(own, len);
            if network.contains(dst) {
                ways.push(((network.len(), 1), vec![fate(Next::Glean, None, link)]));
            }
            if own == dst {
                ways.push(((Prefix::host(own).len(), 5), vec![nowhere(Next::Local)]));
            } else if broadcast(own, len) == Some(dst) {
                ways.push(((32, 4), vec![martian]));
            }
        }
        for (prefix, paths) in self.routes.iter().filter(|(prefix, _)| prefix.contains(dst)) {
            ways.push(((prefix.len(), 3), paths.iter().map(|path| self.path(path)).collect()));
        }
        if let Some(&(link, _)) = self.neighbours.get(&dst) {
            ways.push(((Prefix::host(dst).len(), 2), vec![self.host(dst, link)]));
        }
        for text in ["0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4", "ff00::/8"] {
            let prefix: Prefix = text.parse().unwrap();
            if prefix.contains(dst) {
                ways.push(((prefix.len(), 0), vec![martian]));
            }
        }
        let best = ways.into_iter().max_by_key(|(rank, _)| *rank);
        let fates = best.map_or(vec![nowhere(Next::Drop(DropReason::NoRoute))], |(_, fates)| fates);
        fates.iter().map(|fate| format!("{fate:?}")).collect()
    }
}

const DESTINATIONS: [&str; 16] = [
    "10.1.0.1",
    "10.1.0.2",
    "10.1.1.1",
    "10.1.1.3",
    "10.1.255.255",
    "10.2.0.1",
    "10.2.3.4",
    "10.0.0.9",
    "10.9.9.9",
    "11.0.0.1",
    "0.0.0.1",
    "224.1.1.1",
    "2001:db8::1",
    "2001:db8::5",
    "2001:db8:1::1",
    "ff02::5",
];

fn line() -> impl Strategy<Value = String> {
    let verb = prop_oneof![4 => Just("add"), 2 => Just("replace")];
    let address = prop::sample::select(vec!["0 10.1.0.1/16", "1 10.2.0.1/24", "1.5 10.1.1.1/30", "0.9 2001:db8::1/64"]);
    let prefix = prop::sample::select(vec![
        "0.0.0.0/0",
        "10.0.0.0/8",
        "10.1.0.0/16",
        "10.1.1.0/24",
        "10.1.1.3/32",
        "10.1.0.1/32",
        "10.2.3.0/24",
        "224.0.0.0/4",
        "2001:db8::/32",
        "2001:db8:1::/48",
    ]);
    let path = prop::sample::select(vec![
        "via 10.1.0.2",
        "via 10.1.1.2",
        "via 10.2.0.3 weight 2",
        "via 10.9.9.9 port 1",
        "via 2001:db8::5",
        "drop",
        "port 0 mac 02:00:00:00:00:aa",
        "port 1.5 mac 02:00:00:00:00:ab",
        "port 1 weight 5",
    ]);
    let neighbour = prop::sample::select(vec![
        "0 10.1.0.2 02:00:00:00:00:02",
        "0 10.1.0.2 02:00:00:00:00:22",
        "1.5 10.1.1.2 02:00:00:00:00:03",
        "1 10.2.0.3 02:00:00:00:00:04",
        "1 10.9.9.9 02:00:00:00:00:05",
        "0.9 2001:db8::5 02:00:00:00:00:06",
        "1 10.2.3.4 02:00:00:00:00:07",
    ]);
    let mostly = verb.clone();
    prop_oneof![
        4 => (verb.clone(), address.clone()).prop_map(|(verb, text)| format!("address {verb} {text}")),
        1 => address.prop_map(|text| format!("address del {text}")),
        8 => (verb.clone(), prefix.clone(), prop::collection::vec(path, 1..4))
            .prop_map(|(verb, prefix, paths)| format!("route {verb} {prefix} {}", paths.join(" "))),
        2 => prefix.prop_map(|text| format!("route del {text}")),
        4 => (mostly, neighbour.clone()).prop_map(|(verb, text)| format!("neighbour {verb} {text}")),
        2 => neighbour.prop_map(|text| format!("neighbour del {}", text.rsplit_once(' ').unwrap().0)),
    ]
}

proptest! {
    #[test]
    fn tables_are_what_the_configuration_means(batches in prop::collection::vec(prop::collection::vec(line(), 1..5), 1..20)) {
        let mut router = router();
        let mut reader = router.reader();
        let mut model = Model::default();
        for batch in batches {
            let ops: Vec<Op> = batch.iter().map(|line| line.parse().unwrap()).collect();
            let mut next = model.clone();
            let neighbour_of_itself = |model: &Model| model.neighbours.keys().any(|&addr| model.is_own(addr));
            let fits = ops.iter().all(|op| next.change(op)) && next.holds() && !neighbour_of_itself(&next);
            let result = router.apply(&ops);
            prop_assert_eq!(result.is_ok(), fits, "{:?}: {:?}", batch, result);
            if fits {
                model = next;
            }
            let tables = reader.get();
            for dst in DESTINATIONS {
                let got: BTreeSet<_> = (0..256).map(|hash| format!("{:?}", seen(by(tables, dst, hash)))).collect();
                prop_assert_eq!(got, model.fates(dst.parse().unwrap()), "{} after {:?}", dst, batch);
            }
        }
        // Emptied, it is as it was at first.
        let ops: Vec<Op> = router.config().map(|item| match item {
            Item::Address(a) => Op::Del(Key::Address(a)),
            Item::Route(r) => Op::Del(Key::Route(r.prefix)),
            Item::Neighbour(n) => Op::Del(Key::Neighbour(n.link, n.addr)),
            other => Op::Add(other),
        }).collect();
        router.apply(&ops).unwrap();
        let tables = reader.get();
        prop_assert_eq!(tables.adjacencies.iter().filter(|a| matches!(a.next, Next::Forward | Next::Glean | Next::Unresolved)).count(), 0);
        prop_assert!(tables.ports.iter().all(|port| port.vlans.is_none()) && router.counts().ip4 == 4);
    }
}
