//! Impairments of known size: a policer, seeded loss, duplication, reordering, delay and jitter, every frame of it counted.
//!
//! The truth a tester is checked against. Each port has its own policer, queue and random sequence, so that what
//! happens to one direction does not depend on the other.

mod bucket;
mod counters;
mod dice;
mod hold;
mod spec;
mod stage;
#[cfg(test)]
mod tests;

use packet::{Alloc, Burst, Clock};

pub use counters::ImpairCounters;
pub use spec::{ImpairSpec, Limit, Place, Policer};
use stage::Stage;

use crate::{
    node::{NodeStats, NodeTimer},
    Dispatch, DropReason, Function, Outputs,
};

/// A function with an impairment before or after it.
#[derive(Debug)]
pub struct Impair<F, A: Alloc> {
    inner: F,
    alloc: A,
    place: Place,
    /// Ticks spent on each frame.
    work: u64,
    active: bool,
    stages: Vec<Stage<A::Buf>>,
    /// The stage whose turn it is at the next poll.
    turn: usize,
    /// The function inside is due, and has not been polled since.
    inner_due: bool,
    node: NodeStats,
}

impl<F, A: Alloc> Impair<F, A> {
    /// Puts the impairment before or after `inner`, as the specification says, on each of `ports` ports.
    ///
    /// `alloc` makes the buffers of duplicates; `hz` is the rate of the clock that runs the loop. A specification
    /// that does nothing costs one branch a burst.
    pub fn new(inner: F, spec: &ImpairSpec, ports: usize, alloc: A, hz: u64) -> Self {
        let stages = if spec.is_active() { ports } else { 0 };
        Self {
            inner,
            alloc,
            place: spec.place,
            work: u64::from(spec.work),
            active: spec.is_active(),
            stages: (0..stages).map(|port| Stage::new(spec, port, hz)).collect(),
            turn: 0,
            inner_due: false,
            node: NodeStats::new("impair"),
        }
    }

    /// The function inside.
    pub fn inner(&self) -> &F {
        &self.inner
    }

    /// What was done, summed over the ports.
    pub fn impaired(&self) -> ImpairCounters {
        self.stages.iter().map(|stage| stage.counters).fold(ImpairCounters::default(), |a, b| ImpairCounters {
            policed: a.policed + b.policed,
            lost: a.lost + b.lost,
            duplicated: a.duplicated + b.duplicated,
            not_duplicated: a.not_duplicated + b.not_duplicated,
            reordered: a.reordered + b.reordered,
            delayed: a.delayed + b.delayed,
        })
    }
}

/// Spends `ticks` from `now` on.
fn work<C: Clock>(now: u64, ticks: u64, timer: &NodeTimer<'_, C>) {
    if ticks > 0 {
        while timer.read_clock().saturating_sub(now) < ticks {
            std::hint::spin_loop();
        }
    }
}

impl<F, A: Alloc> Impair<F, A> {
    /// Impairs what the function inside has sent on its way.
    fn after<C: Clock>(
        &mut self,
        dispatch: Dispatch,
        burst: &mut Burst<A::Buf>,
        out: &mut Outputs<A::Buf>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        let begun = timer.read_clock();
        let to_send = match dispatch {
            Dispatch::All(_) => burst.len(),
            Dispatch::Split => out.ports.iter().map(Burst::len).sum(),
        };
        work(begun, self.work * to_send as u64, timer);
        let now = if self.work > 0 { timer.read_clock() } else { begun };
        let mut n = 0;
        match dispatch {
            Dispatch::All(port) => {
                n += burst.len();
                if let Some(stage) = self.stages.get_mut(port) {
                    out.originated += stage.apply(now, burst, &mut self.alloc, &mut out.drops);
                }
            }
            Dispatch::Split => {
                for (stage, burst) in self.stages.iter_mut().zip(&mut out.ports) {
                    if !burst.is_empty() {
                        n += burst.len();
                        out.originated += stage.apply(now, burst, &mut self.alloc, &mut out.drops);
                    }
                }
            }
        }
        timer.end_node(&mut self.node, n);
        dispatch
    }
}

impl<F, A> Function<A::Buf> for Impair<F, A>
where
    F: Function<A::Buf>,
    A: Alloc,
{
    #[inline]
    fn process<C: Clock>(
        &mut self,
        ingress: usize,
        burst: &mut Burst<A::Buf>,
        out: &mut Outputs<A::Buf>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        if !self.active {
            return self.inner.process(ingress, burst, out, timer);
        }
        if self.place == Place::Before {
            let n = burst.len();
            work(timer.read_clock(), self.work * n as u64, timer);
            let Some(stage) = self.stages.get_mut(ingress) else {
                out.drops.drop_all(burst, DropReason::NoPort);
                return Dispatch::Split;
            };
            out.originated += stage.apply(timer.read_clock(), burst, &mut self.alloc, &mut out.drops);
            timer.end_node(&mut self.node, n);
            if burst.is_empty() {
                return Dispatch::Split;
            }
            return self.inner.process(ingress, burst, out, timer);
        }
        let dispatch = self.inner.process(ingress, burst, out, timer);
        self.after(dispatch, burst, out, timer)
    }

    #[inline]
    fn due(&mut self) -> bool {
        // Called exactly once a poll: some functions count the calls.
        self.inner_due |= self.inner.due();
        self.inner_due || self.stages.iter().any(|stage| stage.held() > 0)
    }

    /// One port's queue a call, in turn: no more than a burst leaves by it, so nothing overflows.
    fn poll<C: Clock>(
        &mut self,
        burst: &mut Burst<A::Buf>,
        out: &mut Outputs<A::Buf>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        for _ in 0..self.stages.len() {
            let port = self.turn;
            self.turn = if port + 1 < self.stages.len() { port + 1 } else { 0 };
            let Some(stage) = self.stages.get_mut(port).filter(|stage| stage.held() > 0) else { continue };
            stage.pull(timer.read_clock(), burst);
            if !burst.is_empty() {
                return match self.place {
                    Place::Before => self.inner.process(port, burst, out, timer),
                    Place::After => out.all(port, burst),
                };
            }
        }
        if !std::mem::take(&mut self.inner_due) && self.inner.held() == 0 {
            return Dispatch::Split;
        }
        let dispatch = self.inner.poll(burst, out, timer);
        match self.place {
            Place::Before => dispatch,
            Place::After => self.after(dispatch, burst, out, timer),
        }
    }

    fn release(&mut self) {
        self.stages.iter_mut().for_each(Stage::release);
        self.inner.release();
    }

    #[inline]
    fn held(&self) -> usize {
        self.stages.iter().map(Stage::held).sum::<usize>() + self.inner.held()
    }

    fn nodes(&self, visit: &mut dyn FnMut(&NodeStats)) {
        if self.active && self.place == Place::Before {
            visit(&self.node);
        }
        self.inner.nodes(visit);
        if self.active && self.place == Place::After {
            visit(&self.node);
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        if self.active {
            self.impaired().named().into_iter().for_each(|(name, count)| visit(name, count));
        }
        self.inner.counters(visit);
    }
}
