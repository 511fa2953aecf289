//! Which function to run and with what, as text or TOML, and the functions to choose from.

mod kind;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Duration,
};

pub use kind::FunctionKind;
use packet::MacAddr;
use serde::{Deserialize, Serialize};

use crate::{
    model::{Address, Fdb, Hop, Item, LabelAction, LabelRoute, Link, Neighbour, Network, Path, Remote, Route},
    router::Policy,
    Prefix, SpecError,
};

/// A data plane as asked for: its function and everything configured, all in the text forms of [`crate::router`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlaneSpec {
    /// The function.
    pub kind: FunctionKind,
    /// The router's own addresses: `LINK ADDR/LEN`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
    /// Routes: `PREFIX PATH [PATH...]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// Neighbours that need not be asked for: `LINK ADDR MAC`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbours: Vec<Neighbour>,
    /// MPLS labels: `LABEL swap OUT PATH` and others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<LabelRoute>,
    /// VXLAN networks: `VNI local ADDR access LINK[,LINK...]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<Network>,
    /// Tunnel ends that frames are flooded to: `VNI ADDR`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remotes: Vec<Remote>,
    /// Stations that need not be learned: `VNI MAC ADDR`, or `MAC LINK` of the bridge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fdb: Vec<Fdb>,
    /// Whether ports take only frames for their own MAC address; by default those that have an IP address do, and the
    /// others take any unicast frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_mac: Option<bool>,
    /// Most ICMP errors an lcore sends in a second; 1000 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icmp_errors_per_second: Option<u32>,
    /// After how long a learned neighbour is asked whether it is still there; `5m` by default.
    #[serde(default, with = "kind::span", skip_serializing_if = "Option::is_none")]
    pub neighbour_age: Option<Duration>,
    /// After how long a station that is silent is forgotten; `300s` by default (IEEE 802.1Q 8.8.3).
    #[serde(default, with = "kind::span", skip_serializing_if = "Option::is_none")]
    pub bridge_ageing: Option<Duration>,
    /// Most stations known; 16384 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge_entries: Option<u32>,
}

/// The default of `bridge_ageing`.
const BRIDGE_AGEING: Duration = Duration::from_secs(300);
/// The default of `bridge_entries`.
const BRIDGE_ENTRIES: u32 = 16_384;
/// Most stations that may be asked for.
const MAX_BRIDGE_ENTRIES: u32 = 1 << 24;

impl PlaneSpec {
    /// A data plane of this kind with nothing configured.
    pub fn new(kind: FunctionKind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// What a benchmark between two ports needs, each port facing one of these stations. Port 0 has the lower and port 1
    /// the upper half of 198.18.0.0/15 (RFC 2544 C.2.2), and one /64 each of 2001:2::/48 (RFC 5180 8); labels 16 and 17
    /// swap between the ports; the network of VNI 10 has port 0 at this end of its tunnel and station 1 at the other.
    pub fn benchmark(kind: FunctionKind, stations: [MacAddr; 2]) -> Self {
        let mut spec = Self::new(kind);
        let link = |port| Link { port, vlan: None };
        let path =
            |port, mac| Path { hop: Hop::Station { link: link(port), mac, from: None }, labels: Vec::new(), weight: 1 };
        let [near, far] = stations;
        match kind {
            FunctionKind::L3 | FunctionKind::Mpls => {
                let v4 = |net| Prefix::around(IpAddr::V4(Ipv4Addr::new(198, net, 0, 0)), 16);
                let v6 = |net| Prefix::around(IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, net, 0, 0, 0, 0)), 64);
                for (prefix, port, mac) in [(v4(18), 0, near), (v4(19), 1, far), (v6(1), 0, near), (v6(2), 1, far)] {
                    spec.routes.push(Route { prefix, paths: vec![path(port, mac)] });
                }
            }
            FunctionKind::Vxlan => {
                let end = |host| IpAddr::V4(Ipv4Addr::new(198, 19, 0, host));
                spec.addresses.push(Address { link: link(1), addr: end(1), len: 16 });
                let (local, access) = (end(1), vec![link(0)]);
                spec.networks.push(Network { vni: 10, local, access, udp_port: 4789, learn: true });
                spec.remotes.push(Remote { vni: 10, addr: end(2) });
                spec.neighbours.push(Neighbour { link: link(1), addr: end(2), mac: far });
            }
            _ => {}
        }
        if kind == FunctionKind::Mpls {
            for (label, out, port, mac) in [(16, 17, 1, far), (17, 16, 0, near)] {
                spec.labels.push(LabelRoute { label, action: LabelAction::Swap { out, path: path(port, mac) } });
            }
        }
        spec
    }

    /// Adds so many host routes to each of these stations, behind ports 0 and 1: from 10.128.0.0 and from 10.0.0.0 up, one
    /// address after the other ([`Self::first_host`]).
    pub fn add_host_routes(&mut self, stations: [MacAddr; 2], counts: [u32; 2]) {
        for (port, (mac, count)) in stations.into_iter().zip(counts).enumerate() {
            let path = Path {
                hop: Hop::Station { link: Link { port, vlan: None }, mac, from: None },
                labels: Vec::new(),
                weight: 1,
            };
            let first = u32::from(Self::first_host(port));
            let route =
                |n: u32| Route { prefix: Prefix::host(IpAddr::V4((first + n).into())), paths: vec![path.clone()] };
            self.routes.extend((0..count.min(1 << 23)).map(route));
        }
    }

    /// Where the host routes behind port 0 or 1 begin: the upper and the lower half of 10.0.0.0/8 (RFC 1918 3).
    pub fn first_host(port: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, if port == 0 { 128 } else { 0 }, 0, 0)
    }

    /// Whether nothing is configured that a frame could go by.
    pub fn is_bare(&self) -> bool {
        self.items().next().is_none()
    }

    /// Everything that is configured, with the name of its place.
    pub fn items(&self) -> impl Iterator<Item = (String, Item)> + '_ {
        fn named<'a, T: Clone>(
            key: &'static str,
            items: &'a [T],
            item: fn(T) -> Item,
        ) -> impl Iterator<Item = (String, Item)> + 'a {
            items.iter().enumerate().map(move |(i, it)| (format!("{key}[{i}]"), item(it.clone())))
        }
        named("addresses", &self.addresses, Item::Address)
            .chain(named("neighbours", &self.neighbours, Item::Neighbour))
            .chain(named("routes", &self.routes, Item::Route))
            .chain(named("labels", &self.labels, Item::Label))
            .chain(named("networks", &self.networks, Item::Network))
            .chain(named("remotes", &self.remotes, Item::Remote))
            .chain(named("fdb", &self.fdb, Item::Fdb))
    }

    /// The routing settings, with the defaults.
    pub fn policy(&self) -> Policy {
        let default = Policy::default();
        Policy {
            check_mac: self.check_mac,
            icmp_errors_per_second: self.icmp_errors_per_second.unwrap_or(default.icmp_errors_per_second),
            neighbour_age: self.neighbour_age.unwrap_or(default.neighbour_age),
        }
    }

    /// How long stations are remembered, and how many.
    pub fn stations(&self) -> (Duration, u32) {
        (self.bridge_ageing.unwrap_or(BRIDGE_AGEING), self.bridge_entries.unwrap_or(BRIDGE_ENTRIES))
    }

    /// The same with every default that the function uses written out.
    pub fn effective(&self) -> Self {
        let (policy, (ageing, entries)) = (self.policy(), self.stations());
        let used = |key| self.kind.keys().contains(&key);
        Self {
            icmp_errors_per_second: used("icmp_errors_per_second").then_some(policy.icmp_errors_per_second),
            neighbour_age: used("neighbour_age").then_some(policy.neighbour_age),
            bridge_ageing: used("bridge_ageing").then_some(ageing),
            bridge_entries: used("bridge_entries").then_some(entries),
            ..self.clone()
        }
    }

    /// Errors on a key that the function does not use, and on a number out of its range.
    pub fn validate(&self) -> Result<(), SpecError> {
        let given = [
            ("addresses", !self.addresses.is_empty()),
            ("routes", !self.routes.is_empty()),
            ("neighbours", !self.neighbours.is_empty()),
            ("labels", !self.labels.is_empty()),
            ("networks", !self.networks.is_empty()),
            ("remotes", !self.remotes.is_empty()),
            ("fdb", !self.fdb.is_empty()),
            ("check_mac", self.check_mac.is_some()),
            ("icmp_errors_per_second", self.icmp_errors_per_second.is_some()),
            ("neighbour_age", self.neighbour_age.is_some()),
            ("bridge_ageing", self.bridge_ageing.is_some()),
            ("bridge_entries", self.bridge_entries.is_some()),
        ];
        for (key, _) in given.into_iter().filter(|&(_, given)| given) {
            self.kind.uses(key)?;
        }
        self.fdb.iter().enumerate().try_for_each(|(i, fdb)| self.kind.takes(fdb, || format!("fdb[{i}]")))?;
        let (_, entries) = self.stations();
        if !(1..=MAX_BRIDGE_ENTRIES).contains(&entries) {
            return Err(SpecError::new("bridge_entries", entries, format!("must be 1 to {MAX_BRIDGE_ENTRIES}")));
        }
        Ok(())
    }
}
