//! A router: its configuration, what it learned, and the tables made of both.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::{mpsc::Receiver, Arc},
    time::Duration,
};

use super::{derived, fibs, hops, links, neighbours, rib};
use crate::{
    fib::{FibError, FibMaker, Lookup4, Lookup6},
    model::{Event, PortInfo, Remote},
    tables::{Labels, Overlay, Probe, Tables},
    Prefix, Reader, Shared,
};

/// Settings that do not change while a router runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Whether ports take only frames for their own MAC address; by default those do that have an IP address.
    pub check_mac: Option<bool>,
    /// Most ICMP errors an lcore sends in a second.
    pub icmp_errors_per_second: u32,
    /// After how long a learned neighbour is asked whether it is still there.
    pub neighbour_age: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self { check_mac: None, icmp_errors_per_second: 1000, neighbour_age: Duration::from_secs(300) }
    }
}

/// Most events read in one [`Router::tick`].
pub const EVENTS: usize = 4096;

/// How long a table that refused what was learned is left alone: it may be filled anew each time.
const RETRY: Duration = Duration::from_secs(5);

/// The routing configuration, what was learned, and the tables made of both.
#[derive(Debug)]
pub struct Router {
    pub(super) policy: Policy,
    pub(super) links: links::Links,
    pub(super) rib: rib::Rib,
    pub(super) derived: derived::Derived,
    /// The adjacency of each interface with a connected prefix.
    pub(super) gleans: BTreeMap<u16, u32>,
    pub(super) neighbours: neighbours::Neighbours,
    /// Tunnel ends that were learned.
    pub(super) remotes: BTreeSet<Remote>,
    pub(super) hops: hops::Hops,
    /// What the forwarding tables hold, IPv4 first.
    pub(super) installed: BTreeMap<Prefix, u32>,
    pub(super) counts: [usize; 2],
    pub(super) fib4: fibs::Pair<dyn Lookup4>,
    pub(super) fib6: fibs::Pair<dyn Lookup6>,
    pub(super) maker: Box<dyn FibMaker>,
    pub(super) labels: Arc<Labels>,
    pub(super) overlay: Arc<Overlay>,
    /// What the overlay asked for, and was told.
    pub(super) asked: Vec<(IpAddr, u32)>,
    pub(super) probes: Vec<Probe>,
    pub(super) probe_round: u64,
    pub(super) now: Duration,
    pub(super) dirty: rib::Dirty,
    /// Neighbours that were learned may not be on a link any more.
    pub(super) recheck: bool,
    pub(super) trouble: Option<FibError>,
    /// Not before then is a table asked again that refused.
    pub(super) retry: Duration,
    pub(super) shared: Shared<Tables>,
}

impl Router {
    /// A router without configuration on these ports, with large tables from `maker`.
    pub fn new(ports: &[PortInfo], policy: Policy, maker: Box<dyn FibMaker>) -> Result<Self, FibError> {
        let links = links::Links::new(ports);
        let macs: Vec<_> = ports.iter().map(|port| port.mac).collect();
        let mut router = Self {
            policy,
            derived: derived::Derived::new(&BTreeMap::new(), &links),
            links,
            rib: rib::Rib::default(),
            gleans: BTreeMap::new(),
            neighbours: neighbours::Neighbours::new(policy.neighbour_age),
            remotes: BTreeSet::new(),
            hops: hops::Hops::new(),
            installed: BTreeMap::new(),
            counts: [0; 2],
            fib4: fibs::Pair::new()?,
            fib6: fibs::Pair::new()?,
            maker,
            labels: Arc::default(),
            overlay: Arc::default(),
            asked: Vec::new(),
            probes: Vec::new(),
            probe_round: 0,
            now: Duration::ZERO,
            dirty: rib::Dirty { touched: derived::martians().to_vec(), ..rib::Dirty::default() },
            recheck: false,
            trouble: None,
            retry: Duration::ZERO,
            shared: Shared::new(Tables::bare(&macs)),
        };
        router.settle()?;
        router.publish();
        Ok(router)
    }

    /// What an lcore reads the tables through.
    pub fn reader(&self) -> Reader<Tables> {
        self.shared.reader()
    }

    /// The tables as they are now.
    pub fn tables(&self) -> Arc<Tables> {
        self.shared.current()
    }

    /// Reads what lcores have learned, lets neighbours grow old, asks for those that are wanted, and publishes the result,
    /// once. `now` is the time since any fixed moment. To be called some times a second.
    pub fn tick(&mut self, now: Duration, events: &Receiver<Event>) {
        self.now = now.max(self.now);
        for event in events.try_iter().take(EVENTS) {
            match event {
                Event::Neighbour { interface, addr, mac } => self.learn((addr, interface), mac),
                Event::Remote { vni, addr } => self.learn_remote(Remote { vni, addr }),
            }
        }
        let probes = self.age();
        // A table that refuses a neighbour keeps what it has; the change stays noted and is tried again.
        let mut changed = false;
        if self.now >= self.retry {
            let settled = self.settle();
            changed = *settled.as_ref().unwrap_or(&false);
            self.trouble = settled.err();
            self.retry = if self.trouble.is_some() { self.now + RETRY } else { Duration::ZERO };
        }
        changed |= self.dirty.adjacencies || self.dirty.overlay;
        if !probes.is_empty() {
            self.probe_round += 1;
        }
        if changed || !probes.is_empty() {
            if !probes.is_empty() {
                self.probes = probes;
            }
            self.publish();
        }
        self.shared.reap();
    }

    /// Why the forwarding table did not take what was learned, if it did not.
    pub fn trouble(&self) -> Option<&FibError> {
        self.trouble.as_ref()
    }
}
