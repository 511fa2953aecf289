//! Cycles a frame of the MPLS function on heap buffers in cache: `cargo bench -p dataplane --bench mpls`.
//!
//! Best of many short runs, as in `hot`. A popped label is put back within the measured time, and what that costs by
//! itself is a line of its own.
#![allow(missing_docs, clippy::unwrap_used)]

use std::{hint::black_box, sync::Arc, time::Instant};

use dataplane::{
    model::{Hop, LabelAction, LabelRoute, Path, MAX_PUSH},
    mpls::Mpls,
    node::NodeTimer,
    tables::{Adjacency, Group, Labels, Stack, Tables, GROUP},
    Dispatch, Function, Null, Outputs, PortMap, Shared,
};
use packet::{
    heap::{HeapBuf, HeapPool},
    Buffer, Burst, Clock, FakeClock, MacAddr, BURST,
};

const BURSTS: usize = 16;
const ROUNDS: usize = 20;
const REPEATS: usize = 400;
/// Labels from 16 on.
const LABELS: u32 = 1024;

/// An Ethernet frame of 60 bytes with these labels on an IPv4 packet.
fn frame(labels: &[u32]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0x47];
    for (i, label) in labels.iter().enumerate() {
        let bottom = u32::from(i + 1 == labels.len());
        bytes.extend((label << 12 | bottom << 8 | 250).to_be_bytes());
    }
    if labels.is_empty() {
        bytes[12..14].copy_from_slice(&[8, 0]);
    }
    bytes.extend([0x45, 0, 0, 42, 0, 0, 0, 0, 250, 17, 0, 0, 198, 18, 1, 2, 198, 19, 1, labels.len() as u8]);
    bytes.resize(60, 0);
    bytes
}

fn mhz() -> f64 {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|l| l.starts_with("cpu MHz"));
    line.and_then(|l| l.split(':').nth(1)).and_then(|v| v.trim().parse().ok()).unwrap_or(1000.0)
}

fn measure<F: Function<HeapBuf>>(name: &str, mut function: F, frames: &dyn Fn(usize) -> Vec<u8>, refill: bool) {
    let pool = HeapPool::new(BURSTS * BURST, 128);
    let clock = FakeClock::new(1_000_000_000);
    let fresh: Vec<Vec<u8>> = (0..BURSTS * BURST).map(frames).collect();
    let mut bursts: Vec<Burst<HeapBuf>> =
        fresh.chunks(BURST).map(|frames| frames.iter().map(|f| pool.frame(f).unwrap()).collect()).collect();
    let mut out = Outputs::new(2);
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        for (buf, bytes) in bursts.iter_mut().flatten().zip(&fresh) {
            buf.data_mut().copy_from_slice(bytes);
        }
        let start = Instant::now();
        for _ in 0..ROUNDS {
            for (burst, fresh) in bursts.iter_mut().zip(fresh.chunks(BURST)) {
                let mut timer = NodeTimer::start(&clock, clock.now(), true);
                if black_box(function.process(0, burst, &mut out, &mut timer)) == Dispatch::Split {
                    for port in 0..2 {
                        burst.extend(out.port(port).unwrap().drain(..));
                    }
                }
                if refill {
                    for (buf, bytes) in burst.iter_mut().zip(fresh) {
                        if buf.len() < bytes.len() {
                            assert!(buf.prepend(bytes.len() - buf.len()));
                        } else {
                            assert!(buf.trim_front(buf.len() - bytes.len()));
                        }
                        buf.data_mut()[..24].copy_from_slice(&bytes[..24]);
                    }
                }
            }
        }
        let ns = start.elapsed().as_nanos() as f64;
        best = best.min(ns / (ROUNDS * BURSTS * BURST) as f64);
    }
    assert!(bursts.iter().all(|burst| burst.len() == BURST), "{name} lost frames");
    println!("{name:<34} {best:7.2} ns {:7.1} cycles a frame", best * mhz() / 1e3);
}

/// Adjacency 3 and 4 lead to port 1 and 0, 5 to port 1 with one more label; group 0 is the first two.
fn mpls(action: &dyn Fn(u32) -> LabelAction) -> Mpls<Null> {
    let macs = [MacAddr([2, 0, 0, 0, 1, 0]), MacAddr([2, 0, 0, 0, 1, 1])];
    let mut tables = Tables::bare(&macs);
    for port in [1, 0, 1] {
        let to = Adjacency::forward(port, port, MacAddr([2, 0, 0, 0, 0, 1 + port as u8]), macs[usize::from(port)]);
        tables.adjacencies.push(to);
    }
    tables.adjacencies[5].push = 1;
    tables.groups.push(Group { paths: Box::new([3, 4]) });
    let stack = Stack { entries: [[0, 1, 0, 0]; MAX_PUSH], len: 1 };
    let routes: Vec<_> = (16..16 + LABELS).map(|label| LabelRoute { label, action: action(label) }).collect();
    let mut resolve = |path: &Path| path.labels.first().copied().unwrap_or(3);
    tables.labels = Arc::new(Labels::new(&routes, vec![stack], &mut resolve));
    Mpls::new(Shared::new(tables).reader(), Null::new(PortMap::pairs(2)))
}

/// A path to this next hop number.
fn to(hop: u32) -> Path {
    Path { hop: Hop::Drop, labels: vec![hop], weight: 1 }
}

fn main() {
    let swap = |hop: u32| move |label| LabelAction::Swap { out: label, path: to(hop) };
    let pop = |_| LabelAction::Pop { path: to(3) };
    let one = |_: usize| frame(&[16]);
    let many = |i: usize| frame(&[16 + i as u32 * 17 % LABELS]);
    println!("{BURST}-frame bursts of 64-byte frames in cache, {:.0} MHz", mhz());
    measure("null", Null::new(PortMap::pairs(2)), &one, false);
    measure("mpls swap, one label", mpls(&swap(3)), &one, false);
    measure("mpls swap, 1k labels", mpls(&swap(3)), &many, false);
    measure("mpls swap, two egresses", mpls(&|label| swap(3 + (label & 1))(label)), &many, false);
    measure("mpls swap, ECMP", mpls(&swap(GROUP)), &many, false);
    measure("mpls swap, two labels deep", mpls(&swap(3)), &|i| frame(&[16 + i as u32 % LABELS, 500]), false);
    measure("IPv4 through mpls to null", mpls(&swap(3)), &|_| frame(&[]), false);
    measure("(a label put back)", Null::new(PortMap::pairs(2)), &one, true);
    measure("mpls pop + put back", mpls(&pop), &one, true);
    measure("mpls swap and push + put back", mpls(&swap(5)), &one, true);
    measure("mpls explicit null + put back", mpls(&pop), &|_| frame(&[0]), true);
    measure("mpls lookup + put back", mpls(&|_| LabelAction::Lookup), &one, true);
}
