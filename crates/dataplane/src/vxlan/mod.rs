//! VXLAN tunnel end points (RFC 7348).
//!
//! Frames of an access link go to where their destination is known to be: another access link of their network, or the
//! tunnel behind which it was learned (or set). Broadcast, multicast and unknown destinations go to every other access
//! link and, as copies, into the tunnel of every configured remote. What comes out of a tunnel goes to access links only,
//! never into another tunnel. Frames of all other ports that are not VXLAN for one of our tunnel addresses are the inner
//! function's, a router's.
//!
//! VLAN tags of the inner frame are kept both ways (RFC 7348 6.1 leaves that to configuration; the kernel keeps them, too);
//! the tag of a `PORT.VID` access link is not part of the frame. The outer packet is never fragmented: one longer than
//! the link takes is dropped as [`DropReason::VxlanMtu`]. While a gateway's or a remote's MAC address is not
//! known, frames to it are dropped as [`DropReason::NoNeighbour`] rather than held: the control side keeps asking for the
//! addresses of configured gateways and of [`Tables::unresolved_tunnels`].
//!
//! The outer TTL is 64 and the outer DSCP zero, as the kernel's are by default. The outer ECN field is zero as well (the
//! compatibility mode of RFC 6040 4.3) and is not looked at when the headers come off.

mod flood;
mod flow;
mod input;
mod outer;
mod parse;
mod recent;
mod reporter;
mod switch;
#[cfg(test)]
mod tests;
mod work;

use std::sync::Arc;

use packet::{Alloc, Buffer, Burst, Clock};
use work::{Context, Nodes, Work};

use crate::{
    fdb::Fdb,
    model::Events,
    node::{NodeStats, NodeTimer},
    tables::{Role, Tables},
    Dispatch, Function, Outputs, Reader,
};

/// A VXLAN tunnel end point around a router `I`: nodes `vxlan-input` (whose frame is it), `vxlan-decap`, `vxlan-encap`
/// and `vxlan-flood`, then those of `I`.
///
/// Counters, before those of `I`: frames put into tunnels (copies included) and taken out of them (if good); frames flooded;
/// copies not made for want of a buffer or of room at their port; stations learned, new or at a new place; and
/// `vxlan-mtu-exceeded`, the length in bytes of the longest outer packet that was too long for its link.
#[derive(Debug)]
pub struct Vxlan<A: Alloc, I> {
    tables: Reader<Tables>,
    inner: I,
    fdb: Arc<Fdb>,
    work: Work<A>,
    /// Frames of the burst that are not the router's, when some are.
    own: Burst<A::Buf>,
    nodes: Nodes,
}

impl<A: Alloc, I> Vxlan<A, I> {
    /// `fdb` is the table of stations, shared by all lcores; `alloc` makes the copies of flooded frames; `events` is told
    /// of tunnel ends not configured; `hz` is the rate of the clock.
    pub fn new(tables: Reader<Tables>, inner: I, fdb: Arc<Fdb>, alloc: A, events: Events, hz: u64) -> Self {
        let (work, nodes) = (Work::new(alloc, events, hz), Nodes::new());
        Self { tables, inner, fdb, work, own: Burst::new(), nodes }
    }
}

impl<A: Alloc, I: Function<A::Buf>> Vxlan<A, I> {
    /// Frames of a port, or those of it that no access link has.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn underlay<C: Clock>(
        inner: &mut I,
        work: &mut Work<A>,
        own: &mut Burst<A::Buf>,
        nodes: &mut Nodes,
        cx: Context<'_>,
        ingress: usize,
        burst: &mut Burst<A::Buf>,
        out: &mut Outputs<A::Buf>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        let n = burst.len();
        let mine = work.classify(cx, ingress, burst);
        if mine == 0 {
            timer.end_node(&mut nodes.input, n);
            return inner.process(ingress, burst, out, timer);
        }
        if mine.count_ones() as usize == n {
            timer.end_node(&mut nodes.input, n);
            return work.decapsulate(cx, burst, out, nodes, timer);
        }
        work.part(mine, burst, own);
        timer.end_node(&mut nodes.input, n);
        // The router first: it may count on empty outputs.
        let dispatch = inner.process(ingress, burst, out, timer);
        sort(dispatch, burst, out);
        let dispatch = work.decapsulate(cx, own, out, nodes, timer);
        sort(dispatch, own, out);
        Dispatch::Split
    }
}

/// Moves what a dispatch left in the burst to the outputs.
#[inline]
fn sort<B: Buffer>(dispatch: Dispatch, burst: &mut Burst<B>, out: &mut Outputs<B>) {
    if let Dispatch::All(port) = dispatch {
        burst.drain(..).for_each(|frame| out.push(port, frame));
    }
}

impl<A: Alloc, I: Function<A::Buf>> Function<A::Buf> for Vxlan<A, I> {
    #[inline]
    fn process<C: Clock>(
        &mut self,
        ingress: usize,
        burst: &mut Burst<A::Buf>,
        out: &mut Outputs<A::Buf>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        let Self { tables, inner, fdb, work, own, nodes } = self;
        let tables = tables.get();
        let overlay = &*tables.overlay;
        if overlay.is_empty() {
            return inner.process(ingress, burst, out, timer);
        }
        let cx = Context { tables, overlay, fdb, now_s: work.tick(timer.now()) };
        match overlay.role(ingress) {
            Role::Underlay => Self::underlay(inner, work, own, nodes, cx, ingress, burst, out, timer),
            Role::Access(link) => {
                work.label(cx, *link);
                timer.end_node(&mut nodes.input, burst.len());
                work.encapsulate(cx, burst, out, nodes, timer)
            }
            Role::Vlans(untagged, by_vid) => {
                input::part_vlans(*untagged, by_vid, burst, own);
                if !burst.is_empty() {
                    let mut tunnelled = Burst::new();
                    let dispatch = Self::underlay(inner, work, &mut tunnelled, nodes, cx, ingress, burst, out, timer);
                    sort(dispatch, burst, out);
                }
                let n = own.len();
                if n > 0 {
                    work.label_vlans(cx, *untagged, by_vid, own);
                    timer.end_node(&mut nodes.input, n);
                    let dispatch = work.encapsulate(cx, own, out, nodes, timer);
                    sort(dispatch, own, out);
                }
                Dispatch::Split
            }
        }
    }

    #[inline]
    fn due(&mut self) -> bool {
        self.tables.get();
        self.inner.due()
    }

    #[inline]
    fn poll<C: Clock>(
        &mut self,
        burst: &mut Burst<A::Buf>,
        out: &mut Outputs<A::Buf>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        self.inner.poll(burst, out, timer)
    }

    fn release(&mut self) {
        self.inner.release();
    }

    #[inline]
    fn held(&self) -> usize {
        self.inner.held()
    }

    fn nodes(&self, visit: &mut dyn FnMut(&NodeStats)) {
        let Nodes { input, decap, encap, flood } = &self.nodes;
        [input, decap, encap, flood].into_iter().for_each(&mut *visit);
        self.inner.nodes(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let c = &self.work.counts;
        visit("vxlan-encapsulated", c.encapsulated);
        visit("vxlan-decapsulated", c.decapsulated);
        visit("vxlan-flooded", c.flooded);
        visit("vxlan-copies-missing", c.copies_missing);
        visit("vxlan-learned", c.learned);
        visit("vxlan-mtu-exceeded", c.mtu_exceeded);
        self.inner.counters(visit);
    }
}
