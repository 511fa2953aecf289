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
//! addresses of configured gateways and of [`Overlay::unresolved`].
//!
//! The outer TTL is 64 and the outer DSCP zero, as the kernel's are by default. The outer ECN field is zero as well (the
//! compatibility mode of RFC 6040 4.3) and is not looked at when the headers come off.

mod flood;
mod flow;
mod heard;
mod input;
mod outer;
mod overlay;
mod parse;
mod recent;
mod seeded;
mod switch;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use packet::{Alloc, Buffer, Burst, Clock, BURST};

use heard::Heard;
use outer::Outer;
pub use overlay::{Endpoint, Overlay};
use overlay::{Role, NOWHERE};
use recent::Recent;
pub use table::{Network, OverlayConfig, Remote, StaticEntry};

use crate::{
    fdb::{Fdb, Place},
    local::Events,
    node::{Laps, NodeStats},
    tables::Tables,
    DropReason, Function, Outputs, Reader, Verdict,
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

#[derive(Debug)]
struct Nodes {
    input: NodeStats,
    decap: NodeStats,
    encap: NodeStats,
    flood: NodeStats,
}

/// What the nodes work with, and what they tell each other about the frames of a burst, by their place in it; masks have
/// bit 0 for the first.
#[derive(Debug)]
struct Work<A: Alloc> {
    alloc: A,
    time: Time,
    heard: Heard,
    /// The network.
    domains: [u16; BURST],
    /// The endpoint it came from, and the one it goes to.
    from: [u16; BURST],
    to: [u16; BURST],
    /// Where the inner frame begins and ends.
    inner: [(u16, u16); BURST],
    /// Source and destination station, of frames for which the table is asked.
    keys: [[u64; 2]; BURST],
    places: [[Place; 2]; BURST],
    /// Sources learned, and destinations looked up, in the last millisecond.
    learned: Recent,
    known: Recent,
    /// Destinations not known, and groups, whose frames out of a tunnel have one place to go all the same.
    sole: Recent,
    reasons: [DropReason; BURST],
    bad: u64,
    /// Those whose source is learned.
    learn: u64,
    /// Those for which the table of stations is to be asked.
    unknown: u64,
    /// Frames to flood, with network and origin.
    floods: Burst<A::Buf>,
    flood_of: [(u16, u16); BURST],
    copy: Burst<A::Buf>,
    /// The headers last put together in this burst, with tunnel and adjacency.
    outer: Outer,
    outer_of: Option<(u16, u32)>,
    /// IPv4 identification, so that fragments made on the way can be told apart (RFC 6864 4.3).
    id: u16,
    counts: Counts,
}

/// What a node needs to see beside the frames.
#[derive(Debug, Clone, Copy)]
struct Context<'a> {
    tables: &'a Tables,
    overlay: &'a Overlay,
    fdb: &'a Fdb,
    now_s: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    encapsulated: u64,
    decapsulated: u64,
    flooded: u64,
    copies_missing: u64,
    learned: u64,
    /// Longest outer packet refused.
    mtu_exceeded: u64,
}

/// The time in seconds, read from the ticks once a millisecond.
#[derive(Debug)]
struct Time {
    hz: u64,
    now_s: u32,
    /// The tick of the last reading.
    read_at: Option<u64>,
}

impl<A: Alloc, I> Vxlan<A, I> {
    /// `fdb` is the table of stations, shared by all lcores; `alloc` makes the copies of flooded frames; `events` is told
    /// of tunnel ends not configured; `hz` is the rate of the clock.
    pub fn new(tables: Reader<Tables>, inner: I, fdb: Arc<Fdb>, alloc: A, events: Events, hz: u64) -> Self {
        let work = Work {
            alloc,
            time: Time { hz: hz.max(1), now_s: 0, read_at: None },
            heard: Heard::new(events),
            domains: [0; BURST],
            from: [NOWHERE; BURST],
            to: [NOWHERE; BURST],
            inner: [(0, 0); BURST],
            keys: [[0; 2]; BURST],
            places: [[Place::default(); 2]; BURST],
            learned: Recent::new(),
            known: Recent::new(),
            sole: Recent::new(),
            reasons: [DropReason::Runt; BURST],
            bad: 0,
            learn: 0,
            unknown: 0,
            floods: Burst::new(),
            flood_of: [(0, NOWHERE); BURST],
            copy: Burst::new(),
            outer: Outer::EMPTY,
            outer_of: None,
            id: 0,
            counts: Counts::default(),
        };
        let nodes = Nodes {
            input: NodeStats::new("vxlan-input"),
            decap: NodeStats::new("vxlan-decap"),
            encap: NodeStats::new("vxlan-encap"),
            flood: NodeStats::new("vxlan-flood"),
        };
        Self { tables, inner, fdb, work, own: Burst::new(), nodes }
    }
}

impl<A: Alloc> Work<A> {
    /// The time in seconds.
    #[inline]
    fn tick(&mut self, now: u64) -> u32 {
        let recent = |at: u64| now.wrapping_sub(at).saturating_mul(1000) < self.time.hz;
        if !self.time.read_at.is_some_and(recent) {
            self.turn(now);
        }
        self.time.now_s
    }

    #[cold]
    fn turn(&mut self, now: u64) {
        self.time.read_at = Some(now);
        self.time.now_s = (now / self.time.hz) as u32;
        self.learned.clear();
        self.known.clear();
        self.sole.clear();
    }

    /// Marks a frame as dropped.
    #[inline]
    fn fail(&mut self, i: usize, reason: DropReason) {
        self.bad |= 1 << i;
        self.reasons[i] = reason;
    }

    /// Frames of access links: `from`, `domains` and `learn` say which.
    #[inline]
    fn encapsulate<C: Clock>(
        &mut self,
        cx: Context<'_>,
        burst: &mut Burst<A::Buf>,
        out: &mut Outputs<A::Buf>,
        nodes: &mut Nodes,
        laps: &mut Laps<'_, C>,
    ) -> Verdict {
        let n = burst.len();
        let verdict = self.switch::<false>(cx, burst, out);
        laps.lap(&mut nodes.encap, n);
        self.flood_all::<false, C>(cx, out, nodes, laps);
        verdict
    }

    /// Frames out of tunnels: `inner`, `from`, `domains` and `learn` say where and which.
    #[inline]
    fn decapsulate<C: Clock>(
        &mut self,
        cx: Context<'_>,
        burst: &mut Burst<A::Buf>,
        out: &mut Outputs<A::Buf>,
        nodes: &mut Nodes,
        laps: &mut Laps<'_, C>,
    ) -> Verdict {
        let n = burst.len();
        self.strip(burst);
        let verdict = self.switch::<true>(cx, burst, out);
        laps.lap(&mut nodes.decap, n);
        self.flood_all::<true, C>(cx, out, nodes, laps);
        verdict
    }

    #[inline]
    fn flood_all<const TUNNELLED: bool, C: Clock>(
        &mut self,
        cx: Context<'_>,
        out: &mut Outputs<A::Buf>,
        nodes: &mut Nodes,
        laps: &mut Laps<'_, C>,
    ) {
        let n = self.floods.len();
        if n > 0 {
            self.flood::<TUNNELLED>(cx, out);
            laps.lap(&mut nodes.flood, n);
        }
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
        laps: &mut Laps<'_, C>,
    ) -> Verdict {
        let n = burst.len();
        let mine = work.classify(cx, ingress, burst);
        if mine == 0 {
            laps.lap(&mut nodes.input, n);
            return inner.process(ingress, burst, out, laps);
        }
        if mine.count_ones() as usize == n {
            laps.lap(&mut nodes.input, n);
            return work.decapsulate(cx, burst, out, nodes, laps);
        }
        work.part(mine, burst, own);
        laps.lap(&mut nodes.input, n);
        // The router first: it may count on empty outputs.
        let verdict = inner.process(ingress, burst, out, laps);
        sort(verdict, burst, out);
        let verdict = work.decapsulate(cx, own, out, nodes, laps);
        sort(verdict, own, out);
        Verdict::Split
    }
}

/// Moves what a verdict left in the burst to the outputs.
#[inline]
fn sort<B: Buffer>(verdict: Verdict, burst: &mut Burst<B>, out: &mut Outputs<B>) {
    if let Verdict::All(port) = verdict {
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
        laps: &mut Laps<'_, C>,
    ) -> Verdict {
        let Self { tables, inner, fdb, work, own, nodes } = self;
        let tables = tables.get();
        let overlay = &*tables.overlay;
        if overlay.is_empty() {
            return inner.process(ingress, burst, out, laps);
        }
        let cx = Context { tables, overlay, fdb, now_s: work.tick(laps.now()) };
        match overlay.role(ingress) {
            Role::Underlay => Self::underlay(inner, work, own, nodes, cx, ingress, burst, out, laps),
            Role::Access(link) => {
                work.label(cx, *link);
                laps.lap(&mut nodes.input, burst.len());
                work.encapsulate(cx, burst, out, nodes, laps)
            }
            Role::Vlans(untagged, by_vid) => {
                input::part_vlans(*untagged, by_vid, burst, own);
                if !burst.is_empty() {
                    let mut tunnelled = Burst::new();
                    let verdict = Self::underlay(inner, work, &mut tunnelled, nodes, cx, ingress, burst, out, laps);
                    sort(verdict, burst, out);
                }
                let n = own.len();
                if n > 0 {
                    work.label_vlans(cx, *untagged, by_vid, own);
                    laps.lap(&mut nodes.input, n);
                    let verdict = work.encapsulate(cx, own, out, nodes, laps);
                    sort(verdict, own, out);
                }
                Verdict::Split
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
        laps: &mut Laps<'_, C>,
    ) -> Verdict {
        self.inner.poll(burst, out, laps)
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
