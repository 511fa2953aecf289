//! The impairment of one port: policer, loss, duplication, reordering and delay, in this order.

use std::collections::VecDeque;

use packet::{Alloc, Buffer, Burst};

use super::{
    bucket::Bucket,
    counters::ImpairCounters,
    dice::Dice,
    hold::{Held, Hold},
    spec::ImpairSpec,
};
use crate::{DropBatch, DropReason};

/// A frame held back for reordering goes after this long even when no later frame comes to pass it, so that the
/// last frames of a trial are not lost with it.
const REORDER_LIMIT_S: f64 = 0.1;

/// A frame held back until later ones have passed.
#[derive(Debug)]
struct Back<B> {
    /// Goes when this many frames have passed in all.
    after: u64,
    /// Goes at this time at the latest, in ticks.
    until: u64,
    /// Ticks that it waits for its tokens.
    wait: u64,
    seq: u64,
    frame: B,
    copy: Option<B>,
}

/// The impairment of one port.
#[derive(Debug)]
pub(crate) struct Stage<B: Buffer> {
    bucket: Option<Bucket>,
    loss: Dice,
    dup: Dice,
    reorder: Dice,
    distance: u64,
    /// All in ticks.
    delay: u64,
    jitter: u64,
    wobble: Dice,
    limit: u64,
    capacity: usize,
    back: VecDeque<Back<B>>,
    hold: Hold<B>,
    /// Frames held back, copies counted.
    waiting: usize,
    holds: bool,
    /// The policer lets frames wait.
    queues: bool,
    /// Frames taken in, and those of them not held back.
    seq: u64,
    passed: u64,
    /// Highest place among the frames sent.
    highest: u64,
    pub(crate) counters: ImpairCounters,
}

impl<B: Buffer> Stage<B> {
    pub(crate) fn new(spec: &ImpairSpec, port: usize, hz: u64) -> Self {
        let ticks = |seconds: f64| (seconds * hz as f64).round() as u64;
        let dice = |ratio, lane| Dice::new(ratio, spec.seed, (port as u64) << 8 | lane);
        let capacity = spec.held_frames() as usize;
        let reorder = dice(spec.reorder, 3);
        let queues = spec.police.is_some_and(|police| police.queue.0 > 0);
        Self {
            bucket: spec.police.as_ref().map(|police| Bucket::new(police, hz)),
            loss: dice(spec.loss, 1),
            dup: dice(spec.dup, 2),
            distance: u64::from(spec.distance),
            delay: ticks(spec.delay.seconds()),
            jitter: ticks(spec.jitter.seconds()),
            wobble: dice(units::Ratio::ZERO, 4),
            limit: ticks(REORDER_LIMIT_S),
            capacity,
            back: VecDeque::with_capacity(if reorder.live() { capacity } else { 0 }),
            reorder,
            hold: Hold::new(capacity, spec.jitter.0 > 0 || queues && spec.reorder > units::Ratio::ZERO),
            waiting: 0,
            holds: spec.holds(),
            queues,
            seq: 0,
            passed: 0,
            highest: 0,
            counters: ImpairCounters::default(),
        }
    }

    /// Frames inside.
    pub(crate) fn held(&self) -> usize {
        self.hold.len() + self.waiting
    }

    /// Impairs a burst in place: what is in it afterwards may go now. Returns how many copies were made.
    pub(crate) fn apply<A>(&mut self, now: u64, burst: &mut Burst<B>, alloc: &mut A, drops: &mut DropBatch<B>) -> u64
    where
        A: Alloc<Buf = B>,
    {
        if !self.queues {
            self.thin(now, burst, drops);
        }
        let before = self.counters.duplicated;
        if self.holds {
            let mut copies = Burst::new();
            if self.queues {
                self.bucket.iter_mut().for_each(|bucket| bucket.refill(now));
            }
            for frame in burst.drain(..) {
                let mut wait = 0;
                if self.queues {
                    match self.queue(frame.len()) {
                        Ok(ticks) => wait = ticks,
                        Err(reason) => {
                            drops.drop(frame, reason);
                            continue;
                        }
                    }
                }
                self.admit(now, wait, frame, alloc, &mut copies, drops);
            }
            self.pull(now, burst);
        }
        self.counters.duplicated - before
    }

    /// Polices and loses a frame that may wait for its tokens: the ticks that it waits, or why it is dropped.
    fn queue(&mut self, len: usize) -> Result<u64, DropReason> {
        let mut wait = 0;
        if let Some(bucket) = &mut self.bucket {
            if !bucket.take(len) {
                self.counters.policed += 1;
                return Err(DropReason::Policed);
            }
            wait = bucket.wait();
        }
        if self.loss.live() && self.loss.roll() {
            self.counters.lost += 1;
            return Err(DropReason::Lost);
        }
        Ok(wait)
    }

    /// Polices and loses.
    fn thin(&mut self, now: u64, burst: &mut Burst<B>, drops: &mut DropBatch<B>) {
        if let Some(bucket) = &mut self.bucket {
            bucket.refill(now);
            let over = mask(burst, |frame| !bucket.take(frame.len()));
            self.counters.policed += u64::from(over.count_ones());
            if over != 0 {
                drops.drop_masked(burst, over, DropReason::Policed);
            }
        }
        if self.loss.live() {
            let lost = mask(burst, |_| self.loss.roll());
            self.counters.lost += u64::from(lost.count_ones());
            if lost != 0 {
                drops.drop_masked(burst, lost, DropReason::Lost);
            }
        }
    }

    /// Takes one frame in, with its copy if it is to have one.
    fn admit<A>(
        &mut self,
        now: u64,
        wait: u64,
        frame: B,
        alloc: &mut A,
        copies: &mut Burst<B>,
        drops: &mut DropBatch<B>,
    ) where
        A: Alloc<Buf = B>,
    {
        let (twice, later) = (self.dup.roll(), self.reorder.roll());
        if self.held() >= self.capacity {
            return drops.drop(frame, DropReason::HoldFull);
        }
        self.seq += 1;
        let copy = if twice { self.copy(&frame, alloc, copies) } else { None };
        if later {
            self.waiting += 1 + usize::from(copy.is_some());
            let (after, until) = (self.passed + self.distance, now.saturating_add(self.limit));
            return self.back.push_back(Back { after, until, wait, seq: self.seq, frame, copy });
        }
        self.schedule(now, wait, self.seq, frame, copy);
        self.passed += 1;
        while self.back.front().is_some_and(|back| back.after <= self.passed) {
            self.release_due(now);
        }
    }

    fn copy<A: Alloc<Buf = B>>(&mut self, frame: &B, alloc: &mut A, copies: &mut Burst<B>) -> Option<B> {
        let room = self.held() + 1 < self.capacity && alloc.alloc(copies, 1, frame.len()) == 1;
        let copy = if room { copies.pop() } else { None };
        match copy {
            Some(mut copy) if copy.len() == frame.len() => {
                copy.data_mut().copy_from_slice(frame.data());
                self.counters.duplicated += 1;
                Some(copy)
            }
            _ => {
                self.counters.not_duplicated += 1;
                None
            }
        }
    }

    /// Sends the first of the frames held back on its way.
    fn release_due(&mut self, now: u64) {
        if let Some(back) = self.back.pop_front() {
            self.waiting -= 1 + usize::from(back.copy.is_some());
            self.schedule(now, back.wait, back.seq, back.frame, back.copy);
        }
    }

    fn schedule(&mut self, now: u64, wait: u64, seq: u64, frame: B, copy: Option<B>) {
        let jitter = if self.jitter > 0 { self.wobble.up_to(self.jitter) } else { 0 };
        let due = now.saturating_add(wait).saturating_add(self.delay).saturating_add(jitter);
        self.counters.delayed += u64::from(due > now);
        self.hold.push(Held { due, seq, copy: false, frame });
        if let Some(frame) = copy {
            self.hold.push(Held { due, seq, copy: true, frame });
        }
    }

    /// Appends the frames that are due, as far as the burst has room.
    pub(crate) fn pull(&mut self, now: u64, burst: &mut Burst<B>) {
        while self.back.front().is_some_and(|back| back.until <= now) {
            self.release_due(now);
        }
        while !burst.is_full() {
            let Some(held) = self.hold.pop_due(now) else { return };
            if !held.copy {
                // RFC 4737: reordered when a later frame left before it.
                self.counters.reordered += u64::from(held.seq < self.highest);
                self.highest = self.highest.max(held.seq);
            }
            burst.push(held.frame);
        }
    }

    /// Makes everything inside due at once.
    pub(crate) fn release(&mut self) {
        while !self.back.is_empty() {
            self.release_due(0);
        }
        let mut due = Hold::new(self.hold.len(), false);
        while let Some(held) = self.hold.pop_due(u64::MAX) {
            due.push(Held { due: 0, ..held });
        }
        self.hold = due;
    }
}

/// One bit for each frame for which `pick` is true.
#[inline]
fn mask<B>(burst: &Burst<B>, mut pick: impl FnMut(&B) -> bool) -> u64 {
    burst.iter().enumerate().fold(0, |mask, (i, frame)| mask | u64::from(pick(frame)) << i)
}
