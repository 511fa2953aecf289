//! Clocks a packet in the flow table, by itself: `cargo bench -p flow --bench table -- [FLOWS...]`; with `ageing`,
//! only how long a million flows that end at once hold up the packet path.
//!
//! Known flows drawn uniformly at random, new flows, ageing, and known flows while another thread reads the table without
//! a pause (give it a processor of its own: it inherits the affinity). Keys are made before each short timed run, so what
//! is timed finds them in the L1 cache, as behind a decoder. Clocks are those of the TSC, at the frequency the kernel
//! states. Pages: `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` asks for huge ones.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "table/ageing.rs"]
mod ageing_out;

use std::{
    hint::black_box,
    sync::{
        atomic::{AtomicBool, Ordering},
        Arc,
    },
    thread,
    time::{Duration, Instant},
};

use flow::{
    decode::{Packet4, Packet6},
    table::{table, EndedReader, Heap, NoPrefetch, Reader, TableSpec, Timebase, Worker},
    Facts, Key4, Key6,
};

const BURST: usize = 64;
/// Bursts in one timed run.
const RUN: usize = 4;
const HZ: u64 = 1_000_000_000;

fn mhz() -> f64 {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|l| l.starts_with("cpu MHz"));
    line.and_then(|l| l.split(':').nth(1)).and_then(|v| v.trim().parse().ok()).unwrap_or(1000.0)
}

fn four(i: u64) -> Packet4 {
    let key = Key4([(0x0a00_0000 + i) << 32 | 0xc633_6401, 0x1234_0035_1100_0000 ^ i << 32 & 0xffff_0000_0000, 0]);
    Packet4 { key, facts: Facts { frame_bytes: 60, ip_bytes: 46, ..Facts::default() }.into() }
}

fn six(i: u64) -> Packet6 {
    let key = Key6([0x2001_0db8_0000_0000, i, 0x2001_0db8_0001_0000, 7, 0x1234_0035_1100_0000, 0]);
    Packet6 { key, facts: Facts { frame_bytes: 60, ip_bytes: 46, ..Facts::default() }.into() }
}

fn new(flows: usize) -> (Worker<Heap>, Reader<Heap>, EndedReader) {
    let spec = TableSpec { flows6: flows, idle: Duration::from_secs(4), ..TableSpec::new(flows) };
    table(&spec, Heap::new(spec.words()), Timebase::now(0, HZ), 1 << 16).unwrap()
}

fn row(name: &str, flows: usize, ns: &mut [f64], packets: usize) {
    ns.sort_by(f64::total_cmp);
    let at = |q: f64| ns[(q * (ns.len() - 1) as f64) as usize] / packets as f64;
    let (best, median, clocks) = (at(0.0), at(0.5), mhz() / 1e3);
    println!(
        "{name:<28} {flows:>9}   best {best:6.1} ns {:6.1} clocks   median {median:6.1} ns {:6.1} clocks",
        best * clocks,
        median * clocks
    );
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 32) * n as u64) >> 32
    }
}

/// Times runs of bursts of known flows.
fn hits<P>(name: &str, flows: usize, runs: usize, make: impl Fn(u64) -> P, mut count: impl FnMut(&[P])) {
    let mut random = Random(flows as u64);
    let mut ns = Vec::with_capacity(runs);
    for _ in 0..runs {
        let packets: Vec<P> = (0..RUN * BURST).map(|_| make(random.below(flows))).collect();
        let start = Instant::now();
        packets.chunks_exact(BURST).for_each(&mut count);
        ns.push(start.elapsed().as_nanos() as f64);
    }
    row(name, flows, &mut ns, RUN * BURST);
}

fn inserts(worker: &mut Worker<Heap>, flows: usize) {
    let mut ns = Vec::new();
    let packets: Vec<Packet4> = (0..flows as u64).map(four).collect();
    let packets6: Vec<Packet6> = (0..flows as u64).map(six).collect();
    for packets in packets.chunks(BURST) {
        let start = Instant::now();
        worker.count4(packets, 0, 1, &NoPrefetch);
        ns.push(start.elapsed().as_nanos() as f64);
    }
    packets6.chunks(BURST).for_each(|packets| worker.count6(packets, 0, 1, &NoPrefetch));
    assert_eq!((worker.counts().flows, worker.counts().evicted), (2 * flows as u64, 0));
    row("new flows", flows, &mut ns, BURST);
}

fn ageing(mut worker: Worker<Heap>, mut ended: EndedReader, flows: usize, places: usize) {
    for (name, from) in [("age, nothing due, a place", 0u64), ("age, all due, a place", 10 * HZ)] {
        worker.age(from, 0);
        let mut ns = Vec::new();
        let mut now = from;
        let mut looked = 0;
        while looked < places {
            now += 3000;
            let start = Instant::now();
            let places = black_box(worker.age(now, 256));
            let took = start.elapsed().as_nanos() as f64;
            if places > 0 {
                ns.push(took / places as f64);
                looked += places;
            }
            while ended.pop().is_some() {}
        }
        row(name, flows, &mut ns, 1);
    }
}

fn run(flows: usize, runs: usize) {
    let (mut worker, reader, ended) = new(flows);
    inserts(&mut worker, flows);
    hits("known", flows, runs, four, |packets| worker.count4(packets, 0, 2, &NoPrefetch));
    hits("known, IPv6", flows, runs, six, |packets| worker.count6(packets, 0, 2, &NoPrefetch));
    let stop = Arc::new(AtomicBool::new(false));
    let scans = thread::spawn({
        let (reader, stop) = (reader.clone(), stop.clone());
        move || {
            let mut packets = 0;
            while !stop.load(Ordering::Relaxed) {
                reader.scan(0, reader.places(), &mut |_, flow| packets += flow.forward.packets);
            }
            packets
        }
    });
    hits("known, beside a reader", flows, runs, four, |packets| worker.count4(packets, 0, 2, &NoPrefetch));
    stop.store(true, Ordering::Relaxed);
    black_box(scans.join().unwrap());
    ageing(worker, ended, flows, reader.places() as usize);
}

fn main() {
    println!("{BURST}-packet bursts, {:.0} MHz", mhz());
    if std::env::args().any(|a| a == "ageing") {
        ageing_out::run();
        return;
    }
    let asked: Vec<usize> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let flows = if asked.is_empty() { vec![1 << 10, 64_000, 1_000_000, 4_000_000] } else { asked };
    for flows in flows {
        run(flows, 4_000);
    }
}
