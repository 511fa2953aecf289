//! The state of the exceptional path of one lcore.

use std::net::IpAddr;

use packet::{Alloc, Burst, MacAddr};

use super::{
    counts::Counts,
    ingress::Ingress,
    limit::{Bucket, Mention, Recent},
    own,
    waiting::Waiting,
};
use crate::{
    model::{Event, Events},
    node::NodeStats,
    tables::{Interface, Tables},
    DropReason,
};

/// What becomes of a frame that was delivered.
pub(super) enum LocalOutcome {
    /// It was made the answer, of this length, and goes back.
    Answer(usize),
    /// It was read, and ends here.
    Punt,
    Drop(DropReason),
    /// Nothing listens to its port, and the source is told.
    NoPort,
}

/// What a frame is looked at with.
pub(super) struct Cx<'a> {
    pub(super) at: Ingress,
    pub(super) interface: &'a Interface,
    pub(super) tables: &'a Tables,
    pub(super) now: u64,
}

/// The exceptional path of one lcore.
#[derive(Debug)]
pub struct Local<A: Alloc> {
    pub(super) alloc: A,
    pub(super) made: Burst<A::Buf>,
    pub(super) events: Events,
    pub(super) prober: bool,
    pub(super) hz: u64,
    /// Tokens for ICMP errors, and for requests to neighbours.
    pub(super) error_tokens: Bucket,
    pub(super) request_tokens: Bucket,
    pub(super) reported: Recent,
    pub(super) requested: Recent,
    pub(super) waiting: Waiting<A::Buf>,
    /// When the frames that wait are looked at again.
    pub(super) look: u64,
    /// The round of probes that is done, the one that is being sent, and how far.
    pub(super) round: u64,
    pub(super) probing: Option<u64>,
    pub(super) probed: usize,
    /// Identification of the last IPv4 packet made.
    pub(super) ident: u16,
    pub(super) counts: Counts,
    pub(super) node: NodeStats,
}

impl<A: Alloc> Local<A> {
    /// `alloc` makes the frames that are sent on our own account; `events` takes what was learned; `hz` is the clock's
    /// rate; the one lcore with `prober` sends the probes that the control side asks for.
    pub fn new(alloc: A, events: Events, hz: u64, prober: bool) -> Self {
        let hz = hz.max(1);
        Self {
            alloc,
            made: Burst::new(),
            events,
            prober,
            hz,
            error_tokens: Bucket::new(hz),
            request_tokens: Bucket::new(hz),
            reported: Recent::new(hz),
            requested: Recent::new(hz),
            waiting: Waiting::new(),
            look: 0,
            round: 0,
            probing: None,
            probed: 0,
            ident: 0,
            counts: Counts::default(),
            node: NodeStats::new("ip-local"),
        }
    }

    /// Frames held.
    #[inline]
    pub fn held(&self) -> usize {
        self.waiting.len()
    }

    /// The node's counters.
    pub fn node(&self) -> &NodeStats {
        &self.node
    }

    /// The node's counters, to add a lap to.
    pub fn node_mut(&mut self) -> &mut NodeStats {
        &mut self.node
    }

    /// Counters by name: ARP and ND frames, echoes answered, ICMP errors sent and withheld.
    pub fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.counts.visit(visit);
        visit("frames-waiting", self.waiting.len() as u64);
    }

    /// Tells the control side of a neighbour, if it can be one and was not just told; returns how many were told.
    pub(super) fn learn(&mut self, addr: IpAddr, mac: MacAddr, cx: &Cx<'_>) -> u64 {
        let mention = Mention { interface: cx.at.interface, addr, mac };
        let station = !mac.is_group() && mac != MacAddr::default() && mac != cx.interface.mac;
        if !station || self.reported.has(&mention, cx.now) {
            return 0;
        }
        if own::owns(cx.interface, addr) || !own::on_link(cx.at, cx.interface, cx.tables, addr) {
            return 0;
        }
        if self.events.try_send(Event::Neighbour { interface: cx.at.interface, addr, mac }).is_err() {
            self.counts.events_lost += 1;
            return 0;
        }
        self.reported.note(mention, cx.now);
        1
    }
}
