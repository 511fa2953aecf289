//! A learning bridge: a simple one, as IEEE 802.1Q describes it, without spanning tree.

mod counters;
mod flood;
mod scratch;
mod seconds;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use counters::BridgeCounters;
use packet::{Alloc, Burst, Clock};
use scratch::BridgeScratch;
use seconds::Seconds;

use crate::{
    fdb::Fdb,
    node::{NodeStats, NodeTimer},
    Dispatch, DropReason, Function, Outputs,
};

/// The bridge function: three nodes, `bridge-input` (checks, learning), `bridge-lookup` (forwarding database) and
/// `bridge-flood` (frames to all other ports, and whatever else is in their bursts; not called without any).
///
/// Stations are learned by VID (independent learning, IEEE 802.1Q 8.8.8): untagged and priority-tagged frames are
/// domain 0 of the [`Fdb`], tagged ones the domain of their outer VID. Tags are neither checked nor changed; group
/// addresses are always flooded. A frame to
/// `n` other ports is one frame forwarded and `n - 1` originated. A burst whose frames all leave by one port is
/// never sorted, and frames of one flow stay in order.
#[derive(Debug)]
pub struct Bridge<A> {
    fdb: Arc<Fdb>,
    ports: usize,
    alloc: A,
    seconds: Seconds,
    scratch: Box<BridgeScratch>,
    counters: BridgeCounters,
    nodes: [NodeStats; 3],
}

impl<A: Alloc> Bridge<A> {
    /// A bridge between ports 0 to `ports - 1`, one instance for each lcore, all with the same `fdb`, whose seconds are
    /// those of a clock of `hz` ticks a second. `alloc` makes the buffers of copies, which only more than two ports
    /// need.
    pub fn new(fdb: Arc<Fdb>, ports: usize, alloc: A, hz: u64) -> Self {
        Self {
            fdb,
            ports,
            alloc,
            seconds: Seconds::new(hz),
            scratch: Box::default(),
            counters: BridgeCounters::default(),
            nodes: [NodeStats::new("bridge-input"), NodeStats::new("bridge-lookup"), NodeStats::new("bridge-flood")],
        }
    }

    /// What was counted.
    pub fn bridged(&self) -> BridgeCounters {
        self.counters
    }

    /// The forwarding database.
    pub fn fdb(&self) -> &Fdb {
        &self.fdb
    }
}

impl<A: Alloc> Function<A::Buf> for Bridge<A> {
    #[inline]
    fn process<C: Clock>(
        &mut self,
        ingress: usize,
        burst: &mut Burst<A::Buf>,
        out: &mut Outputs<A::Buf>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        let Self { fdb, ports, alloc, seconds, scratch, counters, nodes: [input, lookup, flood] } = self;
        if ingress >= *ports {
            out.drops.drop_all(burst, DropReason::NoPort);
            return Dispatch::Split;
        }
        let n = burst.len();
        let now_s = seconds.second_of(timer.now());
        scratch.gather(burst, fdb);
        scratch.learn(n, fdb, ingress, now_s, counters);
        timer.end_node(input, n);
        scratch.lookup(n, fdb, ingress, now_s);
        let floods = scratch.flood.count_ones();
        if floods == 0 {
            let dispatch = match scratch.only_port(n) {
                Some(port) => out.all(port, burst),
                None => scratch.sort(burst, out),
            };
            timer.end_node(lookup, n);
            return dispatch;
        }
        timer.end_node(lookup, n);
        counters.flooded += u64::from(floods);
        scratch.aim(n, ingress, *ports);
        let dispatch = match scratch.only_port(n) {
            Some(port) => out.all(port, burst),
            None if scratch.flood == 0 => scratch.sort(burst, out),
            None => scratch.sort_and_flood(burst, out, ingress, *ports, alloc, counters),
        };
        timer.end_node(flood, floods as usize);
        dispatch
    }

    fn nodes(&self, visit: &mut dyn FnMut(&NodeStats)) {
        self.nodes.iter().for_each(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let BridgeCounters { learned, moved, flooded, fdb_full, copies_missing } = self.counters;
        visit("bridge-learned", learned);
        visit("bridge-moved", moved);
        visit("bridge-flooded", flooded);
        visit("bridge-fdb-full", fdb_full);
        visit("bridge-copies-missing", copies_missing);
    }
}
