//! Neighbours and tunnel ends: configured, learned, aged, and asked for.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use packet::MacAddr;

use super::{
    hops::view,
    neighbours::{Entry, Host, Learned},
    state::Router,
};
use crate::{
    model::Remote,
    tables::{Next, Probe},
    Prefix,
};

/// Most neighbours learned.
const LEARNED: usize = 65_536;
/// Most tunnel ends learned.
pub(super) const REMOTES: usize = 4096;
/// Most neighbours asked for in one round.
const ROUND: usize = 256;
/// How often a neighbour is asked for.
const GAP: Duration = Duration::from_secs(1);
/// The longest between two questions to a gateway that does not answer.
const LONGEST_GAP: Duration = Duration::from_secs(8);
/// How long a neighbour grown old has to answer.
const PATIENCE: Duration = Duration::from_secs(5);

impl Router {
    /// Changes what is known of a neighbour, and everything that follows from it.
    fn set_neighbour(&mut self, host: Host, change: impl FnOnce(&mut Option<MacAddr>, &mut Option<Learned>)) {
        let (mut fixed, mut learned) = self.neighbours.table.get(&host).map_or((None, None), |e| (e.fixed, e.learned));
        let before = fixed.or(learned.map(|l| l.mac));
        let had = learned.is_some();
        change(&mut fixed, &mut learned);
        let after = fixed.or(learned.map(|l| l.mac));
        self.neighbours.learned = self.neighbours.learned + usize::from(learned.is_some()) - usize::from(had);
        let mut gone = None;
        match (self.neighbours.table.get_mut(&host), after) {
            (Some(entry), Some(_)) => (entry.fixed, entry.learned) = (fixed, learned),
            (Some(_), None) => gone = self.neighbours.table.remove(&host).map(|entry| entry.adjacency),
            (None, Some(_)) => {
                self.neighbours.table.insert(host, Entry { fixed, learned, adjacency: 0 });
                let adjacency = self.hops.use_neighbour(host, &view(&self.links, &self.derived, &self.neighbours));
                if let Some(entry) = self.neighbours.table.get_mut(&host) {
                    entry.adjacency = adjacency;
                }
            }
            (None, None) => {}
        }
        if before == after {
            return;
        }
        self.hops.refresh_host(host, &view(&self.links, &self.derived, &self.neighbours));
        self.dirty.adjacencies = true;
        if before.is_none() || after.is_none() {
            self.dirty.touched.push(Prefix::host(host.0));
        }
        gone.into_iter().for_each(|adjacency| self.hops.release(adjacency));
    }

    /// Configures a neighbour; returns what was configured before.
    pub(super) fn put_neighbour(&mut self, host: Host, mac: Option<MacAddr>) -> Option<MacAddr> {
        let before = self.neighbours.fixed(host);
        self.set_neighbour(host, |fixed, _| *fixed = mac);
        before
    }

    /// A neighbour has been heard.
    pub(super) fn learn(&mut self, host: Host, mac: MacAddr) {
        let (addr, number) = host;
        let host_like = !addr.is_multicast() && !addr.is_unspecified() && !mac.is_group() && mac != MacAddr::default();
        if !host_like || self.derived.is_own(addr) || self.neighbours.fixed(host).is_some() {
            return;
        }
        let known = self.neighbours.table.contains_key(&host);
        let wanted = self.derived.on_link(number, addr) || self.hops.unresolved().contains(&host);
        if !known && (!wanted || self.neighbours.learned >= LEARNED) {
            return;
        }
        let seen = self.now;
        self.set_neighbour(host, |_, learned| *learned = Some(Learned { mac, seen, asked: None }));
    }

    /// A tunnel end has been heard.
    pub(super) fn learn_remote(&mut self, remote: Remote) {
        let learns =
            self.rib.networks.get(&remote.vni).is_some_and(|n| n.learn && n.local.is_ipv4() == remote.addr.is_ipv4());
        let room = self.remotes.len() < REMOTES;
        if learns && room && !self.derived.is_own(remote.addr) && self.remotes.insert(remote) {
            self.dirty.overlay = true;
        }
    }

    /// Forgets those that did not answer; returns whom to ask now.
    pub(super) fn age(&mut self) -> Vec<Probe> {
        let (now, age) = (self.now, self.neighbours.age);
        let (mut probes, mut gone) = (Vec::new(), Vec::new());
        if std::mem::take(&mut self.recheck) {
            let hosts =
                self.neighbours.table.iter().filter(|(_, entry)| entry.learned.is_some()).map(|(&host, _)| host);
            gone.extend(hosts.filter(|&(addr, number)| {
                self.derived.is_own(addr)
                    || !(self.derived.on_link(number, addr) || self.hops.users_of((addr, number)) > 1)
            }));
        }
        let probe = |host: Host| Probe { interface: host.1, addr: host.0 };
        for (&host, entry) in &mut self.neighbours.table {
            let Some(learned) = entry.learned.as_mut().filter(|learned| now.saturating_sub(learned.seen) > age) else {
                continue;
            };
            match learned.asked {
                _ if entry.fixed.is_some() => gone.push(host),
                Some((since, _)) if now.saturating_sub(since) > PATIENCE => gone.push(host),
                Some((_, last)) if now.saturating_sub(last) < GAP => {}
                asked if probes.len() < ROUND => {
                    learned.asked = Some((asked.map_or(now, |(since, _)| since), now));
                    probes.push(probe(host));
                }
                _ => {}
            }
        }
        for host in gone {
            self.set_neighbour(host, |_, learned| *learned = None);
        }
        // Gateways, and tunnels' ends on our own links.
        let end = |&(addr, hop): &(IpAddr, u32)| {
            let to = self.hops.adjacency(hop);
            (to.next == Next::Glean).then_some((addr, to.interface))
        };
        // What was let go of just now is still there, but nobody waits for it.
        let gateways = self.hops.unresolved().iter().copied().filter(|&host| self.hops.users_of(host) > 0);
        let mut wanted: BTreeSet<Host> = gateways.collect();
        wanted.extend(self.asked.iter().filter_map(end));
        let pending = &mut self.neighbours.pending;
        pending.retain(|host, _| wanted.contains(host));
        for host in wanted {
            let (due, gap) = pending.entry(host).or_insert((now, GAP));
            if *due <= now && probes.len() < ROUND {
                *due = now + *gap;
                *gap = (*gap * 2).min(LONGEST_GAP);
                probes.push(probe(host));
            }
        }
        probes
    }
}
