//! Cycles a frame of the learning bridge on heap buffers in cache: `cargo bench -p dataplane --bench bridge`.
//!
//! Best of many short runs, by `Instant` and the frequency the kernel states; all frames go from port 0 to port 1
//! between known stations, as many sources as destinations.
#![allow(missing_docs, clippy::unwrap_used)]

use std::{hint::black_box, sync::Arc, time::Instant};

use dataplane::{bridge::Bridge, fdb::Fdb, node::NodeTimer, Dispatch, Function, Null, Outputs, PortMap};
use packet::{
    heap::{HeapBuf, HeapPool},
    Buffer, Burst, Clock, FakeClock, MacAddr, BURST,
};

const ROUNDS: usize = 60_000;
const BURSTS: usize = 4;

fn mhz() -> f64 {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|l| l.starts_with("cpu MHz"));
    line.and_then(|l| l.split(':').nth(1)).and_then(|v| v.trim().parse().ok()).unwrap_or(1000.0)
}

fn mac(side: u8, i: u32) -> MacAddr {
    let [a, b, c, d] = i.to_be_bytes();
    MacAddr([2, side, a, b, c, d])
}

/// `flows` pairs of stations; the frames in cache are given other addresses before each round, untimed.
fn measure<F: Function<HeapBuf>>(name: &str, mut function: F, flows: u32, tag: bool) {
    let pool = HeapPool::new(BURSTS * BURST, 128);
    let clock = FakeClock::new(1_000_000_000);
    let mut bytes = vec![0; 60];
    bytes[12..16].copy_from_slice(if tag { &[0x81, 0, 0, 7] } else { &[8, 0, 0x45, 0] });
    let burst = |_| (0..BURST).map(|_| pool.frame(&bytes).unwrap()).collect();
    let mut bursts: Vec<Burst<HeapBuf>> = (0..BURSTS).map(burst).collect();
    let mut out = Outputs::new(2);
    let mut best = f64::INFINITY;
    let mut random = 1u32;
    for _ in 0..ROUNDS / BURSTS {
        for frame in bursts.iter_mut().flatten() {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let flow = (random >> 8) % flows;
            frame.data_mut()[..6].copy_from_slice(&mac(1, flow).0);
            frame.data_mut()[6..12].copy_from_slice(&mac(0, flow).0);
        }
        let start = Instant::now();
        for burst in &mut bursts {
            let mut timer = NodeTimer::start(&clock, clock.now(), true);
            let dispatch = black_box(function.process(0, burst, &mut out, &mut timer));
            assert_eq!(dispatch, Dispatch::All(1), "{name}: not a known station");
        }
        let ns = start.elapsed().as_nanos() as f64;
        best = best.min(ns / (BURSTS * BURST) as f64);
    }
    println!("{name:<34} {best:7.2} ns {:7.1} cycles a frame", best * mhz() / 1e3);
}

fn bridge(flows: u32, domain: u16) -> Bridge<HeapPool> {
    let fdb = Arc::new(Fdb::new(4 * flows as usize));
    for i in 0..flows {
        fdb.learn(domain, mac(0, i), 0, 0);
        fdb.learn(domain, mac(1, i), 1, 0);
    }
    assert_eq!(fdb.len(0), 2 * flows as usize);
    Bridge::new(fdb, 2, HeapPool::new(64, 128), 1_000_000_000)
}

fn main() {
    println!("{BURST}-frame bursts of 64-byte frames in cache, {:.0} MHz", mhz());
    measure("null", Null::new(PortMap::pairs(2)), 1, false);
    measure("bridge, 1 flow", bridge(1, 0), 1, false);
    measure("bridge, 1 flow, VLAN", bridge(1, 7), 1, true);
    for flows in [1_000, 64_000, 1_000_000] {
        measure(&format!("bridge, {flows} flows"), bridge(flows, 0), flows, false);
    }
}
