//! MPLS: label switching at the edge and inside of a network (RFC 3031, RFC 3032, RFC 3443).
//!
//! What [`Mpls`] does with a frame of EtherType 0x8847, by the entry of its top label:
//!
//! - **swap**: another label; EXP and the bottom bit are kept. Labels the path pushes go on top, with the same EXP.
//! - **pop**: the label goes. Below the bottom one there must be IPv4 or IPv6, told by the version.
//! - **lookup**, and explicit null (0 and 2, also above the bottom: RFC 4182): the label goes and what is below is looked
//!   up: the next label, or by the inner function the IP destination. At most eight labels of a frame are looked at.
//!
//! The other reserved labels are dropped: router alert (1) and the entropy label indicator (7) among them.
//!
//! The TTL follows the uniform model of RFC 3443 3.1 (and RFC 3032 2.4.2): one less than that of the top label goes into
//! whatever is on top when the frame leaves, label or IP header, as Linux does with `net.mpls.ip_ttl_propagate=1`. Unlike
//! Linux, EXP survives a swap, and a pop carries the TTL into the label below; EXP is never copied to the DSCP. A TTL of
//! 1 or 0 ends here without an ICMP error, but where the next thing is the IP lookup: there the packet goes on with that
//! TTL and the inner function decides.
//!
//! Frames of labels are not held for a neighbour that is not known yet and get no ICMP error when too long: both are
//! drops. A frame made shorter by a pop is not padded: ports do that.

mod input;
mod rewrite;
#[cfg(test)]
mod tests;

use packet::{Buffer, Burst, Clock, BURST};

use input::FrameKind;
use rewrite::{plain, LabelOutcome};

use crate::{
    node::{NodeStats, NodeTimer},
    pass::PREFETCH_AHEAD,
    tables::{Action, Adjacency, Entry, PortTable, Tables, GROUP},
    Dispatch, DropReason, Function, Outputs, Reader,
};

/// The MPLS function: three nodes, `mpls-input` (checks), `mpls-lookup` (label table) and `mpls-rewrite`, and an inner
/// function, `L3`, for the frames that are not MPLS or are IP once their labels are gone.
#[derive(Debug)]
pub struct Mpls<I> {
    tables: Reader<Tables>,
    inner: I,
    scratch: Box<LabelScratch>,
    nodes: [NodeStats; 3],
}

/// What the nodes tell each other about the frames of a burst, by their place in it; masks have bit 0 for the first.
#[derive(Debug)]
struct LabelScratch {
    /// Top label stack entries of plain frames.
    words: [u32; BURST],
    entries: [Entry; BURST],
    fates: [LabelOutcome; BURST],
    /// Frames of labels that are not plain: with a VLAN tag, more than two labels, or something wrong.
    odd: u64,
    /// Frames for the inner function.
    foreign: u64,
    /// Bytes of the longest frame.
    longest: usize,
}

impl<I> Mpls<I> {
    /// Switches labels by these tables; `inner` routes the rest.
    pub fn new(tables: Reader<Tables>, inner: I) -> Self {
        let scratch = LabelScratch {
            words: [0; BURST],
            entries: [Entry::default(); BURST],
            fates: [LabelOutcome::Inner; BURST],
            odd: 0,
            foreign: 0,
            longest: 0,
        };
        let nodes = [NodeStats::new("mpls-input"), NodeStats::new("mpls-lookup"), NodeStats::new("mpls-rewrite")];
        Self { tables, inner, scratch: Box::new(scratch), nodes }
    }
}

/// A bit for each frame of a burst.
fn all(frames: usize) -> u64 {
    u64::MAX.checked_shr(BURST as u32 - frames as u32).unwrap_or(0)
}

impl LabelScratch {
    /// Tells the kinds of frames apart and gathers the top labels.
    #[inline]
    fn input<B: Buffer>(&mut self, burst: &Burst<B>, port: &PortTable) {
        let (mut odd, mut foreign, mut longest) = (0, 0, 0);
        burst.iter().take(PREFETCH_AHEAD).for_each(Buffer::prefetch);
        for (i, (frame, word)) in burst.iter().zip(&mut self.words).enumerate() {
            if let Some(ahead) = burst.get(i + PREFETCH_AHEAD) {
                ahead.prefetch();
            }
            let data = frame.data();
            longest = longest.max(data.len());
            match input::plain(data, port.macs) {
                Some(top) => *word = top,
                None => match input::kind(data) {
                    FrameKind::Other => foreign |= 1 << i,
                    FrameKind::Mpls => odd |= 1 << i,
                },
            }
        }
        (self.odd, self.foreign, self.longest) = (odd, foreign, longest);
    }

    /// Looks up the labels. `Some` when all frames are plain and are swapped towards this one adjacency; then `true` says
    /// that they have one label, whose entry is the first.
    #[inline]
    fn lookup<'t>(&mut self, n: usize, tables: &'t Tables) -> Option<(&'t Adjacency, bool)> {
        let words = self.words.get(..n)?;
        let first = *words.first()?;
        let label = first >> 12;
        let plain = self.odd | self.foreign == 0;
        if plain && words.iter().fold(0, |diff, word| diff | word ^ first) >> 12 == 0 {
            let entry = tables.labels.entry(label);
            if let Some(to) = self.one_way(entry, tables) {
                self.entries[0] = entry;
                return Some((to, true));
            }
            self.entries.get_mut(..n)?.fill(entry);
            return None;
        }
        let (first, mut diff) = (tables.labels.entry(label), 0);
        for (entry, word) in self.entries.iter_mut().zip(words) {
            *entry = tables.labels.entry(word >> 12);
            diff |= entry.differs(first);
        }
        if plain && diff == 0 {
            return self.one_way(first, tables).map(|to| (to, false));
        }
        None
    }

    /// The adjacency, when this entry swaps and all frames of the burst, all plain, can leave by it as they are.
    #[inline]
    fn one_way<'t>(&self, entry: Entry, tables: &'t Tables) -> Option<&'t Adjacency> {
        if entry.action() != Action::Swap || entry.hop() & GROUP != 0 {
            return None;
        }
        let to = tables.adjacencies.get(entry.hop() as usize)?;
        (rewrite::is_simple(to) && rewrite::fits(self.longest, to)).then_some(to)
    }

    /// Decides about every frame and rewrites it. `Some` when all have the same fate, and it is not to be dropped.
    fn rewrite<B: Buffer>(&mut self, burst: &mut Burst<B>, tables: &Tables, port: &PortTable) -> Option<LabelOutcome> {
        let mut differ = false;
        for (i, frame) in burst.iter_mut().enumerate() {
            let fate = if self.foreign >> i & 1 != 0 {
                LabelOutcome::Inner
            } else {
                let done = match self.odd >> i & 1 {
                    0 => plain(frame, self.words[i], self.entries[i], tables),
                    _ => None,
                };
                done.unwrap_or_else(|| rewrite::any(frame, tables, port).unwrap_or_else(LabelOutcome::Drop))
            };
            self.fates[i] = fate;
            differ |= fate != self.fates[0];
        }
        (!differ && !matches!(self.fates[0], LabelOutcome::Drop(_))).then_some(self.fates[0])
    }
}

impl<I> Mpls<I> {
    /// Sends each frame of a burst its own way; those for the inner function in one burst, and in order.
    #[inline(never)]
    fn sort<B: Buffer, C: Clock>(
        &mut self,
        ingress: usize,
        burst: &mut Burst<B>,
        out: &mut Outputs<B>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch
    where
        I: Function<B>,
    {
        let fates = &self.scratch.fates;
        if !fates.iter().take(burst.len()).any(|fate| *fate == LabelOutcome::Inner) {
            for (frame, &fate) in burst.drain(..).zip(fates) {
                match fate {
                    LabelOutcome::Port(port) => out.push(usize::from(port), frame),
                    LabelOutcome::Drop(reason) => out.drops.drop(frame, reason),
                    LabelOutcome::Inner => {}
                }
            }
            return Dispatch::Split;
        }
        // The inner function must find the outputs empty, so the others wait.
        let (mut inner, mut labelled) = (Burst::new(), Burst::<(u16, B)>::new());
        for (frame, &fate) in burst.drain(..).zip(fates) {
            match fate {
                LabelOutcome::Port(port) => labelled.push((port, frame)),
                LabelOutcome::Drop(reason) => out.drops.drop(frame, reason),
                LabelOutcome::Inner => inner.push(frame),
            }
        }
        let dispatch = self.inner.process(ingress, &mut inner, out, timer);
        if labelled.is_empty() {
            *burst = inner;
            return dispatch;
        }
        if let Dispatch::All(port) = dispatch {
            inner.drain(..).for_each(|frame| out.push(port, frame));
        }
        labelled.drain(..).for_each(|(port, frame)| out.push(usize::from(port), frame));
        Dispatch::Split
    }
}

impl<B: Buffer, I: Function<B>> Function<B> for Mpls<I> {
    #[inline]
    fn process<C: Clock>(
        &mut self,
        ingress: usize,
        burst: &mut Burst<B>,
        out: &mut Outputs<B>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        let Self { tables, inner, scratch, nodes: [input, lookup, rewrite] } = self;
        let tables = tables.get();
        let Some(port) = tables.ports.get(ingress) else {
            out.drops.drop_all(burst, DropReason::NoPort);
            return Dispatch::Split;
        };
        let n = burst.len();
        scratch.input(burst, port);
        timer.end_node(input, n);
        if scratch.foreign == all(n) {
            return inner.process(ingress, burst, out, timer);
        }
        let labelled = n - scratch.foreign.count_ones() as usize;
        let one_way = scratch.lookup(n, tables);
        timer.end_node(lookup, labelled);
        let fate = match one_way {
            Some((to, true)) => Some(rewrite::swap_one(burst, &scratch.words, scratch.entries[0], to)),
            Some((to, false)) => Some(rewrite::swap_all(burst, &scratch.words, &scratch.entries, to)),
            None => scratch.rewrite(burst, tables, port),
        };
        timer.end_node(rewrite, labelled);
        match fate {
            Some(LabelOutcome::Port(port)) => out.all(usize::from(port), burst),
            Some(_) => inner.process(ingress, burst, out, timer),
            None => self.sort(ingress, burst, out, timer),
        }
    }

    #[inline]
    fn due(&mut self) -> bool {
        self.tables.get();
        self.inner.due()
    }

    #[inline]
    fn poll<C: Clock>(&mut self, burst: &mut Burst<B>, out: &mut Outputs<B>, timer: &mut NodeTimer<'_, C>) -> Dispatch {
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
        self.nodes.iter().for_each(&mut *visit);
        self.inner.nodes(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.inner.counters(visit);
    }
}
