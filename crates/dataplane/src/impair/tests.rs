//! Impairments: each does what its spec says, exactly counted.

use packet::{
    heap::{HeapBuf, HeapPool},
    Buffer, FakeClock,
};

use super::*;
use crate::{DropCounters, Null, PortMap};

const HZ: u64 = 1_000_000_000;

/// Frames numbered as they go in, read as they come out of port 1.
struct Rig {
    function: Impair<Null, HeapPool>,
    pool: HeapPool,
    clock: FakeClock,
    out: Outputs<HeapBuf>,
    sent: u64,
    /// The number of each frame out, and when it left.
    got: Vec<(u64, u64)>,
}

impl Rig {
    fn new(text: &str) -> Self {
        let pool = HeapPool::new(100_000, 64);
        let spec = text.parse().unwrap();
        let function = Impair::new(Null::new(PortMap::pairs(2)), &spec, 2, pool.clone(), HZ);
        Self { function, pool, clock: FakeClock::new(HZ), out: Outputs::new(2), sent: 0, got: Vec::new() }
    }

    fn take(&mut self, dispatch: Dispatch, mut burst: Burst<HeapBuf>) {
        let now = self.clock.now();
        match dispatch {
            Dispatch::All(port) => assert_eq!(port, 1),
            Dispatch::Split => assert!(burst.is_empty()),
        }
        let split = self.out.port(1).unwrap();
        for frame in burst.drain(..).chain(split.drain(..)) {
            self.got.push((u64::from_be_bytes(*frame.data().first_chunk().unwrap()), now));
        }
        self.out.drops.empty();
    }

    fn poll(&mut self) {
        let mut burst = Burst::new();
        let mut timer = NodeTimer::start(&self.clock, self.clock.now(), true);
        let dispatch = self.function.poll(&mut burst, &mut self.out, &mut timer);
        self.take(dispatch, burst);
    }

    /// `n` frames in bursts of 32, `gap` nanoseconds apart.
    fn send(&mut self, n: u64, gap: u64) {
        let end = self.sent + n;
        while self.sent < end {
            if self.function.held() > 0 {
                self.poll();
            }
            let numbers = self.sent..end.min(self.sent + 32);
            self.sent = numbers.end;
            let mut burst: Burst<_> =
                numbers.map(|i| self.pool.frame(&[&i.to_be_bytes()[..], &[0; 52]].concat()).unwrap()).collect();
            let mut timer = NodeTimer::start(&self.clock, self.clock.now(), true);
            let dispatch = self.function.process(0, &mut burst, &mut self.out, &mut timer);
            self.take(dispatch, burst);
            self.balance();
            self.clock.advance(gap * 32);
        }
    }

    /// Lets everything out that is still inside.
    fn finish(&mut self) {
        self.function.release();
        while self.function.held() > 0 {
            self.poll();
        }
        self.balance();
        assert_eq!(self.pool.in_use(), 0);
    }

    fn balance(&self) {
        let (in_, out) = (self.sent + self.function.impaired().duplicated, self.got.len() as u64);
        assert_eq!(in_, out + self.drops().total() + self.function.held() as u64, "rx + copies = tx + drops + held");
        assert_eq!(self.pool.in_use(), self.function.held());
    }

    fn drops(&self) -> &DropCounters {
        self.out.drops.counters()
    }

    /// Frames out behind a later one, first copies only, and second copies: what a checker sees.
    fn seen(&self) -> (u64, u64) {
        let (mut highest, mut reordered, mut copies) = (None, 0, 0);
        let mut known = std::collections::HashSet::new();
        for &(number, _) in &self.got {
            if !known.insert(number) {
                copies += 1;
            } else if highest > Some(number) {
                reordered += 1;
            } else {
                highest = Some(number);
            }
        }
        (reordered, copies)
    }
}

#[test]
fn nothing_asked_nothing_done() {
    let mut rig = Rig::new("");
    rig.send(1_000, 100);
    assert!(rig.got.iter().map(|g| g.0).eq(0..1_000));
    let mut nodes = Vec::new();
    Function::<HeapBuf>::nodes(&rig.function, &mut |node| nodes.push(node.name));
    assert_eq!(nodes, ["null"]);
}

#[test]
fn the_policer_passes_its_rate_and_counts_the_rest() {
    // Frames every 500 ns for 0.1 s against 1 Mpps: half of them, and the 500 us of rate saved up at the start.
    for place in ["before", "after"] {
        let mut rig = Rig::new(&format!("rate=1Mpps,place={place}"));
        rig.send(200_000, 500);
        let passed = rig.got.len() as u64;
        assert!(passed.abs_diff(100_500) <= 32, "{passed}");
        assert_eq!(rig.drops()[DropReason::Policed], 200_000 - passed);
        assert_eq!(rig.function.impaired(), ImpairCounters { policed: 200_000 - passed, ..Default::default() });
        rig.finish();
    }
}

#[test]
fn losses_are_exactly_the_counted_ones_and_repeat_with_the_seed() {
    let run = |text| {
        let mut rig = Rig::new(text);
        rig.send(50_000, 100);
        rig.finish();
        let lost = rig.function.impaired().lost;
        assert_eq!((lost, rig.got.len() as u64), (rig.drops()[DropReason::Lost], 50_000 - lost));
        rig.got.iter().map(|g| g.0).collect::<Vec<_>>()
    };
    let first = run("loss=1%,seed=7");
    assert!(first.len().abs_diff(49_500) < 140);
    assert!(first == run("loss=1%,seed=7") && first != run("loss=1%,seed=8"));
    // What is lost does not depend on what else is done.
    assert_eq!(first, run("loss=1%,seed=7,delay=5us"));
}

#[test]
fn duplicates_and_reordering_are_seen_as_counted() {
    for text in
        ["dup=1%", "reorder=1%", "reorder=1%,distance=1", "dup=5%,reorder=5%,distance=40", "dup=100%,reorder=50%"]
    {
        let mut rig = Rig::new(text);
        rig.send(20_000, 200);
        rig.finish();
        let counters = rig.function.impaired();
        assert_eq!(rig.seen(), (counters.reordered, counters.duplicated), "{text}");
        assert_eq!((counters.not_duplicated, rig.drops().total()), (0, 0), "{text}");
        assert!(counters.reordered + counters.duplicated > 100, "{text}");
    }
}

#[test]
fn a_reordered_frame_lets_exactly_the_distance_pass() {
    let mut rig = Rig::new("reorder=2%,distance=3");
    rig.send(10_000, 100);
    rig.finish();
    let order: Vec<_> = rig.got.iter().map(|g| g.0).collect();
    let mut late = 0;
    for (at, &number) in order.iter().enumerate() {
        let passed: Vec<_> = order[..at].iter().filter(|&&earlier| earlier > number).collect();
        if !passed.is_empty() && at + 3 < order.len() {
            late += 1;
            assert_eq!(passed.len(), 3, "frame {number}");
        }
    }
    assert!(late > 100);
}

#[test]
fn a_held_back_frame_without_followers_goes_in_the_end() {
    let mut rig = Rig::new("reorder=100%");
    rig.send(10, 0);
    assert_eq!((rig.function.held(), rig.got.len()), (10, 0));
    rig.clock.advance(HZ / 10 - 1);
    rig.poll();
    assert_eq!(rig.function.held(), 10);
    rig.clock.advance(1);
    rig.poll();
    assert_eq!((rig.function.held(), rig.got.len()), (0, 10));
    assert_eq!(rig.function.impaired().reordered, 0);
}

#[test]
fn delay_holds_each_frame_for_its_time() {
    let mut rig = Rig::new("delay=10us");
    rig.send(32, 0);
    rig.clock.advance(9_999);
    rig.poll();
    assert!(rig.got.is_empty());
    rig.clock.advance(1);
    rig.poll();
    assert!(rig.got.iter().copied().eq((0..32).map(|i| (i, 10_000))));
    assert_eq!(rig.function.impaired(), ImpairCounters { delayed: 32, ..Default::default() });
    rig.finish();
}

#[test]
fn jitter_spreads_frames_up_to_its_bound_and_counts_crossings() {
    let mut rig = Rig::new("delay=10us,jitter=5us,dup=10%");
    rig.send(1_024, 10);
    let last_in = rig.clock.now();
    while rig.function.held() > 0 {
        rig.poll();
        rig.clock.advance(100);
    }
    assert!(rig.clock.now() - last_in <= 15_000 + 200);
    assert!(rig.got.iter().all(|&(number, at)| at >= number / 32 * 320 + 10_000));
    let counters = rig.function.impaired();
    assert_eq!(rig.seen(), (counters.reordered, counters.duplicated));
    assert!(counters.reordered > 100);
    rig.finish();
}

#[test]
fn a_full_queue_drops_and_counts() {
    let mut rig = Rig::new("delay=1s,hold=100");
    rig.send(320, 10);
    assert_eq!((rig.function.held(), rig.drops()[DropReason::HoldFull]), (100, 220));
    rig.finish();
    assert!(rig.got.iter().map(|g| g.0).eq(0..100));
}

#[test]
fn a_copy_that_cannot_be_made_is_told() {
    let mut rig = Rig::new("dup=100%,delay=1s,hold=101");
    rig.send(64, 10);
    let counters = rig.function.impaired();
    // 50 pairs, then a single one.
    assert_eq!((counters.duplicated, counters.not_duplicated), (50, 1));
    assert_eq!((rig.function.held(), rig.drops()[DropReason::HoldFull]), (101, 13));
    rig.finish();
}

#[test]
fn held_frames_go_back_to_the_pool_when_the_function_goes() {
    let mut rig = Rig::new("delay=1s,jitter=1ms");
    rig.send(320, 10);
    let pool = rig.pool.clone();
    assert_eq!(pool.in_use(), 320);
    drop(rig);
    assert_eq!(pool.in_use(), 0);
}

/// Something to do in every fourth poll, like ageing in the flow logger.
#[derive(Default)]
struct Fourth {
    asked: u32,
    done: u32,
}

impl Function<HeapBuf> for Fourth {
    fn process<C: Clock>(
        &mut self,
        _: usize,
        _: &mut Burst<HeapBuf>,
        _: &mut Outputs<HeapBuf>,
        _: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        Dispatch::All(1)
    }

    fn due(&mut self) -> bool {
        self.asked += 1;
        self.asked.is_multiple_of(4)
    }

    fn poll<C: Clock>(
        &mut self,
        _: &mut Burst<HeapBuf>,
        _: &mut Outputs<HeapBuf>,
        _: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        self.done += 1;
        Dispatch::Split
    }

    fn nodes(&self, _: &mut dyn FnMut(&NodeStats)) {}
}

#[test]
fn the_function_inside_is_asked_once_a_poll_and_let_do_what_it_has_to() {
    for (text, frames) in [("", 0), ("delay=1ms", 0), ("delay=1ms", 3)] {
        let pool = HeapPool::new(100, 64);
        let mut function = Impair::new(Fourth::default(), &text.parse().unwrap(), 2, pool.clone(), HZ);
        let (clock, mut out) = (FakeClock::new(HZ), Outputs::new(2));
        let mut burst: Burst<_> = (0..frames).map(|_| pool.frame(&[0; 60]).unwrap()).collect();
        let mut timer = NodeTimer::start(&clock, clock.now(), true);
        function.process(0, &mut burst, &mut out, &mut timer);
        for _ in 0..40 {
            if function.due() {
                function.poll(&mut burst, &mut out, &mut timer);
                burst.clear();
            }
        }
        assert_eq!((function.inner().asked, function.inner().done), (40, 10), "{text:?} {frames}");
    }
}

#[test]
fn what_is_over_the_rate_waits_in_the_queue_and_the_rest_is_dropped() {
    // Frames every 500 ns for 20 ms against 1 Mpps: the queue of 2 ms is full after 4 ms.
    for place in ["before", "after"] {
        let mut rig = Rig::new(&format!("rate=1Mpps,burst=32,queue=2ms,place={place}"));
        rig.send(40_000, 500);
        let (policed, held) = (rig.drops()[DropReason::Policed], rig.function.held() as u64);
        assert!(held.abs_diff(2_000) <= 64, "{held}");
        assert!(policed.abs_diff(18_000) <= 64, "{policed}");
        assert_eq!(rig.got.len() as u64 + policed + held, 40_000);
        assert!(rig.got.is_sorted_by_key(|g| g.0), "in order");
        // A frame goes a microsecond after the one before.
        let ms = |at: u64| rig.got.iter().filter(|g| (at..at + 1_000_000).contains(&g.1)).count();
        assert!(ms(10_000_000).abs_diff(1_000) <= 64, "{}", ms(10_000_000));
        rig.finish();
        assert_eq!(rig.got.len() as u64 + policed, 40_000);
    }
    // Losses are of what the policer passes, and take their tokens.
    let mut rig = Rig::new("rate=1Mpps,burst=32,queue=2ms,loss=10%");
    rig.send(40_000, 500);
    rig.finish();
    let ImpairCounters { policed, lost, .. } = rig.function.impaired();
    assert!(policed.abs_diff(18_000) <= 64 && lost.abs_diff(2_200) <= 150, "{policed} {lost}");
    assert_eq!((policed, lost), (rig.drops()[DropReason::Policed], rig.drops()[DropReason::Lost]));
}

/// A clock that moves on by so many ticks at each reading.
struct Ticking(std::cell::Cell<u64>, u64);

impl Clock for Ticking {
    fn now(&self) -> u64 {
        self.0.set(self.0.get() + self.1);
        self.0.get()
    }
    fn hz(&self) -> u64 {
        HZ
    }
}

#[test]
fn work_takes_its_clocks_for_each_frame() {
    for (text, least) in [("work=1000,place=before", 32_000), ("work=1000", 32_000), ("", 0)] {
        let mut rig = Rig::new(text);
        let clock = Ticking(std::cell::Cell::new(0), 10);
        let mut burst: Burst<_> = (0..32).map(|_| rig.pool.frame(&[0; 60]).unwrap()).collect();
        let mut timer = NodeTimer::start(&clock, 0, true);
        rig.function.process(0, &mut burst, &mut rig.out, &mut timer);
        let spent = clock.0.get();
        assert!((least..least + 200).contains(&spent), "{text}: {spent}");
    }
}
