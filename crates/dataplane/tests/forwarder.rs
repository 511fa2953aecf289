//! The loop around a function: what comes in is out, dropped or held, and another thread sees it while it runs.
#![allow(clippy::unwrap_used)]

use std::{cell::Cell, rc::Rc, sync::atomic::AtomicBool, time::Duration};

use dataplane::{
    impair::Impair, AnyFunction, DropReason, Forwarder, Function, Input, NotRunning, Null, PortMap, Settings, Snapshot,
};
use packet::{
    heap::{HeapBuf, HeapPool, HeapWire},
    Burst, Clock, FakeClock, Gaps, Rx, Tx,
};

const PATIENCE: Duration = Duration::from_secs(60);

struct Rig<F> {
    pool: HeapPool,
    clock: FakeClock,
    /// The far ends of the cables.
    ends: [HeapWire; 2],
    forwarder: Forwarder<F, HeapWire, HeapWire, FakeClock>,
}

fn rig<F: Function<HeapBuf>>(function: impl FnOnce(&HeapPool) -> F, depth: usize, settings: Settings) -> Rig<F> {
    let (pool, clock) = (HeapPool::new(10_000, 128), FakeClock::new(1_000_000));
    let ((far0, near0), (far1, near1)) = (HeapWire::pair(depth), HeapWire::pair(depth));
    let inputs = vec![
        Input { port: 0, queue_id: 0, queue: near0.clone() },
        Input { port: 1, queue_id: 0, queue: near1.clone() },
    ];
    let forwarder = Forwarder::new(function(&pool), inputs, vec![near0, near1], clock.clone(), settings);
    Rig { pool, clock, ends: [far0, far1], forwarder }
}

impl<F: Function<HeapBuf>> Rig<F> {
    fn put(&mut self, port: usize, n: usize) {
        let mut burst: Burst<_> = (0..n).map(|_| self.pool.frame(&[7; 60]).unwrap()).collect();
        assert_eq!(self.ends[port].tx(&mut burst), n);
    }

    fn get(&mut self, port: usize) -> usize {
        self.ends[port].rx(&mut Burst::new())
    }
}

fn null(_: &HeapPool) -> Null {
    Null::new(PortMap::pairs(2))
}

fn node(snapshot: &Snapshot, name: &str) -> (u64, u64, u64) {
    let node = snapshot.nodes.iter().find(|node| node.name == name).unwrap();
    (node.calls, node.vectors, node.clocks)
}

#[test]
fn both_directions_are_forwarded_and_counted() {
    let mut rig = rig(null, 64, Settings::default());
    rig.put(0, 5);
    rig.put(1, 3);
    assert_eq!(rig.forwarder.poll_once(), 8);
    rig.clock.advance(100);
    assert_eq!(rig.forwarder.poll_once(), 0);
    rig.clock.advance(10);
    assert_eq!(rig.forwarder.poll_once(), 0);
    assert_eq!((rig.get(1), rig.get(0)), (5, 3));
    let seen = rig.forwarder.snapshot();
    assert_eq!((seen.rx[0].frames, seen.rx[1].frames, seen.tx[0].frames, seen.tx[1].frames), (5, 3, 3, 5));
    assert_eq!((seen.received(), seen.sent(), seen.drops.total(), seen.held), (8, 8, 0, 0));
    assert_eq!((seen.busy_polls, seen.idle_polls, seen.busy_clocks, seen.idle_clocks), (1, 1, 100, 10));
    assert_eq!(seen.gaps, Gaps { largest: 100, largest_at: 0, total: 110, count: 2, threshold: 1 });
    assert_eq!(seen.nodes.iter().map(|n| n.name).collect::<Vec<_>>(), ["rx", "null", "tx"]);
    assert!(seen.nodes.iter().all(|n| (n.calls, n.vectors) == (2, 8)));
    assert_eq!(rig.pool.in_use(), 0);
}

#[test]
fn a_full_queue_drops_what_is_left_after_the_retries() {
    for tx_retries in [0, 3] {
        let mut rig = rig(null, 40, Settings { tx_retries, ..Settings::default() });
        rig.put(0, 30);
        rig.forwarder.poll_once();
        rig.put(0, 30);
        rig.forwarder.poll_once();
        let seen = rig.forwarder.snapshot();
        assert_eq!((seen.tx[1].frames, seen.drops[DropReason::TxFull], seen.drops.total()), (40, 20, 20));
        assert_eq!(seen.received(), seen.sent() + seen.drops.total());
        assert_eq!((rig.get(1), rig.pool.in_use()), (40, 0));
    }
}

/// A queue that takes two frames a call.
struct Slow(HeapWire, Rc<Cell<u32>>);

impl Tx for Slow {
    type Buf = HeapBuf;
    fn tx(&mut self, burst: &mut Burst<HeapBuf>) -> usize {
        self.1.set(self.1.get() + 1);
        let mut two: Burst<_> = burst.drain(..burst.len().min(2)).collect();
        self.0.tx(&mut two)
    }
}

#[test]
fn retries_are_bounded_and_end_with_the_last_frame() {
    for (retries, sent, calls) in [(0, 2, 1), (1, 4, 2), (9, 5, 3)] {
        let (pool, (mut far, near)) = (HeapPool::new(8, 64), HeapWire::pair(8));
        let settings = Settings { tx_retries: retries, ..Settings::default() };
        let input = vec![Input { port: 0, queue_id: 0, queue: near.clone() }];
        let function = Null::new(PortMap::pairs(1));
        let asked = Rc::new(Cell::new(0));
        let slow = Slow(near, Rc::clone(&asked));
        let mut forwarder = Forwarder::new(function, input, vec![slow], FakeClock::new(1), settings);
        assert_eq!(far.tx(&mut (0..5).map(|_| pool.frame(&[1]).unwrap()).collect()), 5);
        forwarder.poll_once();
        let seen = forwarder.snapshot();
        assert_eq!((seen.sent(), seen.drops[DropReason::TxFull]), (sent, 5 - sent));
        assert_eq!(node(&seen, "tx"), (1, 5, 0));
        let mut got = Burst::new();
        assert_eq!(far.rx(&mut got) as u64, sent);
        drop(got);
        assert_eq!((pool.in_use(), asked.get()), (0, calls));
    }
}

#[test]
fn the_end_sends_what_is_held() {
    let spec = "delay=1s,dup=100%".parse().unwrap();
    let build = |pool: &HeapPool| Impair::new(null(pool), &spec, 2, pool.clone(), 1_000_000);
    let mut rig = rig(build, 1_000, Settings::default());
    for _ in 0..3 {
        rig.put(0, 50);
        rig.forwarder.poll_once();
    }
    let seen = rig.forwarder.snapshot();
    assert_eq!((seen.received(), seen.sent(), seen.held, seen.counter("impair-duplicated")), (150, 0, 300, 150));
    assert_eq!((seen.balance(), seen.originated), (Ok(()), 150), "a copy is a frame made here");
    rig.forwarder.control().stop();
    let last = rig.forwarder.run(&AtomicBool::new(false));
    assert_eq!((last.sent(), last.held, last.drops.total()), (300, 0, 0));
    assert_eq!(rig.forwarder.control().snapshot(PATIENCE), Ok(last));
    assert_eq!((0..5).map(|_| rig.get(1)).sum::<usize>(), 300);
    assert_eq!(rig.pool.in_use(), 0);
}

/// Real time for a loop that runs in its own thread.
struct Monotonic(std::time::Instant);

impl Clock for Monotonic {
    fn now(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
    fn hz(&self) -> u64 {
        1_000_000_000
    }
}

/// Makes frames for ever.
struct Source(HeapPool);

impl Rx for Source {
    type Buf = HeapBuf;
    fn rx(&mut self, burst: &mut Burst<HeapBuf>) -> usize {
        burst.extend((0..8).filter_map(|_| self.0.frame(&[3; 60])));
        burst.len()
    }
}

struct Sink;

impl Tx for Sink {
    type Buf = HeapBuf;
    fn tx(&mut self, burst: &mut Burst<HeapBuf>) -> usize {
        // Takes seven of eight, so that drops move too.
        burst.drain(..burst.len().min(7)).count()
    }
}

#[test]
fn counters_read_from_another_thread_always_balance() {
    let pool = HeapPool::new(64, 64);
    let source = pool.clone();
    let (send, receive) = std::sync::mpsc::channel();
    let lcore = std::thread::spawn(move || {
        let function = AnyFunction::Null(Null::new(PortMap::pairs(2)));
        let inputs = vec![Input { port: 0, queue_id: 0, queue: Source(source) }];
        let clock = Monotonic(std::time::Instant::now());
        let mut forwarder: Forwarder<AnyFunction<HeapPool>, _, _, _> =
            Forwarder::new(function, inputs, vec![Sink, Sink], clock, Settings::default());
        send.send(forwarder.control()).unwrap();
        forwarder.run(&AtomicBool::new(false))
    });
    let control = receive.recv().unwrap();
    let mut before = control.snapshot_and_reset_gaps(u64::MAX, PATIENCE).unwrap();
    for _ in 0..50 {
        let now = control.snapshot(PATIENCE).unwrap();
        let moved = now.since(&before);
        assert_eq!(now.received(), now.sent() + now.drops.total());
        assert_eq!(moved.received(), moved.sent() + moved.drops.total());
        assert_eq!(node(&moved, "rx").1, moved.received());
        assert!(now.taken_at >= before.taken_at && now.gaps.count == 0 && now.gaps.largest < now.taken_at);
        before = now;
    }
    control.stop();
    let last = lcore.join().unwrap();
    assert!(last.received() >= before.received());
    assert_eq!(control.snapshot(Duration::ZERO), Ok(last));
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_loop_that_rests_and_goes_on_is_never_read_half() {
    let pool = HeapPool::new(64, 64);
    let source = pool.clone();
    let (send, receive) = std::sync::mpsc::channel();
    let lcore = std::thread::spawn(move || {
        let inputs = vec![Input { port: 0, queue_id: 0, queue: Source(source) }];
        let clock = Monotonic(std::time::Instant::now());
        let function = Null::new(PortMap::pairs(2));
        let mut forwarder = Forwarder::new(function, inputs, vec![Sink, Sink], clock, Settings::default());
        send.send(forwarder.control()).unwrap();
        for _ in 0..20_000 {
            forwarder.poll_once();
            forwarder.run_and_rest(&AtomicBool::new(true));
        }
        forwarder.finish()
    });
    let control = receive.recv().unwrap();
    while !lcore.is_finished() {
        let seen = control.snapshot(PATIENCE).unwrap();
        assert_eq!(seen.balance(), Ok(()));
        assert_eq!(seen.node_clocks() + seen.loop_clocks, seen.busy_clocks);
    }
    let last = lcore.join().unwrap();
    assert_eq!((last.suspends, pool.in_use()), (19_999, 0));
    assert_eq!(control.snapshot(Duration::ZERO), Ok(last));
}

#[test]
fn a_loop_that_does_not_run_is_reported() {
    let rig = rig(null, 8, Settings::default());
    let timeout = Duration::from_millis(1);
    assert_eq!(rig.forwarder.control().snapshot(timeout), Err(NotRunning(timeout)));
}

#[test]
fn gaps_start_again_when_asked() {
    let mut rig = rig(null, 8, Settings { gap_threshold: 50, ..Settings::default() });
    let control = rig.forwarder.control();
    rig.forwarder.poll_once();
    rig.clock.advance(900);
    // The question is put before the poll that answers it; nobody waits for the answer here.
    assert!(control.snapshot_and_reset_gaps(5, Duration::ZERO).is_err());
    rig.forwarder.poll_once();
    assert_eq!(rig.forwarder.snapshot().gaps, Gaps { threshold: 5, ..Gaps::default() });
    rig.clock.advance(6);
    rig.forwarder.poll_once();
    assert_eq!(rig.forwarder.snapshot().gaps, Gaps { largest: 6, largest_at: 0, total: 6, count: 1, threshold: 5 });
}
