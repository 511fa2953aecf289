//! A whole data plane: a function on every lcore and the control side that they share.

mod any;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    sync::{mpsc, Arc},
    time::Duration,
};

use packet::Alloc;

pub use any::AnyFunction;

use crate::{
    bridge::Bridge,
    fdb::{Entry, Fdb},
    fib::{FibError, FibMaker},
    l3::L3,
    local::Local,
    model::{BridgeEntry, Event, Events, Item, Key, Op, OpError, OpErrorKind, PortInfo, Refusal},
    mpls::Mpls,
    router::{Counts, NeighbourRow, RouteRow, Router, EVENTS},
    spec::{FunctionKind, PlaneSpec},
    tables::{Overlay, Tables},
    vxlan::Vxlan,
    Null, PortMap, Reader, SpecError, L2,
};

/// The control side of a running data plane. It makes the functions, one for each lcore, and changes under them what they
/// forward by; no frame waits for it.
#[derive(Debug)]
pub struct Plane {
    kind: FunctionKind,
    ports: usize,
    router: Router,
    events: mpsc::Receiver<Event>,
    sender: Events,
    fdb: Arc<Fdb>,
    /// The overlay and the stations of the bridge that `fdb` has been told of.
    overlay: Arc<Overlay>,
    bridge: BTreeSet<BridgeEntry>,
}

impl Plane {
    /// A data plane between these ports. Errors name the entry that is wrong. `fibs` makes the tables of larger sets of
    /// routes.
    pub fn new(spec: &PlaneSpec, ports: &[PortInfo], fibs: Box<dyn FibMaker>) -> Result<Self, SpecError> {
        spec.validate()?;
        let refused = |e: FibError| SpecError::new("routes", spec.routes.len(), e.to_string());
        let mut router = Router::new(ports, spec.policy(), fibs).map_err(refused)?;
        let ops: Vec<_> = spec.items().map(|(_, item)| Op::Add(item)).collect();
        let name = |index| spec.items().nth(index).map_or_else(|| "spec".to_owned(), |(name, _)| name);
        router.apply(&ops).map_err(|e| e.clone().into_spec(name(e.index)))?;
        let (sender, events) = mpsc::sync_channel(EVENTS);
        let (ageing, entries) = spec.stations();
        let fdb = Arc::new(Fdb::new(entries as usize).with_ageing(ageing.as_secs().clamp(1, 1 << 30) as u32));
        let (overlay, bridge) = (Arc::default(), BTreeSet::new());
        let mut plane = Self { kind: spec.kind, ports: ports.len(), router, events, sender, fdb, overlay, bridge };
        plane.program();
        Ok(plane)
    }

    /// The function for one lcore, which are counted from 0. `alloc` makes the frames it sends on its own account; `hz` is
    /// the rate of the clock that it is run with.
    pub fn function<A: Alloc + Clone>(&self, alloc: A, hz: u64, lcore: usize) -> AnyFunction<A> {
        let map = PortMap::pairs(self.ports);
        match self.kind {
            FunctionKind::Null | FunctionKind::Pass => AnyFunction::Null(Null::new(map)),
            FunctionKind::L2 => AnyFunction::L2(L2::new(map, false)),
            FunctionKind::L2MacSwap => AnyFunction::L2(L2::new(map, true)),
            FunctionKind::Bridge => AnyFunction::Bridge(Bridge::new(self.fdb(), self.ports, alloc, hz)),
            FunctionKind::L3 => AnyFunction::L3(self.l3(alloc, hz, lcore)),
            FunctionKind::Mpls => AnyFunction::Mpls(Mpls::new(self.reader(), self.l3(alloc, hz, lcore))),
            FunctionKind::Vxlan => {
                let inner = self.l3(alloc.clone(), hz, lcore);
                AnyFunction::Vxlan(Vxlan::new(self.reader(), inner, self.fdb(), alloc, self.events(), hz))
            }
        }
    }

    fn l3<A: Alloc>(&self, alloc: A, hz: u64, lcore: usize) -> L3<A> {
        L3::new(self.reader(), Local::new(alloc, self.events(), hz, lcore == 0))
    }

    /// The stations of the bridge or of the VXLAN networks.
    pub fn fdb(&self) -> Arc<Fdb> {
        Arc::clone(&self.fdb)
    }

    /// The function.
    pub fn kind(&self) -> FunctionKind {
        self.kind
    }

    /// What an lcore reads the tables through.
    pub fn reader(&self) -> Reader<Tables> {
        self.router.reader()
    }

    /// Where an lcore tells what it learns.
    pub fn events(&self) -> Events {
        self.sender.clone()
    }

    /// Makes all these changes, or, with an error, none of them. What a change needs may come later in the batch.
    pub fn apply(&mut self, ops: &[Op]) -> Result<(), OpError> {
        for (index, op) in ops.iter().enumerate() {
            self.usable(op).map_err(|e| Refusal::from(e).of_op(index, op))?;
        }
        self.router.apply(ops).map_err(|e| self.explain(ops, e))?;
        self.program();
        Ok(())
    }

    /// Tells a station that was learned from one that is not known at all: only the table of stations has the former.
    fn explain(&self, ops: &[Op], error: OpError) -> OpError {
        let Some(op @ Op::Del(key @ Key::Fdb(vni, mac))) = ops.get(error.index) else { return error };
        let domain = vni.and_then(|vni| self.overlay.domain_of(vni));
        let is_it = |e: Entry| e.mac == *mac && e.age_s.is_some() && (vni.is_none() || domain == Some(e.domain));
        if error.kind == OpErrorKind::NotThere && self.fdb.entries(0).any(is_it) {
            return Refusal::learned(key).of_op(error.index, op);
        }
        error
    }

    /// Makes the table of stations follow the configuration.
    fn program(&mut self) {
        let overlay = Arc::clone(&self.router.tables().overlay);
        if !Arc::ptr_eq(&overlay, &self.overlay) {
            overlay.program(&self.fdb, Some(&self.overlay));
            self.overlay = overlay;
        }
        if self.kind == FunctionKind::Bridge {
            let now: BTreeSet<_> = self.router.bridge_entries().collect();
            let domain = |entry: &BridgeEntry| entry.link.vlan.unwrap_or(0);
            for gone in self.bridge.difference(&now) {
                self.fdb.remove(domain(gone), gone.mac);
            }
            for new in now.difference(&self.bridge) {
                self.fdb.set_static(domain(new), new.mac, new.link.port as u16);
            }
            self.bridge = now;
        }
    }

    /// Whether the function has such an entry.
    fn usable(&self, op: &Op) -> Result<(), SpecError> {
        self.kind.uses(match op.noun() {
            "address" => "addresses",
            "route" => "routes",
            "neighbour" => "neighbours",
            "label" => "labels",
            "network" => "networks",
            "remote" => "remotes",
            noun => noun,
        })?;
        match op {
            Op::Add(Item::Fdb(fdb)) | Op::Replace(Item::Fdb(fdb)) => self.kind.takes(fdb, || "fdb".to_owned()),
            Op::Del(key @ Key::Fdb(vni, _)) if vni.is_some() != (self.kind == FunctionKind::Vxlan) => {
                let legal = if vni.is_some() { "must be MAC alone" } else { "must be VNI MAC" };
                Err(SpecError::new("fdb del", key, legal))
            }
            _ => Ok(()),
        }
    }

    /// Takes in what lcores have learned, lets it grow old and asks for neighbours. `now` is the time since any fixed
    /// moment; to be called some times a second.
    pub fn tick(&mut self, now: Duration) {
        self.router.tick(now, &self.events);
        self.program();
    }

    /// Why the forwarding table did not take what was learned, if it did not.
    pub fn trouble(&self) -> Option<&FibError> {
        self.router.trouble()
    }

    /// Everything that is configured and learned.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// The tables as they are now.
    pub fn tables(&self) -> Arc<Tables> {
        self.router.tables()
    }

    /// The forwarding table, IPv4 first.
    pub fn routes(&self) -> impl Iterator<Item = RouteRow<'_>> + '_ {
        self.router.routes()
    }

    /// The neighbours.
    pub fn neighbours(&self) -> impl Iterator<Item = NeighbourRow> + '_ {
        self.router.neighbours()
    }

    /// Everything configured, as it would be given again: addresses first.
    pub fn config(&self) -> impl Iterator<Item = Item> + '_ {
        self.router.config()
    }

    /// How much there is of everything.
    pub fn counts(&self) -> Counts {
        self.router.counts()
    }
}
