//! IPv4 and IPv6 routing: the checks of RFC 1812, the FIB, one TTL less, new MAC addresses.

mod framing;
mod hash;
mod input;
mod quick;
mod rewrite;
mod scratch;
#[cfg(test)]
mod tests;

use packet::{Alloc, Burst, Clock};

use hash::flow_hash;
use scratch::{RouteOutcome, RouteScratch};

use crate::{
    local::{Ingress, Local},
    node::{NodeStats, NodeTimer},
    tables::Tables,
    Dispatch, DropReason, Function, Outputs, Reader,
};

/// The L3 function: the nodes `l3-input` (checks), `l3-lookup` (FIB), `l3-rewrite` (TTL, tags, labels, MAC addresses), and
/// `ip-local` for what is not simply forwarded.
///
/// Frames are untagged or have one VLAN tag. A burst whose frames all leave by one port is rewritten in place and never
/// sorted. Functions that uncover IP packets (`mpls`) give them to [`Function::process`] as Ethernet frames to the ingress
/// port. An IPv4 packet longer than its egress link takes is dropped even when it may be fragmented: there is no
/// fragmentation.
#[derive(Debug)]
pub struct L3<A: Alloc> {
    tables: Reader<Tables>,
    local: Local<A>,
    scratch: Box<RouteScratch>,
    /// The frames of a burst that `local` gets.
    aside: Burst<A::Buf>,
    nodes: [NodeStats; 3],
}

impl<A: Alloc> L3<A> {
    /// Routes by these tables; what is exceptional goes to `local`.
    pub fn new(tables: Reader<Tables>, local: Local<A>) -> Self {
        Self {
            tables,
            local,
            scratch: Box::default(),
            aside: Burst::new(),
            nodes: [NodeStats::new("l3-input"), NodeStats::new("l3-lookup"), NodeStats::new("l3-rewrite")],
        }
    }

    /// The exceptional path, for functions built on this one.
    pub fn local(&mut self) -> &mut Local<A> {
        &mut self.local
    }
}

impl<A: Alloc> Function<A::Buf> for L3<A> {
    #[inline]
    fn process<C: Clock>(
        &mut self,
        ingress: usize,
        burst: &mut Burst<A::Buf>,
        out: &mut Outputs<A::Buf>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        let Self { tables, local, scratch, aside, nodes: [input, lookup, rewrite] } = self;
        let tables = tables.get();
        let Some(port) = tables.ports.get(ingress) else {
            out.drops.drop_all(burst, DropReason::NoPort);
            return Dispatch::Split;
        };
        let n = burst.len();
        scratch.input(burst, port, &tables.interfaces);
        timer.end_node(input, n);
        scratch.lookup(burst, tables);
        timer.end_node(lookup, n);
        if let Some(port) = scratch.rewrite(burst, tables, &mut out.drops) {
            timer.end_node(rewrite, n);
            return out.all(port, burst);
        }
        scratch.split(burst, tables, out, aside);
        timer.end_node(rewrite, n);
        if !aside.is_empty() {
            let n = aside.len();
            hand_over(scratch, aside, local, ingress, tables, out, timer.now());
            timer.end_node(local.node_mut(), n);
        }
        Dispatch::Split
    }

    #[inline]
    fn due(&mut self) -> bool {
        self.local.due(self.tables.get())
    }

    /// Frames whose neighbour has become known are routed once more, and counted by the nodes once more.
    fn poll<C: Clock>(
        &mut self,
        burst: &mut Burst<A::Buf>,
        out: &mut Outputs<A::Buf>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        let ingress = self.local.poll(self.tables.get(), burst, out, timer.now());
        // A look in vain takes time, but is no call.
        match burst.len() {
            0 => timer.charge(self.local.node_mut()),
            n => timer.end_node(self.local.node_mut(), n),
        }
        if let Some(ingress) = ingress.filter(|_| !burst.is_empty()) {
            // Probes may already wait for any port, so that these cannot leave alone.
            if let Dispatch::All(port) = self.process(usize::from(ingress), burst, out, timer) {
                burst.drain(..).for_each(|frame| out.push(port, frame));
            }
        }
        Dispatch::Split
    }

    fn release(&mut self) {
        self.local.release();
    }

    #[inline]
    fn held(&self) -> usize {
        self.local.held()
    }

    fn nodes(&self, visit: &mut dyn FnMut(&NodeStats)) {
        self.nodes.iter().for_each(&mut *visit);
        visit(self.local.node());
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.local.counters(visit);
    }
}

/// Gives `local` the frames set aside, each with what is to be done with it.
#[inline(never)]
fn hand_over<A: Alloc>(
    scratch: &RouteScratch,
    aside: &mut Burst<A::Buf>,
    local: &mut Local<A>,
    ingress: usize,
    tables: &Tables,
    out: &mut Outputs<A::Buf>,
    now: u64,
) {
    for (i, frame) in scratch.set_aside().zip(aside.drain(..)) {
        let at = Ingress { port: ingress as u16, interface: scratch::interface(&frame, ingress, tables) };
        match scratch.fate(i) {
            RouteOutcome::Drop(reason) => out.drops.drop(frame, reason),
            RouteOutcome::Deliver => local.deliver(frame, at, tables, out, now),
            RouteOutcome::Refuse(reason, fault) => local.refuse(frame, reason, fault, at, tables, out, now),
            RouteOutcome::Resolve(adjacency) => local.resolve(frame, scratch.dst(i), adjacency, at, tables, out, now),
        }
    }
}
