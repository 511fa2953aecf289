//! How long ageing holds up the packet path while a million flows end at once and frames of others go on.

use std::{
    thread,
    time::{Duration, Instant},
};

use flow::{
    decode::Packet4,
    table::{table, EndedReader, Heap, NoPrefetch, TableSpec, Timebase, Worker},
};

use super::{four, Random, BURST, HZ};

const FLOWS: usize = 1_000_000;
/// Flows that go on.
const OTHERS: usize = 4096;
const RUNS: usize = 5;
const IDLE: Duration = Duration::from_secs(1);
/// As `dataplane::flowlog` does: `BUDGET` places once every `EVERY` polls.
const BUDGET: usize = 256;
const EVERY: u32 = 4;

/// The most of one run.
#[derive(Default, Clone, Copy)]
struct Most {
    /// Places looked at in one call, and flows ended.
    places: usize,
    ended: u64,
    /// ns of one call: most, median, 99.9th percentile; of one poll with a call in it, and of one without, which shows the
    /// machine's own stalls.
    call: u64,
    usual: u64,
    rare: u64,
    with: u64,
    without: u64,
    /// From the first flow's end to the last.
    took: Duration,
    dropped: u64,
}

/// Runs it with a loop that never rests, and with one that was stopped until all flows were due.
pub fn run() {
    println!(
        "\n{FLOWS} flows idle out at once, {OTHERS} others go on in bursts of {BURST}; {RUNS} runs, the least of their \
         maxima\n(the machine's own stalls are in each run's)"
    );
    println!("{:<29} {:>22} {:>33}", "", "most in one call", "us");
    println!(
        "{:<29} {:>6} {:>6} {:>8} {:>8} {:>9} {:>8} {:>12} {:>6}",
        "", "places", "flows", "dropped", "call p50", "p99.9", "most", "most, a poll", "s"
    );
    println!("{:<29} {:>50} {:>6} {:>5} {:>6}", "", "", "with", "none", "in all");
    for (name, rest) in [("as they become due", Duration::ZERO), ("after the loop stood for 3 s", 3 * IDLE)] {
        let all: Vec<Most> = (0..RUNS).map(|_| once(rest)).collect();
        for most in &all {
            row("  a run", most);
        }
        let least = |of: fn(&Most) -> u64| all.iter().map(of).min().unwrap_or_default();
        let most = Most {
            places: all.iter().map(|m| m.places).max().unwrap_or_default(),
            ended: all.iter().map(|m| m.ended).max().unwrap_or_default(),
            call: least(|m| m.call),
            usual: least(|m| m.usual),
            rare: least(|m| m.rare),
            with: least(|m| m.with),
            without: least(|m| m.without),
            took: all.iter().map(|m| m.took).min().unwrap_or_default(),
            dropped: all.iter().map(|m| m.dropped).max().unwrap_or_default(),
        };
        row(name, &most);
    }
}

fn row(name: &str, most: &Most) {
    let us = |ns: u64| ns as f64 / 1e3;
    println!(
        "{name:<29} {:>6} {:>6} {:>8} {:>8.1} {:>9.1} {:>8.1} {:>6.0} {:>5.0} {:>6.2}",
        most.places,
        most.ended,
        most.dropped,
        us(most.usual),
        us(most.rare),
        us(most.call),
        us(most.with),
        us(most.without),
        most.took.as_secs_f64(),
    );
}

fn once(rest: Duration) -> Most {
    let spec = TableSpec { idle: IDLE, ..TableSpec::new(1 << 20) };
    let (mut worker, _reader, mut ended) =
        table(&spec, Heap::new(spec.words()), Timebase::now(0, HZ), 1 << 17).unwrap();
    let begun = Instant::now();
    let now = || begun.elapsed().as_nanos() as u64;
    let packets: Vec<Packet4> = (0..(FLOWS + OTHERS) as u64).map(four).collect();
    packets.chunks(BURST).for_each(|packets| worker.count4(packets, 0, now(), &NoPrefetch));
    assert_eq!((worker.counts().flows, worker.counts().evicted), ((FLOWS + OTHERS) as u64, 0));
    worker.age(now(), BUDGET);
    thread::sleep(rest);
    polls(&mut worker, &mut ended, &packets[FLOWS..], rest.is_zero(), now)
}

/// Polls until only the other flows are left.
fn polls(
    worker: &mut Worker<Heap>,
    records: &mut EndedReader,
    others: &[Packet4],
    alive: bool,
    now: impl Fn() -> u64,
) -> Most {
    let (mut random, mut most, mut first) = (Random(1), Most::default(), None);
    let mut poll = 0u32;
    let mut calls = Vec::with_capacity(1 << 20);
    let mut burst = Vec::with_capacity(BURST);
    // Those that stood still with the loop are due as well.
    let left = if alive { others.len() as u64 } else { 0 };
    let before = worker.counts().dropped_records;
    while worker.counts().flows > left.max(1) && worker.counts().ended.iter().sum::<u64>() < FLOWS as u64 {
        burst.clear();
        burst.extend((0..BURST).map(|_| others[random.below(others.len()) as usize]));
        poll = poll.wrapping_add(1);
        let begun = now();
        assert!(begun < 60 * HZ, "the flows do not end: {:?}", worker.counts());
        let mut called = None;
        if poll.is_multiple_of(EVERY) {
            let flows = worker.counts().ended.iter().sum::<u64>();
            let places = worker.age(begun, BUDGET);
            let after = now();
            if places > 0 {
                let ended = worker.counts().ended.iter().sum::<u64>() - flows;
                if ended > 0 {
                    first.get_or_insert(begun);
                }
                most.places = most.places.max(places);
                most.ended = most.ended.max(ended);
                called = Some(after - begun);
                if ended > 0 {
                    calls.push(after - begun);
                }
            }
        }
        worker.count4(&burst, 0, begun, &NoPrefetch);
        let took = now() - begun;
        match called {
            Some(call) => (most.call, most.with) = (most.call.max(call), most.with.max(took)),
            None => most.without = most.without.max(took),
        }
        // Elsewhere in truth; a thread for it might be given this CPU.
        while records.pop().is_some() {}
    }
    calls.sort_unstable();
    let at = |q: f64| calls.get((q * calls.len() as f64) as usize).copied().unwrap_or_default();
    (most.usual, most.rare) = (at(0.5), at(0.999));
    most.took = Duration::from_nanos(now() - first.unwrap_or_default());
    most.dropped = worker.counts().dropped_records - before;
    most
}
