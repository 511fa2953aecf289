//! Whole trials over cables in memory: what a known device did to the frames is found exactly.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::collections::VecDeque;

use common::{v4_udp, verify};
use packet::{
    heap::{HeapBuf, HeapPool, HeapWire},
    Buffer, Burst, Clock, FakeClock, Rx, Tx,
};
use proptest::prelude::*;
use traffic::{
    checker::Checker,
    control::{Control, Timing},
    generator::Generator,
    pacer::Pacer,
    stream::StreamSpec,
    worker::{RxTask, TxCounters, TxTask, Worker},
};
use units::{Fps, FrameSize};

const HZ: u64 = 1_000_000_000;
const MS: u64 = HZ / 1000;

type HeapWorker = Worker<TxTask<HeapWire, HeapPool>, RxTask<HeapWire>>;

fn spec(flows: u64) -> StreamSpec {
    StreamSpec { flows: Some(flows), ..StreamSpec::constant(v4_udp(), FrameSize::MIN) }
}

/// What a device does to one frame.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Act {
    Pass,
    Drop,
    Double,
    /// Held back until so many frames have passed it.
    Hold(usize),
}

/// A device under test between two cables that does to frame `n` what act `n` says, and counts it.
struct Device {
    input: HeapWire,
    output: HeapWire,
    pool: HeapPool,
    acts: Vec<Act>,
    seen: usize,
    held: Option<(usize, HeapBuf)>,
    held_number: u64,
    out: VecDeque<HeapBuf>,
    dropped: Vec<u64>,
    doubled: u64,
    reordered: u64,
}

impl Device {
    fn turn(&mut self) {
        let mut burst = Burst::new();
        self.input.rx(&mut burst);
        for buf in burst {
            let act = self.acts.get(self.seen % self.acts.len().max(1)).copied().unwrap_or(Act::Pass);
            self.seen += 1;
            match act {
                Act::Drop => self.dropped.push(self.seen as u64 - 1),
                Act::Hold(behind) if behind > 0 && self.held.is_none() => {
                    self.held = Some((behind, buf));
                    self.held_number = self.seen as u64 - 1;
                }
                Act::Double => {
                    self.out.extend(self.pool.frame(buf.data()));
                    self.out.push_back(buf);
                    self.doubled += 1;
                    self.passed();
                }
                _ => {
                    self.out.push_back(buf);
                    self.passed();
                }
            }
        }
        while let Some(buf) = self.out.pop_front() {
            let mut one: Burst<_> = [buf].into_iter().collect();
            if self.output.tx(&mut one) == 0 {
                self.out.extend(one);
                self.out.rotate_right(1);
                break;
            }
        }
    }

    /// A frame has gone by the one held back.
    fn passed(&mut self) {
        match self.held.take() {
            Some((1, held)) => {
                self.reordered += 1;
                self.out.push_back(held);
            }
            Some((n, held)) => self.held = Some((n - 1, held)),
            None => {}
        }
    }
}

struct Setup {
    worker: HeapWorker,
    device: Device,
    clock: FakeClock,
    control: Control,
    pool: HeapPool,
}

/// A tester on one core that sends to a device and takes its frames back.
fn setup(rate: f64, duration: u64, acts: Vec<Act>, pool: HeapPool, depth: usize) -> Setup {
    let clock = FakeClock::new(HZ);
    clock.advance(1000);
    let ((near, input), (output, back)) = (HeapWire::pair(depth), HeapWire::pair(1 << 20));
    let generator = Generator::new(&spec(100), 5, 2, false).unwrap();
    let checker = Checker::new(2, &[5], &[6], generator.frame_len()).with_intervals(duration / 4, 4);
    let pacer = Pacer::new(Fps::new(rate).unwrap(), HZ, duration, Pacer::default_catch_up(HZ));
    let tx = TxTask::new(near, pool.clone(), generator, pacer);
    let worker = Worker::new(vec![tx], vec![RxTask::new(back, checker)], MS);
    let device = Device {
        input,
        output,
        pool: HeapPool::new(1 << 20, 64),
        acts,
        seen: 0,
        held: None,
        out: VecDeque::new(),
        held_number: 0,
        dropped: Vec::new(),
        doubled: 0,
        reordered: 0,
    };
    let control = Control::new(Timing { residual: 20 * MS, settle: MS }, 1);
    Setup { worker, device, clock, control, pool }
}

impl Setup {
    /// Runs to the end, with so many ticks between turns.
    fn run(&mut self, step: impl Fn(u64) -> u64) {
        self.control.start_at(self.clock.now() + 10);
        for turn in 0.. {
            self.clock.advance(step(turn));
            if !self.worker.turn(&self.clock, &self.control) {
                break;
            }
            self.device.turn();
        }
    }

    fn tx(&self) -> TxCounters {
        let tx = self.worker.tx[0].counters();
        assert_eq!(tx.intended, tx.sent + tx.refused + tx.skipped);
        tx
    }

    fn rx(&self) -> &Checker {
        self.worker.rx[0].checker()
    }
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        20 => Just(Act::Pass),
        1 => Just(Act::Drop),
        1 => Just(Act::Double),
        1 => (1usize..50).prop_map(Act::Hold),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]
    #[test]
    fn loss_copies_and_reordering_are_found_exactly(acts in proptest::collection::vec(any_act(), 1..2000), step in 100u64..30_000) {
        let mut s = setup(1e6, 5 * MS, acts, HeapPool::new(4096, 64), 4096);
        s.run(|_| step);
        let tx = s.tx();
        prop_assert_eq!((tx.intended, tx.sent), (5000, 5000));
        let counts = s.rx().counts();
        // A frame still held at the end is lost; a copy of a frame ahead of a held one changes nothing.
        let mut missing = s.device.dropped.clone();
        missing.extend(s.device.held.is_some().then_some(s.device.held_number));
        missing.sort_unstable();
        let lost = missing.len() as u64;
        prop_assert_eq!(counts.streams.received, 5000 - lost);
        prop_assert_eq!(counts.streams.duplicates, s.device.doubled);
        prop_assert_eq!(counts.streams.reordered, s.device.reordered);
        prop_assert_eq!((counts.streams.late, counts.foreign, counts.misdirected, counts.wrong_length), (0, 0, 0, 0));
        let losses = s.rx().losses(5, tx.sent);
        prop_assert_eq!(losses.last.map(|run| run.first + run.frames - 1), missing.last().copied());
        let longest = missing.chunk_by(|a, b| a + 1 == *b).map(|run| (run.len() as u64, run[0])).max_by_key(|r| (r.0, u64::MAX - r.1));
        prop_assert_eq!(losses.longest.map(|run| (run.frames, run.first)), longest);
        let intervals = s.rx().intervals();
        prop_assert_eq!(intervals.iter().map(|i| i.received).sum::<u64>(), counts.streams.received);
        let tail = losses.last.filter(|run| run.behind.is_none()).map_or(0, |run| run.frames);
        prop_assert_eq!(intervals.iter().map(|i| i.missing).sum::<u64>(), lost - tail);
        prop_assert_eq!(counts.received_bytes, counts.streams.received * 64);
        prop_assert_eq!(s.rx().delays().count(), counts.streams.received);
        prop_assert_eq!((s.control.sent(), s.control.received()), (5000, counts.streams.received));
        s.device.held = None;
        prop_assert_eq!((s.pool.in_use(), s.device.pool.in_use()), (0, 0));
    }
}

#[test]
fn a_clean_trial_ends_early_and_measures_every_delay() {
    let mut s = setup(1e6, 10 * MS, vec![], HeapPool::new(4096, 64), 4096);
    s.run(|_| 500);
    let (tx, counters) = (s.tx(), s.worker.counters());
    assert_eq!((tx.sent, tx.refused, tx.skipped), (10_000, 0, 0));
    assert_eq!(s.rx().counts().streams.received, 10_000);
    // Sent in one turn, back in the next.
    assert_eq!((s.rx().delays().min(), s.rx().delays().max()), (Some(500), Some(500)));
    assert_eq!((s.rx().ipdv().count(), s.rx().ipdv().max()), (9999, Some(0)));
    let span = counters.left - counters.started;
    assert!((109 * MS / 10..12 * MS).contains(&span), "{span}");
    assert!(tx.last_tick - tx.first_tick > 9_990_000 && tx.last_tick - tx.first_tick < 10 * MS);
    assert_eq!(counters.gaps.count, 0);
    assert!(counters.busy_loops <= counters.loops);
    // A frame falls due every other turn, and is back in the next one: every turn is busy.
    assert!((98 * MS / 10..=10 * MS).contains(&counters.busy_ticks), "{}", counters.busy_ticks);
    assert_eq!(s.pool.in_use(), 0);
}

#[test]
fn turns_without_a_frame_are_not_busy() {
    // Of ten turns a microsecond one sends a frame, and one receives it.
    let mut s = setup(1e6, 10 * MS, vec![], HeapPool::new(4096, 64), 4096);
    s.run(|_| 100);
    let busy = s.worker.counters().busy_ticks;
    assert!((19 * MS / 10..=2 * MS).contains(&busy), "{busy}");
}

#[test]
fn lost_frames_are_waited_for_as_long_as_the_residual_time() {
    let mut s = setup(1e6, MS, vec![Act::Drop], HeapPool::new(4096, 64), 4096);
    s.run(|_| 1000);
    let span = s.worker.counters().left - s.worker.counters().started;
    assert!((209 * MS / 10..22 * MS).contains(&span), "{span}");
    assert_eq!(s.rx().counts().streams.received, 0);
}

#[test]
fn what_a_full_queue_refuses_is_counted_and_numbers_are_not_lost() {
    // 20 frames fall due a turn, the cable holds 8, and the device empties it each turn.
    let mut s = setup(10e6, 2 * MS, vec![], HeapPool::new(64, 64), 8);
    s.run(|_| 2000);
    let tx = s.tx();
    assert!(tx.refused > 10_000 && tx.skipped == 0, "{tx:?}");
    let counts = s.rx().counts().streams;
    assert_eq!((counts.received, counts.duplicates, counts.reordered), (tx.sent, 0, 0));
    // Nothing is lost by number, and each turn refuses one run.
    assert_eq!(s.rx().losses(5, tx.sent).last, None);
    assert!((12..=40).contains(&tx.longest_refused.frames), "{tx:?}");
    assert_eq!(tx.last_refused.from, Some(tx.last_refused.to), "some of that burst were taken");
    assert!(tx.last_refused.to > 1_900_000 && tx.last_refused.sequence <= tx.sent, "{tx:?}");
    // Consecutive numbers: every pair gives an IPDV.
    assert_eq!(s.rx().ipdv().count(), tx.sent - 1);
    assert_eq!(s.pool.in_use(), 0);
}

#[test]
fn an_empty_pool_is_the_testers_fault() {
    let mut s = setup(10e6, MS, vec![], HeapPool::new(4, 64), 4096);
    let keep: Vec<_> = (0..4).filter_map(|_| s.pool.frame(&[])).collect();
    s.run(|_| 2000);
    let tx = s.tx();
    assert_eq!((tx.intended, tx.sent, tx.refused, tx.skipped, tx.alloc_failures), (10_000, 0, 0, 10_000, 10_000));
    drop(keep);
    assert_eq!(s.pool.in_use(), 0);
}

#[test]
fn a_stalled_tester_skips_frames_and_shows_the_gap() {
    let mut s = setup(1e6, 20 * MS, vec![], HeapPool::new(4096, 64), 4096);
    s.run(|turn| if turn == 2000 { 10 * MS } else { 1000 });
    let (tx, gaps) = (s.tx(), s.worker.counters().gaps);
    assert_eq!((tx.sent, tx.skipped), (20_000 - tx.skipped, 10_000 - 100));
    assert_eq!((gaps.largest, gaps.count, gaps.total), (10 * MS, 1, 10 * MS));
    assert!((1_990_000..2_010_000).contains(&gaps.largest_at), "{}", gaps.largest_at);
    assert_eq!(s.rx().counts().streams.received, tx.sent);
}

#[test]
fn a_stop_at_any_moment_keeps_the_books_and_the_buffers() {
    for stop_at in [0, 1, 2, 50, 777] {
        let mut s = setup(1e6, 10 * MS, vec![], HeapPool::new(4096, 64), 4096);
        s.control.start_at(s.clock.now() + 10);
        for turn in 0.. {
            s.clock.advance(1000);
            if turn == stop_at {
                s.control.stop();
            }
            if !s.worker.turn(&s.clock, &s.control) {
                assert_eq!(turn, stop_at);
                break;
            }
            s.device.turn();
        }
        let tx = s.tx();
        assert!(tx.intended <= stop_at + 1, "{tx:?}");
        s.device.turn();
        drop(s.worker);
        drop(s.device);
        assert_eq!(s.pool.in_use(), 0);
    }
}

#[test]
fn a_stop_before_the_start_sends_nothing() {
    let mut s = setup(1e6, 10 * MS, vec![], HeapPool::new(4096, 64), 4096);
    s.control.start_at(s.clock.now() + HZ);
    assert!(s.worker.turn(&s.clock, &s.control));
    s.control.stop();
    assert!(!s.worker.turn(&s.clock, &s.control));
    assert_eq!(s.tx(), TxCounters::default());
}

#[test]
fn learning_frames_go_out_whole_and_count_for_nothing() {
    let pool = HeapPool::new(256, 64);
    let (near, mut far) = HeapWire::pair(256);
    let generator = Generator::new(&spec(100), 5, 2, false).unwrap();
    let pacer = Pacer::new(Fps::new(1e6).unwrap(), HZ, MS, MS);
    let mut task = TxTask::new(near, pool.clone(), generator, pacer);
    assert_eq!(task.learn(100), 100);
    assert_eq!(task.counters().sent, 0);
    let mut checker = Checker::new(2, &[5], &[], 60);
    let mut burst = Burst::new();
    while far.rx(&mut burst) > 0 {
        burst.iter().for_each(|buf| verify(&buf.data()[14..]));
        checker.check(&burst, 0);
        burst.clear();
    }
    assert_eq!((checker.counts().foreign, checker.counts().streams.received), (100, 0));
    assert_eq!(task.learn(1000), 256);
    drop((task, far));
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn both_ways_on_two_workers_leave_together() {
    let clock = FakeClock::new(HZ);
    let pool = HeapPool::new(4096, 64);
    let (a, b) = HeapWire::pair(4096);
    let control = Control::new(Timing { residual: 20 * MS, settle: MS }, 2);
    let worker = |wire: &HeapWire, own: u16, other: u16, rate: f64| -> HeapWorker {
        let generator = Generator::new(&spec(10), own, 1, false).unwrap();
        let checker = Checker::new(1, &[other], &[own], generator.frame_len());
        let pacer = Pacer::new(Fps::new(rate).unwrap(), HZ, 5 * MS, MS);
        let tx = TxTask::new(wire.clone(), pool.clone(), generator, pacer).with_max_burst(4);
        Worker::new(vec![tx], vec![RxTask::new(wire.clone(), checker)], MS)
    };
    let mut workers = [worker(&a, 0, 1, 1e6), worker(&b, 1, 0, 2e6)];
    control.start_at(500);
    let mut running = [true; 2];
    while running != [false; 2] {
        clock.advance(700);
        for (worker, running) in workers.iter_mut().zip(&mut running) {
            *running = *running && worker.turn(&clock, &control);
        }
    }
    for (worker, (sent, received)) in workers.iter().zip([(5000, 10_000), (10_000, 5000)]) {
        assert_eq!(worker.tx[0].counters().sent, sent);
        assert_eq!(worker.rx[0].checker().counts().streams.received, received);
        assert!(worker.counters().left < 10 * MS);
    }
    assert_eq!(pool.in_use(), 0);
}
