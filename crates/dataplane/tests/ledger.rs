//! Every frame and every tick is accounted for, whatever functions, queues and transmit policy do.
#![allow(clippy::unwrap_used)]

use std::{cell::Cell, collections::VecDeque, rc::Rc, sync::atomic::AtomicBool, time::Duration};

use dataplane::{
    node::{NodeStats, NodeTimer},
    runtime::Runtime,
    Dispatch, DropReason, Forwarder, Function, Input, Null, Outputs, PortMap, Settings, Snapshot, TxPolicy,
};
use packet::{
    heap::{HeapBuf, HeapPool},
    Buffer, Burst, Clock, FakeClock, Rx, Tx,
};
use proptest::prelude::*;

/// A small random sequence.
#[derive(Clone)]
struct Dice(Rc<Cell<u64>>);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(Rc::new(Cell::new(seed)))
    }

    fn below(&self, n: u64) -> u64 {
        let next = self.0.get().wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0.set(next);
        (next >> 33) % n.max(1)
    }
}

/// A clock that goes on by itself at every look, by 1 to 50 ticks; nobody else's time passes.
#[derive(Clone)]
struct Walking(Rc<Cell<u64>>, Dice);

impl Clock for Walking {
    fn now(&self) -> u64 {
        self.0.set(self.0.get() + 1 + self.1.below(50));
        self.0.get()
    }
    fn hz(&self) -> u64 {
        1_000_000
    }
}

/// Frames for each poll to come, numbered: `[poll, number]`, eight bytes each.
struct Source {
    pool: HeapPool,
    plan: VecDeque<usize>,
    poll: u64,
    next: u64,
}

impl Rx for Source {
    type Buf = HeapBuf;
    fn rx(&mut self, burst: &mut Burst<HeapBuf>) -> usize {
        let n = self.plan.pop_front().unwrap_or(0);
        for _ in 0..n {
            let bytes = [self.poll.to_be_bytes(), self.next.to_be_bytes()].concat();
            burst.push(self.pool.frame(&bytes).unwrap());
            self.next += 1;
        }
        self.poll += 1;
        n
    }
}

fn numbers(frame: &HeapBuf) -> (u64, u64) {
    let number = |at: usize| u64::from_be_bytes(frame.data()[at..at + 8].try_into().unwrap());
    (number(0), number(8))
}

/// What left, each with its numbers; refuses at random if it is to.
#[derive(Clone, Default)]
struct Sink {
    got: Rc<std::cell::RefCell<Vec<(u64, u64)>>>,
    refuse: Option<Dice>,
}

impl Tx for Sink {
    type Buf = HeapBuf;
    fn tx(&mut self, burst: &mut Burst<HeapBuf>) -> usize {
        assert!(!burst.is_empty(), "a queue is never asked for nothing");
        let n = self.refuse.as_ref().map_or(burst.len(), |dice| dice.below(burst.len() as u64 + 1) as usize);
        self.got.borrow_mut().extend(burst.drain(..n).map(|frame| numbers(&frame)));
        n
    }
}

/// Does with frames at random whatever a function may do with them.
struct Chaos {
    dice: Dice,
    ports: u64,
    held: VecDeque<HeapBuf>,
    pool: HeapPool,
    released: bool,
    nodes: [NodeStats; 2],
}

impl Chaos {
    fn new(dice: Dice, pool: &HeapPool) -> Self {
        let nodes = [NodeStats::new("a"), NodeStats::new("b")];
        Self { dice, ports: 2, held: VecDeque::new(), pool: pool.clone(), released: false, nodes }
    }
}

impl Function<HeapBuf> for Chaos {
    fn process<C: Clock>(
        &mut self,
        _: usize,
        burst: &mut Burst<HeapBuf>,
        out: &mut Outputs<HeapBuf>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        timer.end_node(&mut self.nodes[0], burst.len());
        // One port more than there is.
        if self.dice.below(3) == 0 {
            let made = self.pool.frame(&[0xff; 16]).unwrap();
            out.originate(0, made);
            return Dispatch::All(self.dice.below(self.ports + 1) as usize);
        }
        let n = burst.len();
        for frame in burst.drain(..) {
            let port = self.dice.below(self.ports + 1) as usize;
            match self.dice.below(8) {
                0 => out.drops.drop(frame, DropReason::NoRoute),
                1 => out.punt(frame),
                2 => out.answer(port, frame),
                3 if !self.released => self.held.push_back(frame),
                _ => out.push(port, frame),
            }
        }
        if self.dice.below(2) == 0 {
            timer.end_node(&mut self.nodes[1], n);
        }
        Dispatch::Split
    }

    fn poll<C: Clock>(
        &mut self,
        _: &mut Burst<HeapBuf>,
        out: &mut Outputs<HeapBuf>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        if self.released || self.dice.below(4) == 0 {
            if let Some(frame) = self.held.pop_front() {
                out.push(1, frame);
            }
        }
        timer.end_node(&mut self.nodes[1], 0);
        Dispatch::Split
    }

    fn release(&mut self) {
        self.released = true;
    }

    fn held(&self) -> usize {
        self.held.len()
    }

    fn nodes(&self, visit: &mut dyn FnMut(&NodeStats)) {
        self.nodes.iter().for_each(visit);
    }
}

/// Every frame and every tick: where it is, and that it is nowhere else.
fn adds_up(seen: &Snapshot) {
    assert_eq!(seen.balance(), Ok(()));
    let all = seen.busy_clocks + seen.idle_clocks + seen.rested_clocks;
    assert_eq!(all, seen.taken_at - seen.started_at, "the polls are all the time");
    assert_eq!(seen.node_clocks() + seen.loop_clocks, seen.busy_clocks, "the nodes and the loop are all busy time");
    assert_eq!(seen.tx.iter().map(|o| o.frames + o.refused).sum::<u64>(), seen.nodes.last().unwrap().vectors);
    assert!(seen.rx.iter().map(|i| i.polls()).sum::<u64>() == seen.nodes[0].calls);
}

type Rig<F> = Forwarder<F, Source, Sink, Walking>;

fn rig<F: Function<HeapBuf>>(
    function: F,
    pool: &HeapPool,
    plans: [&[usize]; 2],
    refuse: Option<Dice>,
    settings: Settings,
) -> (Rig<F>, [Sink; 2], Walking) {
    let sinks = [(); 2].map(|()| Sink { refuse: refuse.clone(), ..Sink::default() });
    let source =
        |port: usize| Source { pool: pool.clone(), plan: plans[port].iter().copied().collect(), poll: 0, next: 0 };
    let inputs = [0, 1].map(|port| Input { port, queue_id: 3, queue: source(port) });
    let clock = Walking(Rc::default(), Dice::new(7));
    let forwarder = Forwarder::new(function, inputs.into(), sinks.to_vec(), clock.clone(), settings);
    (forwarder, sinks, clock)
}

fn policy() -> impl Strategy<Value = TxPolicy> {
    let sizes = prop_oneof![1..=6usize, 1..=64usize];
    prop_oneof![Just(TxPolicy::NOW), (sizes, 0..6u32).prop_map(|(small, polls)| TxPolicy::new(small, polls).unwrap())]
}

fn plan() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![3 => Just(0), 3 => 1..5usize, 1 => 0..=64usize], 0..40)
}

proptest! {
    #[test]
    fn every_frame_and_every_tick_is_somewhere(
        plans in [plan(), plan()], policy in policy(), seed: u64, refuses: bool, tx_retries in 0..3u32, node_clocks: bool, node_sample in 1..5u32,
    ) {
        let (pool, dice) = (HeapPool::new(100_000, 64), Dice::new(seed));
        let settings = Settings { tx_retries, tx_policy: policy, node_clocks, node_sample, ..Settings::default() };
        let refuse = refuses.then(|| dice.clone());
        let chaos = Chaos::new(dice.clone(), &pool);
        let (mut forwarder, sinks, clock) = rig(chaos, &pool, [&plans[0], &plans[1]], refuse, settings);
        let mut rests = 0;
        for _ in 0..45 {
            forwarder.poll_once();
            let seen = forwarder.snapshot();
            adds_up(&seen);
            prop_assert_eq!(seen.held as usize, pool.in_use(), "what is held is all that is out of the pool");
            if dice.below(5) == 0 {
                let _ = forwarder.control().snapshot(Duration::ZERO);
            }
            if dice.below(10) == 0 {
                adds_up(&forwarder.run_and_rest(&AtomicBool::new(true)));
                clock.now();
                rests += 1;
            }
        }
        let last = forwarder.finish();
        adds_up(&last);
        prop_assert_eq!((last.held, pool.in_use()), (0, 0));
        prop_assert!(last.suspends == rests || last.suspends + 1 == rests);
        prop_assert_eq!(last.received() as usize, plans.iter().flatten().sum::<usize>());
        for (sink, output) in sinks.iter().zip(&last.tx) {
            prop_assert_eq!(sink.got.borrow().len() as u64, output.frames);
        }
        let runtime = Runtime::between(&[], &[last], clock.hz());
        prop_assert!((runtime.total.accounted_share - 1.0).abs() < 1e-9);
        prop_assert!(node_clocks || runtime.total.nodes[0].clocks == 0);
    }

    #[test]
    fn frames_wait_no_longer_than_allowed_and_keep_their_order(
        plan in plan(), small in 2..=64usize, polls in 1..6u32, refuses: bool, seed: u64,
    ) {
        let pool = HeapPool::new(10_000, 64);
        let settings = Settings { tx_policy: TxPolicy::new(small, polls).unwrap(), ..Settings::default() };
        let null = Null::new(PortMap::pairs(2));
        let refuse = refuses.then(|| Dice::new(seed));
        let (mut forwarder, [_, sink], _) = rig(null, &pool, [&plan, &[]], refuse, settings);
        for poll in 0..60u64 {
            let before = sink.got.borrow().len();
            forwarder.poll_once();
            let got = sink.got.borrow();
            let seen = forwarder.snapshot();
            for &(since, _) in &got[before..] {
                prop_assert!(poll - since <= u64::from(polls), "waited for {} polls", poll - since);
            }
            prop_assert!(got.windows(2).all(|two| two[0].1 < two[1].1), "out of order");
            prop_assert!(seen.held < small as u64);
            // What has come and neither left nor was refused came in the last polls.
            let overdue = plan.iter().take((poll + 1).saturating_sub(u64::from(polls)) as usize).sum::<usize>();
            prop_assert!(seen.sent() + seen.drops.total() >= overdue as u64);
        }
    }
}

/// What a policy sends, as `(poll it left in, frames)` for each call of the queue.
fn bursts(policy: &str, plan: &[usize]) -> Vec<(usize, u64)> {
    let pool = HeapPool::new(1_000, 64);
    let settings = Settings { tx_policy: policy.parse().unwrap(), ..Settings::default() };
    let (mut forwarder, _, _) = rig(Null::new(PortMap::pairs(2)), &pool, [plan, &[]], None, settings);
    let mut before = forwarder.snapshot();
    let mut left = Vec::new();
    for poll in 0..plan.len() {
        forwarder.poll_once();
        let now = forwarder.snapshot();
        let moved = now.since(&before);
        left.extend((moved.tx[1].calls > 0).then_some((poll, moved.sent())));
        assert_eq!(moved.tx[1].calls <= 1, moved.sent() <= 64);
        before = now;
    }
    left
}

#[test]
fn a_handful_waits_for_company_and_no_longer() {
    let plan = [1, 0, 0, 0, 3, 1, 9, 2, 64, 0, 3, 0, 64, 0];
    assert_eq!(bursts("now", &plan), [(0, 1), (4, 3), (5, 1), (6, 9), (7, 2), (8, 64), (10, 3), (12, 64)]);
    // Alone: two polls later. With company that makes four: at once. Enough by themselves: at once.
    assert_eq!(bursts("small=4,polls=2", &plan), [(2, 1), (5, 4), (6, 9), (8, 66), (12, 67)]);
    assert_eq!(bursts("small=64,polls=1", &[40, 40, 0, 63, 0, 0]), [(1, 80), (4, 63)]);
}

#[test]
fn where_the_time_goes() {
    let pool = HeapPool::new(1_000, 64);
    let (mut forwarder, _, clock) =
        rig(Null::new(PortMap::pairs(2)), &pool, [&[5, 0, 64, 0], &[0, 0, 3, 0]], None, Settings::default());
    for _ in 0..4 {
        forwarder.poll_once();
    }
    let seen = forwarder.snapshot();
    adds_up(&seen);
    assert_eq!((seen.busy_polls, seen.idle_polls), (2, 1), "the last poll is not over");
    assert!(seen.idle_clocks > 0 && seen.loop_clocks > 0 && seen.nodes.iter().all(|node| node.clocks > 0));
    assert_eq!((seen.rx[0].queue, seen.rx[0].frames, seen.rx[0].bursts), (3, 69, [0, 0, 1, 0, 0, 0, 1]));
    let rested = forwarder.run_and_rest(&AtomicBool::new(true));
    adds_up(&rested);
    clock.0.set(clock.0.get() + 1_000_000);
    forwarder.poll_once();
    let seen = forwarder.snapshot();
    adds_up(&seen);
    assert_eq!((rested.suspends, seen.suspends), (0, 1));
    assert!(seen.rested_clocks >= 1_000_000 && seen.gaps.largest < 1_000, "a rest does not count as a polling gap");
    let moved = Runtime::between(&[rested], &[seen], 1_000_000);
    assert!(moved.lcores[0].nodes.iter().any(|row| row.name == "rest" && row.share > 0.9));
}

/// A queue whose every call takes so many ticks.
struct Costly<Q>(Q, FakeClock, u64);

impl<Q: Rx> Rx for Costly<Q> {
    type Buf = Q::Buf;
    fn rx(&mut self, burst: &mut Burst<Q::Buf>) -> usize {
        self.1.advance(self.2);
        self.0.rx(burst)
    }
}

impl<Q: Tx> Tx for Costly<Q> {
    type Buf = Q::Buf;
    fn tx(&mut self, burst: &mut Burst<Q::Buf>) -> usize {
        self.1.advance(self.2);
        self.0.tx(burst)
    }
}

#[test]
fn looking_in_vain_is_rx_while_busy_and_idle_otherwise() {
    for (policy, idle, tx) in [("now", 2, 3), ("small=4,polls=1", 1, 2)] {
        let (pool, clock) = (HeapPool::new(1_000, 64), FakeClock::new(1_000_000));
        let source = |port, plan: &[usize]| {
            let queue = Source { pool: pool.clone(), plan: plan.iter().copied().collect(), poll: 0, next: 0 };
            Input { port, queue_id: 0, queue: Costly(queue, clock.clone(), 1000) }
        };
        let inputs = vec![source(0, &[5, 0, 2, 0]), source(1, &[64, 0, 0, 0])];
        let sinks = [(); 2].map(|()| Costly(Sink::default(), clock.clone(), 1));
        let settings = Settings { tx_policy: policy.parse().unwrap(), ..Settings::default() };
        let mut forwarder = Forwarder::new(Null::new(PortMap::pairs(2)), inputs, sinks.into(), clock.clone(), settings);
        for _ in 0..4 {
            forwarder.poll_once();
        }
        let seen = forwarder.finish();
        adds_up(&seen);
        // A poll that only sends what waited is busy; the loop itself takes no time here, and the end looks for nothing.
        let clocks: Vec<_> = seen.nodes.iter().map(|node| (node.name, node.clocks)).collect();
        assert_eq!(clocks, [("rx", 8000 - 2000 * idle), ("null", 0), ("tx", 3)], "{policy}");
        assert_eq!((seen.idle_clocks, seen.loop_clocks, seen.idle_polls), (2000 * idle, 0, idle + 1));
        assert_eq!(seen.nodes[2].calls, tx + u64::from(policy != "now"));
    }
}

#[test]
fn a_resting_loop_is_read_at_once() {
    let pool = HeapPool::new(1_000, 64);
    let settings = Settings { gap_threshold: 10, ..Settings::default() };
    let (mut forwarder, _, clock) = rig(Null::new(PortMap::pairs(2)), &pool, [&[5, 0, 7], &[]], None, settings);
    let control = forwarder.control();
    forwarder.poll_once();
    let rested = forwarder.run_and_rest(&AtomicBool::new(true));
    assert_eq!(control.snapshot(Duration::ZERO), Ok(rested.clone()));
    // Asked at rest, done as the loop goes on, and not forgotten over the next question.
    assert_eq!(control.snapshot_and_reset_gaps(77, Duration::ZERO), Ok(rested.clone()));
    assert_eq!(control.snapshot(Duration::ZERO), Ok(rested));
    forwarder.poll_once();
    assert_eq!(forwarder.snapshot().gaps.threshold, 77);
    let last = forwarder.run(&AtomicBool::new(true));
    assert_eq!((control.snapshot(Duration::ZERO), last.suspends), (Ok(last.clone()), 1));
    let at = clock.0.get();
    assert_eq!((forwarder.finish(), clock.0.get()), (last, at), "nothing is left to do");
}
