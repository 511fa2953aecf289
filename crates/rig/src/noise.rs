//! The noise of cores: loops that poll the clock and do nothing else, on the lcores that trials use.

use std::time::Duration;

use failure::{Failure, Stop};
use host::{current_tid, CoreCounters, CoreFacts, Pinned, Roots};
use measure::check::{self, CoreNoise, Gap, Polled, TogetherNoise};
use packet::{Clock, GapMeter};
use units::Nanos;

use crate::{
    lcores::{OTHER_LCORE, TESTER_LCORE},
    rig::Rig,
};

/// Gaps that are noted: 1 MiB. A core with more of them within seconds is far from quiet.
const GAPS_NOTED: usize = 65_536;
/// Time for both loops to begin, when both poll at once.
const LEAD: Duration = Duration::from_millis(2);

/// What a loop found, with what the kernel counted meanwhile.
struct Listened {
    polled: Polled,
    counters: CoreCounters,
    sibling_busy_ns: Option<u64>,
}

impl Rig {
    /// Polls the clock on one CPU for this long, on the thread of the tester's lcore, which moves there meanwhile. `None`
    /// when a signal came before anything was seen.
    ///
    /// # Errors
    ///
    /// (failed) when the thread cannot move to the CPU.
    pub fn noise_alone(&self, cpu: u32, time: Duration, stop: &Stop) -> Result<Option<CoreNoise>, Failure> {
        let (clock, ticks) = (self.clock, self.ticks(time));
        let listened = self.eal.scope(|s| {
            s.launch(TESTER_LCORE, move || {
                let moved = Pinned::to(cpu).map_err(|e| Failure::failed(format!("cannot poll on CPU {cpu}: {e}")))?;
                let listened = listen(cpu, &clock, clock.now(), ticks, stop);
                drop(moved);
                Ok::<_, Failure>(listened)
            })?
            .join()
        })??;
        Ok(Some(listened).filter(|l| l.polled.ns > 0).map(|l| record(&l)))
    }

    /// The same on both lcores of the trials at once. `None` on one CPU.
    ///
    /// # Errors
    ///
    /// (failed) when an lcore fails.
    pub fn noise_together(&self, time: Duration, stop: &Stop) -> Result<Option<TogetherNoise>, Failure> {
        let Some(other) = self.cpus.other else { return Ok(None) };
        let (clock, ticks, tester) = (self.clock, self.ticks(time), self.cpus.tester);
        let start = clock.now() + self.ticks(LEAD);
        let both = self.eal.scope(|s| -> Result<_, Failure> {
            let second = s.launch(OTHER_LCORE, move || listen(other, &clock, start, ticks, stop))?;
            let first = s.launch(TESTER_LCORE, move || listen(tester, &clock, start, ticks, stop))?;
            Ok([first.join()?, second.join()?])
        })?;
        if both.iter().any(|l| l.polled.ns == 0) {
            return Ok(None);
        }
        let cores = both.iter().map(record).collect();
        Ok(Some(check::both(&both.map(|l| l.polled), cores)))
    }

    /// Whether the polling thread has real-time priority; `None` when nobody can tell.
    pub fn is_real_time(&self) -> Option<bool> {
        CoreCounters::is_real_time(&Roots::default(), self.tids[0])
    }
}

/// Polls the clock from `start` on.
fn listen(cpu: u32, clock: &impl Clock, start: u64, ticks: u64, stop: &Stop) -> Listened {
    let (roots, tid) = (Roots::default(), current_tid());
    let siblings = CoreFacts::read(&roots, cpu).siblings;
    let busy = || siblings.iter().filter_map(|&other| CoreCounters::busy_ns(&roots, other)).reduce(u64::saturating_add);
    let hz = clock.hz();
    let mut meter = GapMeter::new(hz.saturating_mul(check::GAP_NS) / 1_000_000_000).with_log(GAPS_NOTED);
    let (busy_before, before) = (busy(), CoreCounters::read(&roots, cpu, tid));
    while clock.now() < start {}
    let end = start.saturating_add(ticks);
    meter.start(start);
    let last = loop {
        let now = clock.now();
        meter.poll(now);
        if now >= end || stop.requested() {
            break now;
        }
    };
    let counters = before.until(&CoreCounters::read(&roots, cpu, tid));
    let ns = |tick: u64| Nanos::from_ticks(tick.saturating_sub(start), hz).0;
    let gaps: Vec<Gap> = meter.absences().iter().map(|a| Gap { from_ns: ns(a.from), to_ns: ns(a.to) }).collect();
    let overflowed = meter.gaps().count > gaps.len() as u64;
    let sibling_busy_ns = busy_before.zip(busy()).map(|(before, after)| after.saturating_sub(before));
    Listened { polled: Polled { cpu, ns: ns(last), gaps, overflowed }, counters, sibling_busy_ns }
}

/// The noise of a core with what the kernel says of it.
fn record(listened: &Listened) -> CoreNoise {
    let Listened { polled, counters, sibling_busy_ns } = listened;
    let facts = CoreFacts::read(&Roots::default(), polled.cpu);
    let ns = polled.ns.max(1) as f64;
    let share = |of: Option<u64>| of.map(|of| (of as f64 / ns).clamp(0.0, 1.0));
    let rate = |of: Option<u64>| of.map(|of| of as f64 / ns * 1e9);
    CoreNoise {
        steal_share: share(counters.kernel.steal_ns),
        waited_share: share(counters.kernel.waited_ns),
        interrupts_per_s: rate(counters.kernel.interrupts),
        timer_per_s: rate(counters.timer_interrupts),
        isolated: facts.isolated,
        tickless: facts.tickless,
        governor: facts.governor,
        siblings: facts.siblings,
        sibling_busy_share: share(*sibling_busy_ns),
        ..check::noise(polled)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A clock of 1 GHz that goes on by 20 ns a reading, and jumps once.
    struct Jumping(Cell<u64>);

    impl Clock for Jumping {
        fn now(&self) -> u64 {
            let step = if self.0.get() == 500_000 { 70_000 } else { 20 };
            self.0.set(self.0.get() + step);
            self.0.get()
        }

        fn hz(&self) -> u64 {
            1_000_000_000
        }
    }

    #[test]
    fn a_jump_of_the_clock_is_a_gap() {
        let listened = listen(0, &Jumping(Cell::new(0)), 100_000, 900_000, &Stop::simulated(false));
        assert_eq!(listened.polled.gaps, [Gap { from_ns: 400_000, to_ns: 470_000 }]);
        assert!((900_000..901_000).contains(&listened.polled.ns), "{}", listened.polled.ns);
        let noise = record(&listened);
        assert_eq!((noise.cpu, noise.gaps, noise.absences, noise.largest_ns), (0, 1, 1, Some(70_000)));
    }

    #[test]
    fn a_signal_ends_it_at_once() {
        let listened = listen(0, &Jumping(Cell::new(0)), 100, u64::MAX, &Stop::simulated(true));
        assert!(listened.polled.ns < 1_000 && listened.polled.gaps.is_empty());
    }
}
