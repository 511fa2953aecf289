use packet::{Buffer, Burst, Clock};

use crate::{
    node::{NodeStats, NodeTimer},
    DropCounters, DropReason,
};

/// Where a burst goes after a function has seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatch {
    /// Every frame left in the burst leaves by this egress port, unmoved, and before those in [`Outputs`], if any.
    All(usize),
    /// The burst is empty: its frames are in [`Outputs`], held, or dropped.
    Split,
}

/// A network function: a struct of nodes in fixed order, statically dispatched, that sees whole bursts.
///
/// Every frame it is given leaves by an egress port, is held (and counted by [`Function::held`]), is dropped with a reason
/// in `out`, or is for ourselves: `received + originated = sent + dropped + punted + held` at every moment between calls.
pub trait Function<B: Buffer> {
    /// Handles a burst received on port `ingress`. `out` is empty, but for counters, when called.
    fn process<C: Clock>(
        &mut self,
        ingress: usize,
        burst: &mut Burst<B>,
        out: &mut Outputs<B>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch;

    /// Whether [`Self::poll`] has something to do now. Called once a poll, frames or not: the place to look for new
    /// tables.
    #[inline]
    fn due(&mut self) -> bool {
        self.held() > 0
    }

    /// Called once a poll when [`Self::due`]: those that are due go into the (empty) burst and out like any other.
    #[inline]
    fn poll<C: Clock>(
        &mut self,
        _burst: &mut Burst<B>,
        _out: &mut Outputs<B>,
        _laps: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        Dispatch::Split
    }

    /// Makes every held frame due now, before the lcore ends.
    fn release(&mut self) {}

    /// Frames taken in, not yet out and not dropped.
    #[inline]
    fn held(&self) -> usize {
        0
    }

    /// Shows the counters of each node, in the order frames meet them; the same nodes on every call.
    fn nodes(&self, visit: &mut dyn FnMut(&NodeStats));

    /// Shows the function's own counters by name; the same names in the same order on every call.
    fn counters(&self, _visit: &mut dyn FnMut(&'static str, u64)) {}
}

/// Frames on their way to be discarded, all at once, and the counters of why.
#[derive(Debug)]
pub struct DropBatch<B: Buffer> {
    frames: Burst<B>,
    counters: DropCounters,
}

impl<B: Buffer> DropBatch<B> {
    /// Drops one frame and counts why.
    #[inline]
    pub fn drop(&mut self, frame: B, reason: DropReason) {
        self.counters.add(reason, 1);
        self.discard(frame);
    }

    /// Counts a frame as dropped whose memory lives on as another one, such as an ICMP error about it.
    #[inline]
    pub fn count(&mut self, reason: DropReason) {
        self.counters.add(reason, 1);
    }

    /// Gives a frame back, uncounted: it is counted elsewhere.
    #[inline]
    fn discard(&mut self, frame: B) {
        if let Err(full) = self.frames.try_push(frame) {
            B::discard(&mut self.frames);
            self.frames.push(full.element());
        }
    }

    /// Drops a whole burst for one reason.
    #[inline]
    pub fn drop_all(&mut self, burst: &mut Burst<B>, reason: DropReason) {
        self.counters.add(reason, burst.len());
        B::discard(burst);
    }

    /// Drops the frames whose bit is set in `mask`, bit 0 the first; the others close up in order.
    pub fn drop_masked(&mut self, burst: &mut Burst<B>, mask: u64, reason: DropReason) {
        let mut kept = 0;
        for i in 0..burst.len() {
            if mask >> i & 1 == 0 {
                burst.swap(kept, i);
                kept += 1;
            }
        }
        for frame in burst.drain(kept..) {
            self.drop(frame, reason);
        }
    }

    /// Gives the dropped frames back to their pool.
    #[inline]
    pub fn empty(&mut self) {
        if !self.frames.is_empty() {
            B::discard(&mut self.frames);
        }
    }

    /// Frames dropped since the start, by reason.
    pub fn counters(&self) -> &DropCounters {
        &self.counters
    }
}

/// Where a function puts frames that do not all go the same way: a burst for each egress port, and the drops.
#[derive(Debug)]
pub struct Outputs<B: Buffer> {
    pub(crate) ports: Vec<Burst<B>>,
    /// Frames dropped.
    pub drops: DropBatch<B>,
    /// Frames taken in for ourselves (ARP, echo requests, ...).
    pub punted: u64,
    /// Frames made here (ARP requests, ICMP errors, replies, copies), to be sent or dropped like any other.
    pub originated: u64,
}

impl<B: Buffer> Outputs<B> {
    /// Empty outputs for `ports` egress ports.
    pub fn new(ports: usize) -> Self {
        Self {
            ports: (0..ports).map(|_| Burst::new()).collect(),
            drops: DropBatch { frames: Burst::new(), counters: DropCounters::default() },
            punted: 0,
            originated: 0,
        }
    }

    /// A frame that was for ourselves and ends here.
    #[inline]
    pub fn punt(&mut self, frame: B) {
        self.punted += 1;
        self.drops.discard(frame);
    }

    /// Sends a frame that was made here.
    #[inline]
    pub fn originate(&mut self, port: usize, frame: B) {
        self.originated += 1;
        self.push(port, frame);
    }

    /// Sends a reply made out of the frame it answers.
    #[inline]
    pub fn answer(&mut self, port: usize, frame: B) {
        self.punted += 1;
        self.originate(port, frame);
    }

    /// How many egress ports there are.
    #[inline]
    pub fn ports(&self) -> usize {
        self.ports.len()
    }

    /// Sends one frame to an egress port. Without such a port it is dropped as [`DropReason::NoPort`]; beyond one
    /// burst a port, which a burst in and a burst out never reach, as [`DropReason::TxFull`].
    #[inline]
    pub fn push(&mut self, port: usize, frame: B) {
        match self.ports.get_mut(port) {
            Some(burst) => {
                if let Err(full) = burst.try_push(frame) {
                    self.drops.drop(full.element(), DropReason::TxFull);
                }
            }
            None => self.drops.drop(frame, DropReason::NoPort),
        }
    }

    /// The frames waiting for an egress port; `None` when there is no such port.
    #[inline]
    pub fn port(&mut self, port: usize) -> Option<&mut Burst<B>> {
        self.ports.get_mut(port)
    }

    /// The dispatch for a burst that goes to one port: [`Dispatch::All`], or everything dropped without such a port.
    #[inline]
    pub fn all(&mut self, port: usize, burst: &mut Burst<B>) -> Dispatch {
        if port < self.ports.len() {
            Dispatch::All(port)
        } else {
            self.drops.drop_all(burst, DropReason::NoPort);
            Dispatch::Split
        }
    }
}

#[cfg(test)]
mod tests {
    use packet::heap::HeapPool;

    use super::*;

    #[test]
    fn masked_frames_go_and_the_rest_keeps_its_order() {
        let pool = HeapPool::new(8, 64);
        let mut out = Outputs::new(1);
        let mut burst: Burst<_> = (0..6u8).filter_map(|i| pool.frame(&[i])).collect();
        out.drops.drop_masked(&mut burst, 0b01_0011, DropReason::Policed);
        assert_eq!(burst.iter().map(|f| f.data()[0]).collect::<Vec<_>>(), [2, 3, 5]);
        assert_eq!(out.drops.counters()[DropReason::Policed], 3);
        out.drops.empty();
        assert_eq!(pool.in_use(), 3);
    }

    #[test]
    fn more_trash_than_a_burst_is_no_trouble() {
        let pool = HeapPool::new(200, 64);
        let mut out = Outputs::new(1);
        for i in 0..130u8 {
            out.push(7, pool.frame(&[i]).unwrap());
            out.push(0, pool.frame(&[i]).unwrap());
        }
        assert_eq!((out.drops.counters()[DropReason::NoPort], out.drops.counters()[DropReason::TxFull]), (130, 66));
        drop(out);
        assert_eq!(pool.in_use(), 0);
    }
}
