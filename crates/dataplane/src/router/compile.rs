//! From configuration to tables.

use std::{net::IpAddr, sync::Arc};

use super::{
    derived::{martians, Own},
    rows::Origin,
    state::Router,
};
use crate::{
    model::{LabelRoute, OverlayConfig, Remote, StaticEntry},
    tables::{Labels, Overlay, Tables, ADJ_LOCAL, ADJ_MARTIAN, ADJ_NO_ROUTE},
    Prefix,
};

impl Router {
    /// The next hop number that a prefix shall have, and why: the router's own addresses before routes, routes before
    /// neighbours, these before connected networks, and all before what is never routed.
    pub(super) fn wanted(&self, prefix: Prefix) -> Option<(Origin, u32)> {
        match self.derived.own.get(&prefix) {
            Some(Own::Address) => return Some((Origin::Local, ADJ_LOCAL)),
            Some(Own::Broadcast) => return Some((Origin::Martian, ADJ_MARTIAN)),
            None => {}
        }
        if let Some(&set) = self.rib.routes.get(&prefix) {
            return Some((Origin::Static, self.hops.hop(set)));
        }
        let neighbour = |addr| self.neighbours.adjacency(addr, self.derived.interface_of(addr));
        if let Some(adjacency) = prefix.as_host().and_then(neighbour) {
            return Some((Origin::Neighbour, adjacency));
        }
        if let Some(number) = self.derived.connected.get(&prefix) {
            return Some((Origin::Connected, self.gleans.get(number).copied().unwrap_or(ADJ_NO_ROUTE)));
        }
        martians().contains(&prefix).then_some((Origin::Martian, ADJ_MARTIAN))
    }

    /// Makes new tables of everything and publishes them.
    pub(super) fn publish(&mut self) {
        let (stacks, restacked) = self.hops.take_stacks();
        if std::mem::take(&mut self.dirty.labels) || restacked {
            let entry = |(&label, (action, _)): (&u32, &(_, _))| LabelRoute { label, action: Clone::clone(action) };
            let routes: Vec<_> = self.rib.labels.iter().map(entry).collect();
            self.labels = Arc::new(Labels::new(&routes, stacks, &mut |path| self.hops.hop_of(path)));
        }
        self.lay_over();
        self.dirty.adjacencies = false;
        let addressed = |port: usize| {
            let mut interfaces = self.derived.interfaces.iter();
            interfaces.any(|i| usize::from(i.port) == port && !(i.ip4.is_empty() && i.ip6.is_empty()))
        };
        let own_mac = |port| self.policy.check_mac.unwrap_or_else(|| addressed(port));
        let tables = Tables {
            fib4: Arc::clone(self.fib4.live()),
            fib6: Arc::clone(self.fib6.live()),
            adjacencies: self.hops.table(),
            groups: self.hops.groups().to_vec(),
            ports: self.links.ports(&own_mac),
            interfaces: self.derived.interfaces.clone(),
            labels: Arc::clone(&self.labels),
            overlay: Arc::clone(&self.overlay),
            probes: self.probes.clone(),
            probe_round: self.probe_round,
            icmp_errors_per_second: self.policy.icmp_errors_per_second,
        };
        self.shared.publish(tables);
    }

    /// Makes the overlay anew if it, or the way to one of its tunnels' ends, has changed.
    fn lay_over(&mut self) {
        let moved = self.asked.iter().any(|&(addr, hop)| self.lookup(addr) != hop);
        if !std::mem::take(&mut self.dirty.overlay) && !moved {
            return;
        }
        self.remotes.retain(|remote| self.rib.networks.get(&remote.vni).is_some_and(|network| network.learn));
        let config = self.overlay_config();
        let mut asked = Vec::new();
        let mut resolve = |addr| {
            let hop = self.lookup(addr);
            asked.push((addr, hop));
            hop
        };
        let overlay = Overlay::new(&config, &mut resolve, Some(&self.overlay));
        asked.sort_unstable();
        asked.dedup();
        (self.overlay, self.asked) = (Arc::new(overlay), asked);
    }

    /// The overlay as configured and learned.
    pub fn overlay_config(&self) -> OverlayConfig {
        let learned: Vec<Remote> = self.remotes.difference(&self.rib.remotes).copied().collect();
        let station = |(&(vni, mac), &addr): (&(u32, _), &IpAddr)| StaticEntry { vni, mac, addr };
        OverlayConfig {
            networks: self.rib.networks.values().cloned().collect(),
            remotes: self.rib.remotes.iter().copied().collect(),
            entries: self.rib.stations.iter().map(station).collect(),
            learned,
        }
    }
}
