//! What the nodes of a tunnel end point work with, and the steps that they share.

use packet::{Alloc, Burst, Clock, BURST};

use super::{outer::Outer, recent::Recent, reporter::RemoteReporter};
use crate::{
    fdb::{Fdb, Place},
    model::Events,
    node::{NodeStats, NodeTimer},
    tables::{Overlay, Tables, NOWHERE},
    Dispatch, DropReason, Outputs,
};

/// The four nodes.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) input: NodeStats,
    pub(super) decap: NodeStats,
    pub(super) encap: NodeStats,
    pub(super) flood: NodeStats,
}

impl Nodes {
    /// Nodes that have counted nothing.
    pub(super) fn new() -> Self {
        Self {
            input: NodeStats::new("vxlan-input"),
            decap: NodeStats::new("vxlan-decap"),
            encap: NodeStats::new("vxlan-encap"),
            flood: NodeStats::new("vxlan-flood"),
        }
    }
}

/// What the nodes work with, and what they tell each other about the frames of a burst, by their place in it; masks have
/// bit 0 for the first.
#[derive(Debug)]
pub(super) struct Work<A: Alloc> {
    pub(super) alloc: A,
    pub(super) time: Time,
    pub(super) reporter: RemoteReporter,
    /// The network.
    pub(super) domains: [u16; BURST],
    /// The endpoint it came from, and the one it goes to.
    pub(super) from: [u16; BURST],
    pub(super) to: [u16; BURST],
    /// Where the inner frame begins and ends.
    pub(super) inner: [(u16, u16); BURST],
    /// Source and destination station, of frames for which the table is asked.
    pub(super) keys: [[u64; 2]; BURST],
    pub(super) places: [[Place; 2]; BURST],
    /// Sources learned, and destinations looked up, in the last millisecond.
    pub(super) learned: Recent,
    pub(super) known: Recent,
    /// Destinations not known, and groups, whose frames out of a tunnel have one place to go all the same.
    pub(super) sole: Recent,
    pub(super) reasons: [DropReason; BURST],
    pub(super) bad: u64,
    /// Those whose source is learned.
    pub(super) learn: u64,
    /// Those for which the table of stations is to be asked.
    pub(super) unknown: u64,
    /// Frames to flood, with network and origin.
    pub(super) floods: Burst<A::Buf>,
    pub(super) flood_of: [(u16, u16); BURST],
    pub(super) copy: Burst<A::Buf>,
    /// The headers last put together in this burst, with tunnel and adjacency.
    pub(super) outer: Outer,
    pub(super) outer_of: Option<(u16, u32)>,
    /// IPv4 identification, so that fragments made on the way can be told apart (RFC 6864 4.3).
    pub(super) id: u16,
    pub(super) counts: Counts,
}

/// What a node needs to see beside the frames.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) tables: &'a Tables,
    pub(super) overlay: &'a Overlay,
    pub(super) fdb: &'a Fdb,
    pub(super) now_s: u32,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) encapsulated: u64,
    pub(super) decapsulated: u64,
    pub(super) flooded: u64,
    pub(super) copies_missing: u64,
    pub(super) learned: u64,
    /// Longest outer packet refused.
    pub(super) mtu_exceeded: u64,
}

/// The time in seconds, read from the ticks once a millisecond.
#[derive(Debug)]
pub(super) struct Time {
    pub(super) hz: u64,
    pub(super) now_s: u32,
    /// The tick of the last reading.
    pub(super) read_at: Option<u64>,
}

impl<A: Alloc> Work<A> {
    /// `alloc` makes the copies of flooded frames; `events` is told of tunnel ends not configured; `hz` is the rate of the clock.
    pub(super) fn new(alloc: A, events: Events, hz: u64) -> Self {
        Self {
            alloc,
            time: Time { hz: hz.max(1), now_s: 0, read_at: None },
            reporter: RemoteReporter::new(events),
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
        }
    }

    /// The time in seconds.
    #[inline]
    pub(super) fn tick(&mut self, now: u64) -> u32 {
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
    pub(super) fn fail(&mut self, i: usize, reason: DropReason) {
        self.bad |= 1 << i;
        self.reasons[i] = reason;
    }

    /// Frames of access links: `from`, `domains` and `learn` say which.
    #[inline]
    pub(super) fn encapsulate<C: Clock>(
        &mut self,
        cx: Context<'_>,
        burst: &mut Burst<A::Buf>,
        out: &mut Outputs<A::Buf>,
        nodes: &mut Nodes,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        let n = burst.len();
        let dispatch = self.switch::<false>(cx, burst, out);
        timer.end_node(&mut nodes.encap, n);
        self.flood_all::<false, C>(cx, out, nodes, timer);
        dispatch
    }

    /// Frames out of tunnels: `inner`, `from`, `domains` and `learn` say where and which.
    #[inline]
    pub(super) fn decapsulate<C: Clock>(
        &mut self,
        cx: Context<'_>,
        burst: &mut Burst<A::Buf>,
        out: &mut Outputs<A::Buf>,
        nodes: &mut Nodes,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        let n = burst.len();
        self.strip(burst);
        let dispatch = self.switch::<true>(cx, burst, out);
        timer.end_node(&mut nodes.decap, n);
        self.flood_all::<true, C>(cx, out, nodes, timer);
        dispatch
    }

    #[inline]
    fn flood_all<const TUNNELLED: bool, C: Clock>(
        &mut self,
        cx: Context<'_>,
        out: &mut Outputs<A::Buf>,
        nodes: &mut Nodes,
        timer: &mut NodeTimer<'_, C>,
    ) {
        let n = self.floods.len();
        if n > 0 {
            self.flood::<TUNNELLED>(cx, out);
            timer.end_node(&mut nodes.flood, n);
        }
    }
}
