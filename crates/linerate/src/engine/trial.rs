//! One trial on the rig: probe, teach, send, check, wait, probe again, judge.

use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        Arc,
    },
    time::{Duration, Instant},
};

use dpdk::{Mbuf, PoolHandle, PortStats, RxQueue, TxQueue};
use host::{CpuSnapshot, PingPong, Roots};
use measure::{
    plan::{Placements, Trust},
    shape::{self, LoadShape},
    trial::{DirectionCounts, Interference, LcoreRole, TrialRecord, TrialSpec},
    validity::{self, Conditions},
};
use packet::{Buffer, Burst, Clock, Rx};
use traffic::{
    checker::{Checker, Sample},
    control::{Control, Timing},
    flows::{Departures, Program},
    generator::Generator,
    pacer::{Pacer, Shape},
    stream::StreamSpec,
    worker::{Receives, RxTask, Sends, TxCounters, TxTask, Worker, WorkerCounters},
};
use units::{Fps, Nanos};

use super::{
    drive::{Drive, Drove},
    record,
    replay::{self, Replayable},
    rig::{End, Rig},
    watch::{self, Watched},
    BuiltIn, OTHER_LCORE, TESTER_LCORE,
};
use crate::{failure::Failure, stop::Stop};

/// Learning frames sent by each port before a trial (RFC 2544 §23 b).
const LEARNING_FRAMES: usize = 8;
/// Wait behind the learning frames of every trial but a run's first, whose is up to the 2 s of RFC 2544 §23 b.
pub const LEARNING_WAIT: Duration = Duration::from_millis(2);
/// Copies may follow even when everything came back.
pub(super) const SETTLE: Duration = Duration::from_millis(5);
/// How long a probe may take, a core's being busy elsewhere included.
pub(super) const PROBE_LIMIT: Duration = Duration::from_millis(100);

/// What both ports send, for one frame size.
pub struct Streams {
    /// The stream of each port; the second is only taught with when the trial is one way.
    pub specs: [StreamSpec; 2],
    /// How many of them are loaded: 1 or 2.
    pub directions: usize,
    /// Every buffer of the pool already holds the payload.
    pub prefilled: bool,
    /// What the first port sends instead of its stream: flows that are known one by one.
    pub flows: Option<(StreamSpec, Arc<Program>)>,
    /// What is sent instead of streams.
    pub replay: Option<Replayable>,
}

/// What the first port sent of a flow program.
#[derive(Debug, Clone)]
pub struct Departed {
    /// Frames the port took: the first of the program.
    pub frames: u64,
    /// When they left, in ticks.
    pub departures: Departures,
    /// When the last left.
    pub last_tick: u64,
}

/// A trial to be run.
pub struct Attempt<'a> {
    /// What is asked.
    pub spec: TrialSpec,
    /// Which try at it this is, from 1.
    pub attempt: u32,
    /// When it counts.
    pub trust: &'a Trust,
    /// The self-test's maximum for this frame size.
    pub selftest_max: Option<Fps>,
}

/// How a trial ended.
pub enum TrialEnd {
    /// Run to its end; judged.
    Done(Box<Finished>),
    /// A signal cut it short: what was counted until then, which is no evidence.
    Stopped(Box<Finished>),
}

/// A finished trial.
pub struct Finished {
    /// The record.
    pub record: TrialRecord,
    /// Odd frames seen at each receiving port.
    pub samples: Vec<Vec<Sample>>,
    /// Of a flow program: what was sent.
    pub departed: Option<Departed>,
}

/// Sets a flag when dropped, a panic's way included.
pub(super) struct Set<'a>(pub(super) &'a AtomicBool);

impl Drop for Set<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

type TesterWorker<'a> = Worker<TxTask<&'a mut TxQueue, PoolHandle>, RxTask<&'a mut RxQueue>>;

impl Rig {
    /// Runs one trial and judges it. Errors only when the rig itself fails.
    pub fn run(
        &mut self,
        streams: &Streams,
        attempt: &Attempt<'_>,
        stop: &Stop,
        tick: &mut dyn FnMut(f64),
    ) -> Result<TrialEnd, Failure> {
        self.number += 1;
        let hz = self.clock.hz();
        let epoch = (self.number as u8).wrapping_add(self.epoch_base);
        // A peer that dies must not take its memory from under a poll; its link is looked at when the trial is over.
        let parked = if self.dut.is_none() { self.eal.park_interrupts() } else { None };
        drain(&mut self.ends);
        self.dut.iter_mut().for_each(BuiltIn::forget_ended);
        if streams.replay.is_none() {
            self.teach(streams, attempt.trust)?;
        }
        let probe_before = self.probe()?;
        let kernel_before = self.kernel_counters();
        let watched_before = self.watched.as_ref().map(Watched::count).transpose()?;
        let ports_before: Vec<_> = self.ends.iter().map(|e| e.port.stats().ok()).collect();
        let threshold = self.gap_threshold(attempt.spec.shape.peak(attempt.spec.load_fps), streams.directions);

        let timing = Timing {
            residual: self.ticks(attempt.trust.residual + attempt.spec.drain()),
            settle: self.ticks(SETTLE.min(attempt.trust.residual)),
        };
        let control = Control::new(timing, streams.directions);
        let duration = (attempt.spec.duration_s * hz as f64) as u64;
        let drive = Drive { control: &control, stop, attempt, threshold };
        let Self { ends, dut, frames, eal, clock, .. } = self;
        let (drove, counted) = match &streams.replay {
            None => {
                let mut worker = worker(ends, streams, frames, &attempt.spec, epoch, hz, duration, threshold)?;
                let drove = drive.run(eal, clock, dut, &mut worker, tick)?;
                (drove, Counted::of(worker))
            }
            Some(replay) => {
                let mut worker = replay.worker(ends, streams.directions, frames, hz, threshold)?;
                let drove = drive.run(eal, clock, dut, &mut worker, tick)?;
                (drove, Counted::Replayed(replay::directions(worker, hz)))
            }
        };
        let Drove { counters, drift_ppm, dut_gaps, mut dut_report } = drove;
        if parked.is_some() {
            drop(parked);
            std::thread::sleep(Duration::from_millis(2));
        }
        let probe_after = self.probe()?;
        if let (Some(watched), Some(before)) = (&self.watched, &watched_before) {
            dut_report = Some(watch::since(&watched.count()?, before));
        }
        let stopped = stop.requested();
        let kernel = self.kernel_since(&kernel_before);
        let mut lcores =
            vec![record::lcore(LcoreRole::Tester, TESTER_LCORE, Some(self.cpus.tester), counters.gaps, kernel[0], hz)];
        lcores.extend(dut_gaps.map(|g| record::lcore(LcoreRole::Dut, OTHER_LCORE, self.cpus.other, g, kernel[1], hz)));
        let times = record::Times { hz, started: counters.started };
        let (mut directions, samples, departed) = counted.directions(&attempt.spec, times);
        for (i, d) in directions.iter_mut().enumerate() {
            let [from, to] = [i, 1 - i].map(|end| self.ends.get(end).map_or_else(String::new, |e| e.name.clone()));
            (d.from, d.to) = (from, to);
            let delta = |e: usize, field: fn(&PortStats) -> u64| {
                let now = self.ends[e].port.stats().ok()?;
                Some(field(&now).saturating_sub(field(ports_before[e].as_ref()?)))
            };
            d.port_tx = delta(i, |s| s.opackets);
            d.port_rx = delta(1 - i, |s| s.ipackets);
            d.port_missed = delta(1 - i, |s| s.imissed);
        }
        // The last of few frames is due well before the end of the time asked for.
        let due = if stopped { 0 } else { counters.started.saturating_add(duration) };
        let ended = control.ended().unwrap_or(counters.left).max(due);
        let real = Nanos::from_ticks(ended.saturating_sub(counters.started), hz).seconds() * (1.0 + drift_ppm / 1e6);
        let placement = self.classifier.classify(probe_before, probe_after);
        let together = attempt.trust.placements == Placements::Together;
        let mut record = TrialRecord {
            number: self.number,
            spec: attempt.spec,
            attempt: attempt.attempt,
            real_duration_s: real,
            directions,
            interference: Interference {
                lcores,
                core_to_core_before_ns: probe_before,
                core_to_core_after_ns: probe_after,
                placement: placement.or_else(|| (self.cpus.other.is_none() || together).then_some(0)),
                clock_drift_ppm: drift_ppm,
            },
            dut: dut_report,
            violations: Vec::new(),
        };
        if stopped {
            record.violations.push(validity::cut_short(&record));
            return Ok(TrialEnd::Stopped(Box::new(Finished { record, samples, departed })));
        }
        let conditions = Conditions {
            trust: attempt.trust,
            tsc_invariant: self.facts.tsc_invariant,
            selftest_max: attempt.selftest_max,
            probes_expected: self.cpus.other.is_some() && self.classifier.classes() > 0 && !together,
        };
        validity::settle(&mut record, &conditions);
        Ok(TrialEnd::Done(Box::new(Finished { record, samples, departed })))
    }

    /// Ticks of a gap worth counting at this load.
    fn gap_threshold(&self, load: Fps, directions: usize) -> u64 {
        let ns = validity::gap_threshold_ns(load.get() * directions as f64, self.descriptors);
        self.ticks(Duration::from_nanos(ns))
    }

    /// Sends learning frames both ways, so that a bridge knows both ends before it is loaded.
    fn teach(&mut self, streams: &Streams, trust: &Trust) -> Result<(), Failure> {
        if self.dut.is_some() {
            // The built-in functions have nothing to learn.
            self.taught = true;
            return Ok(());
        }
        for (end, spec) in self.ends.iter_mut().zip(&streams.specs) {
            let generator = Generator::new(spec, 0, 0, false).map_err(Failure::usage)?;
            let pacer = Pacer::new(Fps::ZERO, self.clock.hz(), 1, 0);
            TxTask::new(&mut end.tx, self.frames.handle(), generator, pacer).learn(LEARNING_FRAMES);
            end.tx.tx_done_cleanup();
        }
        let first = !std::mem::replace(&mut self.taught, true);
        std::thread::sleep(if first { trust.residual.min(Duration::from_secs(2)) } else { LEARNING_WAIT });
        drain(&mut self.ends);
        Ok(())
    }

    /// Times the way between the two cores in use; `None` on one core.
    fn probe(&self) -> Result<Option<f64>, Failure> {
        if self.cpus.other.is_none() {
            return Ok(None);
        }
        // The best of three: an interrupt makes a probe slower, never faster.
        let mut best: Option<f64> = None;
        for _ in 0..3 {
            let court = PingPong::new();
            let ns = self.eal.scope(|s| -> Result<_, Failure> {
                let pong = s.launch(OTHER_LCORE, || court.pong(PROBE_LIMIT))?;
                let ping = s.launch(TESTER_LCORE, || court.ping(PROBE_LIMIT))?;
                let ns = ping.join()?;
                pong.join()?;
                Ok(ns)
            })?;
            best = match (best, ns) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        Ok(best)
    }

    fn kernel_counters(&self) -> [CpuSnapshot; 2] {
        let roots = Roots::default();
        let cpus = [Some(self.cpus.tester), self.cpus.other];
        [0, 1].map(|i| CpuSnapshot::read(&roots, cpus[i], self.tids[i]))
    }

    fn kernel_since(&self, before: &[CpuSnapshot; 2]) -> [CpuSnapshot; 2] {
        let after = self.kernel_counters();
        [0, 1].map(|i| before[i].until(&after[i]))
    }
}

/// Throws away what is left of earlier trials: until nothing came for a millisecond, at most 50 ms.
pub fn drain(ends: &mut [End]) {
    let mut burst: Burst<Mbuf> = Burst::new();
    let (mut quiet, begun) = (Instant::now(), Instant::now());
    while quiet.elapsed() < Duration::from_millis(1) && begun.elapsed() < Duration::from_millis(50) {
        for end in ends.iter_mut() {
            if end.rx.rx(&mut burst) > 0 {
                Buffer::discard(&mut burst);
                quiet = Instant::now();
            }
        }
    }
}

/// The windows of a trial, if it is to have any: seconds of one, and how many.
fn windows_of(spec: &TrialSpec) -> Option<(f64, u32)> {
    shape::windows(spec.window_s?, spec.duration_s)
}

/// When the frames of a trial are due.
fn pacer(spec: &TrialSpec, hz: u64, duration: u64) -> Pacer {
    let (shape, catch_up) = match spec.shape {
        // A replay has a timeline instead of a pacer.
        LoadShape::Steady | LoadShape::Replay { .. } => (Shape::Steady, Pacer::default_catch_up(hz)),
        LoadShape::Burst { frames } => (Shape::Burst { frames }, Pacer::burst_catch_up(hz)),
        LoadShape::Bursts { frames, burst_fps } => {
            (Shape::Bursts { frames, rate: burst_fps }, Pacer::burst_catch_up(hz))
        }
        LoadShape::Step { step_s, then_fps } => {
            (Shape::Step { after: (step_s * hz as f64) as u64, rate: then_fps }, Pacer::default_catch_up(hz))
        }
    };
    Pacer::shaped(shape, spec.load_fps, hz, duration, catch_up)
}

/// The tester's tasks: a stream out of each loaded port, a checker at each port.
#[allow(clippy::too_many_arguments)]
pub fn worker<'a>(
    ends: &'a mut [End],
    streams: &Streams,
    frames: &dpdk::Mempool,
    spec: &TrialSpec,
    epoch: u8,
    hz: u64,
    duration: u64,
    threshold: u64,
) -> Result<TesterWorker<'a>, Failure> {
    let (mut txs, mut rxs) = (Vec::new(), Vec::new());
    for (i, end) in ends.iter_mut().enumerate() {
        let stream = &streams.specs[i.min(1)];
        if i < streams.directions {
            let generator = match &streams.flows {
                Some((stream, program)) if i == 0 => {
                    Generator::with_flows(stream, program, 0, epoch, streams.prefilled)
                }
                _ => Generator::new(stream, i as u16, epoch, streams.prefilled),
            };
            let generator = generator.map_err(Failure::usage)?;
            let pacer = pacer(spec, hz, duration);
            txs.push(TxTask::new(&mut end.tx, frames.handle(), generator, pacer));
        }
        // Port i gets what the other port sends.
        let own = if 1 - i.min(1) < streams.directions { vec![1 - i as u16] } else { vec![] };
        let others: Vec<u16> = (0..streams.directions as u16).filter(|id| !own.contains(id)).collect();
        let mut checker = Checker::new(epoch, &own, &others, 0).with_sizes(stream.frame_size);
        if let Some((width_s, count)) = windows_of(spec).filter(|_| !own.is_empty()) {
            checker = checker.with_intervals((width_s * hz as f64) as u64, count as usize);
        }
        rxs.push(RxTask::new(&mut end.rx, checker));
    }
    Ok(Worker::new(txs, rxs, threshold))
}

/// What the workers of a trial counted.
enum Counted {
    Checked(Vec<TxCounters>, Vec<Checker>, Option<Departed>),
    /// Already in the form of the record.
    Replayed(Vec<DirectionCounts>),
}

impl Counted {
    fn of(worker: TesterWorker<'_>) -> Self {
        let departed = worker.tx.first().and_then(|task| {
            let (counters, departures) = (task.counters(), task.generator().departures()?.clone());
            Some(Departed { frames: counters.sent, departures, last_tick: counters.last_tick })
        });
        let txs = worker
            .tx
            .into_iter()
            .map(|task| {
                let counters = task.counters();
                // What the driver still holds is on its way; let it know that nothing follows.
                task.into_parts().0.tx_done_cleanup();
                counters
            })
            .collect();
        Self::Checked(txs, worker.rx.into_iter().map(|task| task.into_parts().1).collect(), departed)
    }

    /// The directions, but for the names of their ports; odd frames seen at each; what was sent of a flow program.
    fn directions(
        self,
        spec: &TrialSpec,
        times: record::Times,
    ) -> (Vec<DirectionCounts>, Vec<Vec<Sample>>, Option<Departed>) {
        let (txs, rxs, departed) = match self {
            Self::Checked(txs, rxs, departed) => (txs, rxs, departed),
            Self::Replayed(directions) => return (directions, Vec::new(), None),
        };
        let direction = |(i, tx): (usize, &TxCounters)| {
            let checker = rxs.get(1 - i)?;
            let mut d = record::direction(i as u16, tx, checker, times);
            if let Some((width_s, _)) = windows_of(spec) {
                let found = checker.intervals().iter().map(|w| w.missing).sum();
                let tail = d.lost.saturating_sub(found);
                d.windows = record::windows(checker, width_s, spec.duration_s, tail, times.hz);
            }
            Some(d)
        };
        let directions = txs.iter().enumerate().filter_map(direction).collect();
        (directions, rxs.iter().map(|c| c.samples().to_vec()).collect(), departed)
    }
}

/// Runs the worker, timing the clock against CLOCK_MONOTONIC: counters, and drift in ppm (positive: TSC too slow).
pub fn timed<S: Sends, R: Receives>(
    worker: &mut Worker<S, R>,
    clock: &dpdk::Tsc,
    control: &Control,
) -> (WorkerCounters, f64) {
    let begun = both_clocks(clock);
    control.start_at(clock.now() + clock.hz() / 10_000);
    let counters = worker.run(clock, control);
    let ended = both_clocks(clock);
    let real = (ended.0 - begun.0).as_secs_f64();
    let ticked = Nanos::from_ticks(ended.1.saturating_sub(begun.1), clock.hz()).seconds();
    (counters, if ticked > 0.0 { (real / ticked - 1.0) * 1e6 } else { 0.0 })
}

/// The time by both clocks: of five readings the one that the least time passed between, since a trial of a few
/// microseconds would otherwise blame the clocks for an interrupt.
fn both_clocks(clock: &dpdk::Tsc) -> (Instant, u64) {
    let read = || {
        let before = clock.now();
        let time = Instant::now();
        let after = clock.now();
        (after.saturating_sub(before), (time, before + after.saturating_sub(before) / 2))
    };
    (0..4).map(|_| read()).fold(read(), |best, next| if next.0 < best.0 { next } else { best }).1
}
