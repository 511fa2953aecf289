//! Changes of the configuration: all of a batch, or nothing.

use std::{
    net::IpAddr,
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

use super::{
    derived::Derived,
    fibs::{Changes, Table},
    hops::view,
    rib::{Dirty, Slot},
    state::Router,
};
use crate::{
    fib::FibError,
    model::{Op, OpError, OpErrorKind, Refusal},
    tables::{Tables, GROUP},
    Prefix, Shared, SpecError,
};

/// How long readers have to let go of a table before another one is made in its place.
const UNUSED_WITHIN: Duration = Duration::from_millis(200);

/// What is wrong, and with which change.
type Failure = (usize, Refusal);

impl Router {
    /// Makes all these changes, or, with an error, none of them. What a change needs may come later in the batch.
    pub fn apply(&mut self, ops: &[Op]) -> Result<(), OpError> {
        let mut undo = Vec::with_capacity(ops.len());
        let result = self.attempt(ops, &mut undo);
        let Err((index, refusal)) = result else {
            (self.trouble, self.retry) = (None, Duration::ZERO);
            self.publish();
            return Ok(());
        };
        let readdressed = self.dirty.addresses;
        for slot in undo.into_iter().rev() {
            self.set_slot(slot);
        }
        // Compiling what was there before cannot fail: it is what it was.
        self.dirty.addresses |= readdressed;
        let _ = self.readdress();
        self.hops.refresh_all(&view(&self.links, &self.derived, &self.neighbours));
        let touched = std::mem::take(&mut self.dirty.touched);
        self.dirty = Dirty { touched, ..Default::default() };
        // An empty batch has no change to blame, but may bring to light that a table refuses what was learned.
        Err(match ops.get(index) {
            Some(op) => refusal.of_op(index, op),
            None => OpError { index, op: String::new(), kind: refusal.kind, why: refusal.why },
        })
    }

    fn attempt(&mut self, ops: &[Op], undo: &mut Vec<Slot>) -> Result<(), Failure> {
        let mut new = Vec::new();
        let mut sets = Vec::new();
        for (index, op) in ops.iter().enumerate() {
            let slot = self.plan(op, &mut new).map_err(|e| (index, e))?;
            undo.push(self.set_slot(slot));
            sets.extend(new.drain(..).map(|set| (set, index)));
        }
        let last = ops.len().saturating_sub(1);
        let culprit = |set| sets.iter().find(|(new, _)| *new == set).map_or(last, |&(_, index)| index);
        self.readdress().map_err(|(set, error)| (culprit(set), error.into()))?;
        for (set, index) in sets {
            if !self.hops.used(set) {
                continue;
            }
            let view = view(&self.links, &self.derived, &self.neighbours);
            self.hops.compile(set, &view).map_err(|e| (index, e.into()))?;
        }
        for (index, op) in ops.iter().enumerate() {
            self.check_after(op).map_err(|e| (index, e.into()))?;
        }
        if self.dirty.overlay || self.dirty.addresses {
            self.check_networks().map_err(|e| (last, e.into()))?;
        }
        self.dirty.addresses = false;
        self.settle().map_err(|e| (last, e.into()))?;
        Ok(())
    }

    /// After a change of addresses or links: what follows from them.
    fn readdress(&mut self) -> Result<(), (u32, SpecError)> {
        let relinked = self.links.take_changed();
        if self.dirty.addresses || self.links.count_all() != self.derived.interfaces.len() {
            let derived = Derived::new(&self.rib.addresses, &self.links);
            let before = std::mem::replace(&mut self.derived, derived);
            self.dirty.touched.extend(self.derived.differences(&before));
            self.reglean();
            self.recheck = true;
        }
        if self.dirty.addresses {
            let mut moved = Vec::new();
            for set in self.hops.sets() {
                match self.hops.compile(set, &view(&self.links, &self.derived, &self.neighbours)) {
                    Ok(true) => moved.push(set),
                    Ok(false) => {}
                    Err(e) => {
                        let (noun, name) = self.user_of(set).unwrap_or_default();
                        return Err((set, SpecError::new(noun, name, format!("would have no path left: {e}"))));
                    }
                }
            }
            if !moved.is_empty() {
                self.dirty.labels = true;
                let routes = self.rib.routes.iter().filter(|(_, set)| moved.binary_search(set).is_ok());
                self.dirty.touched.extend(routes.map(|(prefix, _)| *prefix));
            }
        }
        if relinked || self.dirty.addresses {
            self.hops.refresh_all(&view(&self.links, &self.derived, &self.neighbours));
            self.dirty.adjacencies = true;
        }
        Ok(())
    }

    /// A route or label with this set of paths.
    fn user_of(&self, set: u32) -> Option<(&'static str, String)> {
        let route = self.rib.routes.iter().find(|&(_, &s)| s == set).map(|(prefix, _)| ("route", prefix.to_string()));
        let label =
            || self.rib.labels.iter().find(|(_, (_, s))| *s == Some(set)).map(|(l, _)| ("label", l.to_string()));
        route.or_else(label)
    }

    /// Keeps the adjacencies of interfaces with connected prefixes in use.
    fn reglean(&mut self) {
        let view = view(&self.links, &self.derived, &self.neighbours);
        let mut gleans = std::collections::BTreeMap::new();
        for &number in self.derived.connected.values() {
            gleans.entry(number).or_insert_with(|| self.hops.use_glean(number, &view));
        }
        for (_, before) in std::mem::replace(&mut self.gleans, gleans) {
            self.hops.release(before);
        }
    }

    /// Brings the forwarding tables in line with everything else; `true` when that changed them. After an error they are
    /// as they were, and what should have changed is still noted.
    pub(super) fn settle(&mut self) -> Result<bool, FibError> {
        let mut touched = std::mem::take(&mut self.dirty.touched);
        touched.sort_unstable();
        touched.dedup();
        let (mut before, mut changes) = (Vec::new(), [Changes::new(), Changes::new()]);
        for &prefix in &touched {
            let want = self.wanted(prefix).map(|(_, hop)| hop);
            let have = self.install(prefix, want);
            if have != want {
                before.push((prefix, have));
                let [four, six] = &mut changes;
                if prefix.addr().is_ipv4() { four } else { six }.push((prefix, want));
            }
        }
        if let Err(error) = self.change(changes) {
            for (prefix, hop) in before {
                self.install(prefix, hop);
            }
            self.dirty.touched = touched;
            return Err(error);
        }
        self.hops.sweep(&mut self.links);
        if self.links.take_changed() {
            self.dirty.adjacencies = true;
            self.hops.refresh_all(&view(&self.links, &self.derived, &self.neighbours));
        }
        Ok(!before.is_empty())
    }

    /// Notes what the tables hold for a prefix; returns what they held.
    fn install(&mut self, prefix: Prefix, hop: Option<u32>) -> Option<u32> {
        let before = match hop {
            Some(hop) => self.installed.insert(prefix, hop),
            None => self.installed.remove(&prefix),
        };
        let count = &mut self.counts[usize::from(prefix.addr().is_ipv6())];
        *count = *count + usize::from(hop.is_some()) - usize::from(before.is_some());
        before
    }

    fn change(&mut self, [four, six]: [Changes; 2]) -> Result<(), FibError> {
        let Self { fib4, fib6, installed, counts: [n4, n6], maker, shared, .. } = self;
        shared.reap();
        let all = |ip4: bool| {
            let routes = installed.iter().filter(move |(prefix, _)| prefix.addr().is_ipv4() == ip4);
            routes.map(|(prefix, hop)| (*prefix, Some(*hop)))
        };
        let mut made4 = None;
        if !four.is_empty() {
            made4 =
                Some(fib4.prepare(four, (*n4, || all(true)), &**maker, &mut |table| wait_until_unused(shared, table))?);
        }
        if !six.is_empty() {
            let made6 =
                fib6.prepare(six, (*n6, || all(false)), &**maker, &mut |table| wait_until_unused(shared, table))?;
            fib6.commit(made6);
        }
        made4.into_iter().for_each(|made| fib4.commit(made));
        Ok(())
    }

    /// The next hop number of an address, as the tables have it.
    pub(super) fn lookup(&self, addr: IpAddr) -> u32 {
        let mut hop = [0];
        match addr {
            IpAddr::V4(addr) => self.fib4.live().lookup(&[addr.into()], &mut hop),
            IpAddr::V6(addr) => self.fib6.live().lookup(&[addr.octets()], &mut hop),
        }
        (hop[0] as u32) & (GROUP | (GROUP - 1))
    }
}

/// Waits, but not for long, until no snapshot has a table.
fn wait_until_unused<T: Table + ?Sized>(shared: &mut Shared<Tables>, table: &mut Arc<T>) -> bool {
    let start = Instant::now();
    loop {
        shared.reap();
        if Arc::get_mut(table).is_some() {
            return true;
        }
        if start.elapsed() > UNUSED_WITHIN {
            return false;
        }
        sleep(Duration::from_millis(1));
    }
}

impl From<FibError> for Refusal {
    fn from(error: FibError) -> Self {
        Self { kind: OpErrorKind::Table, why: error.to_string() }
    }
}
