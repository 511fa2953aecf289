//! Next hops: sets of paths compiled to adjacencies and groups, each shared by all the routes that use it.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use packet::MacAddr;

use super::{
    derived::Derived,
    links::Links,
    neighbours::{Host, Neighbours},
    pool::Pool,
    weights::spread,
};
use crate::{
    model::{Hop, Link, Path, MAX_PUSH},
    tables::{Adjacency, Group, Next, Stack, ADJ_NO_ROUTE, GROUP},
    DropReason, SpecError,
};

/// What an adjacency is; two that are the same share a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum AdjacencyKind {
    /// One of those at fixed numbers.
    Fixed(u32),
    /// To a neighbour, known or not.
    Neighbour(Host, u16),
    /// To a station whose MAC address is given.
    Station { interface: u16, mac: MacAddr, from: Option<MacAddr>, push: u16 },
    /// To whoever has the destination address.
    Glean(u16, u16),
    /// Nowhere.
    BlackHole,
}

/// What adjacencies are made from.
pub(super) struct View<'a> {
    pub(super) links: &'a Links,
    pub(super) derived: &'a Derived,
    pub(super) neighbours: &'a Neighbours,
}

/// What adjacencies are made from, of the parts of a router.
pub(super) fn view<'a>(links: &'a Links, derived: &'a Derived, neighbours: &'a Neighbours) -> View<'a> {
    View { links, derived, neighbours }
}

/// A compiled set of paths.
#[derive(Debug)]
struct NextHopSet {
    /// What follows is of its paths as things are.
    compiled: bool,
    hop: u32,
    uses: Vec<u32>,
    group: Option<u32>,
}

#[derive(Debug)]
pub(super) struct Hops {
    adjacencies: Pool<AdjacencyKind, Adjacency>,
    by_host: HashMap<Host, BTreeSet<u32>>,
    /// Neighbours that an adjacency waits for.
    unresolved: BTreeSet<Host>,
    stacks: Pool<Vec<u32>, Stack>,
    sets: Pool<Arc<[Path]>, NextHopSet>,
    groups: Vec<Group>,
    free_groups: Vec<u32>,
    /// The stacks are not what they were.
    restacked: bool,
}

impl Hops {
    pub(super) fn new() -> Self {
        let mut adjacencies = Pool::new();
        // In the order of `ADJ_NO_ROUTE`, `ADJ_MARTIAN` and `ADJ_LOCAL`.
        let fixed =
            [Adjacency::drop(DropReason::NoRoute), Adjacency::drop(DropReason::MartianDestination), Adjacency::LOCAL];
        for (number, adjacency) in (0..).zip(fixed) {
            let number = adjacencies.insert(AdjacencyKind::Fixed(number), adjacency);
            adjacencies.retain(number);
        }
        Self {
            adjacencies,
            by_host: HashMap::new(),
            unresolved: BTreeSet::new(),
            stacks: Pool::new(),
            sets: Pool::new(),
            groups: Vec::new(),
            free_groups: Vec::new(),
            restacked: false,
        }
    }

    /// The number of a set of paths, and whether it is still to be compiled.
    pub(super) fn set(&mut self, paths: &[Path], links: &mut Links) -> Result<(u32, bool), SpecError> {
        if let Some(number) = self.sets.find(paths) {
            return Ok((number, !self.sets.get(number).is_some_and(|(_, set)| set.compiled)));
        }
        let interfaces =
            paths.iter().filter_map(link_of).map(|link| links.number(link)).collect::<Result<Vec<_>, _>>()?;
        interfaces.into_iter().for_each(|number| links.retain(number));
        Ok((
            self.sets
                .insert(paths.into(), NextHopSet { compiled: false, hop: ADJ_NO_ROUTE, uses: Vec::new(), group: None }),
            true,
        ))
    }

    pub(super) fn retain_set(&mut self, set: u32) {
        self.sets.retain(set);
    }

    pub(super) fn release_set(&mut self, set: u32) {
        self.sets.release(set);
    }

    /// The next hop number of a set.
    pub(super) fn hop(&self, set: u32) -> u32 {
        self.sets.get(set).map_or(ADJ_NO_ROUTE, |(_, set)| set.hop)
    }

    /// The next hop number of one path that is a set by itself.
    pub(super) fn hop_of(&self, path: &Path) -> u32 {
        self.sets.find(std::slice::from_ref(path)).map_or(ADJ_NO_ROUTE, |set| self.hop(set))
    }

    /// The paths of a set.
    pub(super) fn paths(&self, set: u32) -> &[Path] {
        self.sets.get(set).map_or(&[], |(paths, _)| paths)
    }

    /// All sets that something uses.
    pub(super) fn sets(&self) -> Vec<u32> {
        self.sets.iter().map(|(number, ..)| number).filter(|&number| self.sets.used(number)).collect()
    }

    /// Whether something uses a set.
    pub(super) fn used(&self, set: u32) -> bool {
        self.sets.used(set)
    }

    /// Finds the adjacencies of a set; `true` when its next hop number is another one now. On an error the next hop
    /// is as it was.
    pub(super) fn compile(&mut self, number: u32, view: &View<'_>) -> Result<bool, SpecError> {
        let Some((paths, _)) = self.sets.get(number) else { return Ok(false) };
        let paths = Arc::clone(paths);
        if let Some(set) = self.sets.get_mut(number) {
            set.compiled = false;
        }
        let mut uses = Vec::with_capacity(paths.len());
        for path in paths.iter() {
            uses.push(self.adjacency_of(path, view)?);
        }
        uses.iter().for_each(|&n| self.adjacencies.retain(n));
        let alike = uses.iter().all(|n| Some(n) == uses.first());
        let spread = if alike { None } else { Some(spread(uses.iter().copied().zip(paths.iter().map(|p| p.weight)))) };
        let Some(set) = self.sets.get_mut(number) else { return Ok(false) };
        let hop = match spread {
            None => uses.first().copied().unwrap_or(ADJ_NO_ROUTE),
            Some(slots) => {
                // A group keeps its number as long as its set is there.
                let group = *set.group.get_or_insert_with(|| {
                    self.free_groups.pop().unwrap_or_else(|| {
                        self.groups.push(Group { paths: Box::default() });
                        self.groups.len() as u32 - 1
                    })
                });
                if let Some(entry) = self.groups.get_mut(group as usize) {
                    entry.paths = slots;
                }
                GROUP | group
            }
        };
        set.compiled = true;
        let moved = std::mem::replace(&mut set.hop, hop) != hop;
        for before in std::mem::replace(&mut set.uses, uses) {
            self.adjacencies.release(before);
        }
        Ok(moved)
    }

    fn adjacency_of(&mut self, path: &Path, view: &View<'_>) -> Result<u32, SpecError> {
        let number = |link| {
            view.links
                .find(link)
                .ok_or_else(|| SpecError::new("link", link, "is not configured: must be a port or VLAN in use"))
        };
        let kind = match path.hop {
            Hop::Via { addr, link } => {
                let error = |legal: &str| Err(SpecError::new("gateway", addr, legal));
                if addr.is_multicast() || addr.is_unspecified() || addr.is_loopback() {
                    return error("must be the address of a host");
                }
                if view.derived.is_own(addr) {
                    return error("is an address of this router: must be another host's");
                }
                let interface = match link {
                    Some(link) => number(link)?,
                    None => match view.derived.interface_of(addr) {
                        Some(interface) => interface,
                        None => return error(
                            "is in no connected network: name its link (via ADDR port LINK) or add an address there",
                        ),
                    },
                };
                AdjacencyKind::Neighbour((addr, interface), self.push(&path.labels)?)
            }
            Hop::Station { link, mac, from } => {
                AdjacencyKind::Station { interface: number(link)?, mac, from, push: self.push(&path.labels)? }
            }
            Hop::Connected { link } => AdjacencyKind::Glean(number(link)?, self.push(&path.labels)?),
            Hop::Drop => AdjacencyKind::BlackHole,
        };
        Ok(self.intern(kind, view))
    }

    /// The number of the stack an adjacency pushes, plus one.
    fn push(&mut self, labels: &[u32]) -> Result<u16, SpecError> {
        if labels.is_empty() {
            return Ok(0);
        }
        let number = self.stacks.find(labels).unwrap_or_else(|| {
            let mut stack = Stack { entries: [[0; 4]; MAX_PUSH], len: labels.len().min(MAX_PUSH) as u8 };
            for (entry, label) in stack.entries.iter_mut().zip(labels) {
                *entry = (label << 12).to_be_bytes();
            }
            self.restacked = true;
            self.stacks.insert(labels.to_vec(), stack)
        });
        u16::try_from(number + 1)
            .map_err(|_| SpecError::new("labels", number, "is one label stack too many: at most 65535 different ones"))
    }

    fn intern(&mut self, kind: AdjacencyKind, view: &View<'_>) -> u32 {
        if let Some(number) = self.adjacencies.find(&kind) {
            return number;
        }
        let adjacency = make(kind, view);
        let number = self.adjacencies.insert(kind, adjacency);
        if let Some(push) = push_of(kind) {
            self.stacks.retain(push);
        }
        if let AdjacencyKind::Neighbour(host, _) = kind {
            self.by_host.entry(host).or_default().insert(number);
            self.mark(host, adjacency.next);
        }
        number
    }

    fn mark(&mut self, host: Host, next: Next) {
        if next == Next::Unresolved {
            self.unresolved.insert(host);
        } else {
            self.unresolved.remove(&host);
        }
    }

    /// The adjacency to a neighbour, in use from now on.
    pub(super) fn use_neighbour(&mut self, host: Host, view: &View<'_>) -> u32 {
        let number = self.intern(AdjacencyKind::Neighbour(host, 0), view);
        self.adjacencies.retain(number);
        number
    }

    /// The adjacency to whoever is on an interface, in use from now on.
    pub(super) fn use_glean(&mut self, interface: u16, view: &View<'_>) -> u32 {
        let number = self.intern(AdjacencyKind::Glean(interface, 0), view);
        self.adjacencies.retain(number);
        number
    }

    /// An adjacency is used once less.
    pub(super) fn release(&mut self, adjacency: u32) {
        self.adjacencies.release(adjacency);
    }

    /// A neighbour's MAC address changed: rewrites the adjacencies to it, wherever they are used.
    pub(super) fn refresh_host(&mut self, host: Host, view: &View<'_>) {
        for number in self.by_host.get(&host).cloned().unwrap_or_default() {
            self.refresh(number, view);
        }
    }

    /// Interfaces changed: rewrites all.
    pub(super) fn refresh_all(&mut self, view: &View<'_>) {
        (0..self.adjacencies.bound() as u32).for_each(|number| self.refresh(number, view));
    }

    fn refresh(&mut self, number: u32, view: &View<'_>) {
        let Some((&kind, _)) = self.adjacencies.get(number) else { return };
        let adjacency = make(kind, view);
        if let Some(slot) = self.adjacencies.get_mut(number) {
            *slot = adjacency;
        }
        if let AdjacencyKind::Neighbour(host, _) = kind {
            self.mark(host, adjacency.next);
        }
    }

    /// Frees what nobody uses. Only when no table leads there.
    pub(super) fn sweep(&mut self, links: &mut Links) {
        for (_, paths, set) in self.sets.sweep() {
            paths.iter().filter_map(link_of).for_each(|link| links.mention(link, false));
            set.uses.into_iter().for_each(|n| self.adjacencies.release(n));
            self.free_groups.extend(set.group);
        }
        for (number, kind, _) in self.adjacencies.sweep() {
            if let Some(push) = push_of(kind) {
                self.stacks.release(push);
            }
            let AdjacencyKind::Neighbour(host, _) = kind else { continue };
            if let Some(numbers) = self.by_host.get_mut(&host) {
                numbers.remove(&number);
                if numbers.is_empty() {
                    self.by_host.remove(&host);
                    self.unresolved.remove(&host);
                }
            }
        }
        self.stacks.sweep();
    }

    /// Neighbours that some adjacency waits for.
    pub(super) fn unresolved(&self) -> &BTreeSet<Host> {
        &self.unresolved
    }

    /// How many things use a neighbour's adjacencies: paths, and its own entry.
    pub(super) fn users_of(&self, host: Host) -> u32 {
        let numbers = self.by_host.get(&host).into_iter().flatten();
        numbers.map(|&number| self.adjacencies.users(number)).sum()
    }

    /// One adjacency.
    pub(super) fn adjacency(&self, number: u32) -> Adjacency {
        self.adjacencies.get(number).map_or(Adjacency::drop(DropReason::NoRoute), |(_, adjacency)| *adjacency)
    }

    /// The distinct adjacencies of a next hop number.
    pub(super) fn adjacencies_of(&self, hop: u32) -> Vec<Adjacency> {
        let mut numbers = match hop & GROUP {
            0 => vec![hop],
            _ => self.groups.get((hop & !GROUP) as usize).map_or(Vec::new(), |group| group.paths.to_vec()),
        };
        numbers.dedup();
        numbers.into_iter().map(|number| self.adjacency(number)).collect()
    }

    /// All adjacencies by number.
    pub(super) fn table(&self) -> Vec<Adjacency> {
        let mut table = vec![Adjacency::drop(DropReason::NoRoute); self.adjacencies.bound()];
        for (number, _, adjacency) in self.adjacencies.iter() {
            if let Some(slot) = table.get_mut(number as usize) {
                *slot = *adjacency;
            }
        }
        table
    }

    /// One more than the largest number of an adjacency.
    pub(super) fn adjacency_count(&self) -> usize {
        self.adjacencies.bound()
    }

    /// All groups by number.
    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// All stacks by number, and whether there are others than when this was last asked.
    pub(super) fn take_stacks(&mut self) -> (Vec<Stack>, bool) {
        let mut table = vec![Stack { entries: [[0; 4]; MAX_PUSH], len: 0 }; self.stacks.bound()];
        for (number, _, stack) in self.stacks.iter() {
            if let Some(slot) = table.get_mut(number as usize) {
                *slot = *stack;
            }
        }
        (table, std::mem::take(&mut self.restacked))
    }
}

fn link_of(path: &Path) -> Option<Link> {
    match path.hop {
        Hop::Via { link, .. } => link,
        Hop::Station { link, .. } | Hop::Connected { link } => Some(link),
        Hop::Drop => None,
    }
}

/// The number of the stack that is pushed.
fn push_of(kind: AdjacencyKind) -> Option<u32> {
    match kind {
        AdjacencyKind::Neighbour(_, push) | AdjacencyKind::Station { push, .. } | AdjacencyKind::Glean(_, push) => {
            u32::from(push).checked_sub(1)
        }
        AdjacencyKind::Fixed(_) | AdjacencyKind::BlackHole => None,
    }
}

fn make(kind: AdjacencyKind, view: &View<'_>) -> Adjacency {
    let on = |interface: u16, dst: Option<MacAddr>, from: Option<MacAddr>, push: u16, next: Next| {
        let port = view.links.port(interface);
        let egress = view.links.link(interface).port as u16;
        let src = from.unwrap_or(port.mac);
        let adjacency = Adjacency::forward(egress, interface, dst.unwrap_or_default(), src);
        Adjacency { mtu: port.mtu, tag: view.links.tag(interface), next, push, ..adjacency }
    };
    match kind {
        // These three are never made anew.
        AdjacencyKind::Fixed(1) => Adjacency::drop(DropReason::MartianDestination),
        AdjacencyKind::Fixed(2) => Adjacency::LOCAL,
        AdjacencyKind::Fixed(_) => Adjacency::drop(DropReason::NoRoute),
        AdjacencyKind::Neighbour(host, push) => {
            let mac = view.neighbours.mac(host);
            on(host.1, mac, None, push, if mac.is_some() { Next::Forward } else { Next::Unresolved })
        }
        AdjacencyKind::Station { interface, mac, from, push } => on(interface, Some(mac), from, push, Next::Forward),
        AdjacencyKind::Glean(interface, push) => on(interface, None, None, push, Next::Glean),
        AdjacencyKind::BlackHole => Adjacency::drop(DropReason::BlackHole),
    }
}
