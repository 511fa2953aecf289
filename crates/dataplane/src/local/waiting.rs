//! Frames that wait for a neighbour's MAC address (RFC 1122 2.3.2.2): few, not for long, the newest rather than the
//! oldest.

use std::net::IpAddr;

use packet::{Buffer, Burst};

use super::ingress::Ingress;
use crate::tables::{Next, Tables, GROUP};

/// Most frames held at once.
pub(super) const MOST: usize = 64;
/// Most frames held for one next hop.
const MOST_EACH: usize = 3;

/// A frame that waits.
#[derive(Debug)]
pub(super) struct Held<B> {
    pub(super) frame: B,
    pub(super) at: Ingress,
    /// What its route is looked up by; unspecified when nothing but the adjacency says where it goes.
    pub(super) dst: IpAddr,
    /// The adjacency it waits for.
    pub(super) adjacency: u32,
    /// The interface to ask on, when it is the destination itself that is asked for.
    pub(super) glean: Option<u16>,
    /// When its neighbour is asked for again, in ticks.
    pub(super) ask: u64,
    /// When it has waited long enough, in ticks; 0 when it was told to go.
    pub(super) until: u64,
}

impl<B> Held<B> {
    fn same_next_hop(&self, other: &Self) -> bool {
        self.adjacency == other.adjacency && (self.glean.is_none() || self.dst == other.dst)
    }

    /// Whether there is no longer anything to wait for: routed once more, the frame leaves or is dropped.
    fn settled(&self, tables: &Tables) -> bool {
        let waits = |hop: u32| {
            let next = tables.adjacencies.get(hop as usize).map(|to| to.next);
            matches!(next, Some(Next::Glean | Next::Unresolved))
        };
        if !waits(self.adjacency) {
            return true;
        }
        let mut hop = [0];
        match self.dst {
            dst if dst.is_unspecified() => return false,
            IpAddr::V4(dst) => tables.fib4.lookup(&[dst.to_bits()], &mut hop),
            IpAddr::V6(dst) => tables.fib6.lookup(&[dst.octets()], &mut hop),
        }
        let hop = hop[0] as u32;
        // Which of several paths the frame takes is not known here.
        match tables.groups.get((hop & !GROUP) as usize) {
            Some(group) if hop & GROUP != 0 => !group.paths.iter().any(|&path| waits(path)),
            _ => !waits(hop),
        }
    }
}

/// The frames that wait, oldest first.
#[derive(Debug)]
pub(super) struct Waiting<B> {
    frames: Vec<Held<B>>,
}

impl<B: Buffer> Waiting<B> {
    /// Takes the memory for all of them.
    pub(super) fn new() -> Self {
        Self { frames: Vec::with_capacity(MOST) }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Holds a frame. Returns the one that has no place: the oldest of the same next hop, or this one when all places
    /// are taken.
    pub(super) fn hold(&mut self, held: Held<B>) -> Option<B> {
        let mut same = (0..self.frames.len()).filter(|&i| self.frames.get(i).is_some_and(|f| f.same_next_hop(&held)));
        let oldest = same.next();
        let displaced = match oldest {
            Some(oldest) if same.count() + 1 >= MOST_EACH => Some(self.frames.remove(oldest).frame),
            _ if self.frames.len() >= MOST => return Some(held.frame),
            _ => None,
        };
        self.frames.push(held);
        displaced
    }

    /// The oldest frame, when it has waited long enough.
    pub(super) fn expired(&mut self, now: u64) -> Option<Held<B>> {
        let over = self.frames.first().is_some_and(|held| held.until <= now);
        over.then(|| self.frames.remove(0))
    }

    /// Puts frames that need not wait any longer, of one ingress port, into the burst; returns the port.
    pub(super) fn settled(&mut self, tables: &Tables, burst: &mut Burst<B>) -> Option<u16> {
        let mut port = None;
        let mut i = 0;
        while let Some(held) = self.frames.get(i) {
            if burst.is_full() || port.is_some_and(|port| port != held.at.port) || !held.settled(tables) {
                i += 1;
                continue;
            }
            port = Some(held.at.port);
            burst.push(self.frames.remove(i).frame);
        }
        port
    }

    /// When the neighbour this frame waits for is asked for again, if others wait for it already.
    pub(super) fn next_request(&self, held: &Held<B>) -> Option<u64> {
        self.frames.iter().find(|other| other.same_next_hop(held)).map(|other| other.ask)
    }

    /// The interface and address to ask for now on behalf of the i-th frame; the next time is `again`.
    pub(super) fn take_request(&mut self, i: usize, now: u64, again: u64) -> Option<(u16, IpAddr)> {
        let held = self.frames.get(i).filter(|held| held.ask <= now)?;
        let (interface, dst, adjacency) = (held.glean?, held.dst, held.adjacency);
        let same = self.frames.iter_mut().filter(|other| other.dst == dst && other.adjacency == adjacency);
        same.for_each(|other| other.ask = again);
        Some((interface, dst))
    }

    /// Makes all of them wait no longer.
    pub(super) fn release(&mut self) {
        self.frames.iter_mut().for_each(|held| held.until = 0);
    }
}
