//! Cycles a frame of each function on heap buffers in cache: `cargo bench -p linerate-dataplane`.
//!
//! Best of many short runs, in nanoseconds by `Instant` and in cycles by the frequency the kernel states. The
//! clock of the nodes is a free one, so that what is measured is the work; what reading the TSC adds is measured in
//! the binary.
#![allow(missing_docs, clippy::unwrap_used)]

use std::{hint::black_box, time::Instant};

use dataplane::{
    impair::{Impair, ImpairSpec},
    l3::{L3Config, L3},
    node::Laps,
    Function, Null, Outputs, PortMap, Verdict, L2,
};
use packet::{
    heap::{HeapBuf, HeapPool},
    Buffer, Burst, Clock, FakeClock, MacAddr, BURST,
};

/// Bursts in the cache at once, and how often each is sent through before its TTLs are set back.
const BURSTS: usize = 4;
const ROUNDS: usize = 50;
const REPEATS: usize = 400;

fn ip4(dst: [u8; 4], tag: bool) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 46, 0, 0, 0, 0, 250, 17, 0, 0, 198, 18, 1, 2];
    packet.extend(dst);
    let sum: u32 = packet.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    packet.resize(46, 0);
    frame(packet, [8, 0], tag)
}

fn ip6(dst: u16) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 18, 17, 250, 0x20, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2];
    packet.extend([0x20, 1, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0]);
    packet.extend(dst.to_be_bytes());
    packet.resize(58, 0);
    frame(packet, [0x86, 0xdd], false)
}

fn frame(packet: Vec<u8>, ethertype: [u8; 2], tag: bool) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8];
    if tag {
        bytes.extend([0x81, 0, 0, 7]);
    }
    bytes.extend(ethertype);
    bytes.extend(packet);
    bytes
}

fn mhz() -> f64 {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|l| l.starts_with("cpu MHz"));
    line.and_then(|l| l.split(':').nth(1)).and_then(|v| v.trim().parse().ok()).unwrap_or(1000.0)
}

fn measure<F: Function<HeapBuf>>(name: &str, mut function: F, frames: &dyn Fn(usize) -> Vec<u8>, timed: bool) {
    let pool = HeapPool::new(BURSTS * BURST + 4096, 128);
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
            for burst in &mut bursts {
                let mut laps = Laps::start(&clock, clock.now(), timed);
                match black_box(function.process(0, burst, &mut out, &mut laps)) {
                    Verdict::All(_) => {}
                    Verdict::Split => {
                        for port in 0..2 {
                            burst.extend(out.port(port).unwrap().drain(..));
                        }
                    }
                }
            }
        }
        let ns = start.elapsed().as_nanos() as f64;
        best = best.min(ns / (ROUNDS * BURSTS * BURST) as f64);
        clock.advance(1_000_000);
    }
    assert!(bursts.iter().all(|burst| burst.len() == BURST), "{name} lost frames");
    println!("{name:<34} {best:7.2} ns {:7.1} cycles a frame", best * mhz() / 1e3);
}

fn l3() -> L3 {
    let config = L3Config::benchmark([MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])]);
    L3::new(&config, &[MacAddr([2, 0, 0, 0, 1, 0]), MacAddr([2, 0, 0, 0, 1, 1])]).unwrap()
}

fn main() {
    let far = |i: usize| ip4([198, 19, (i >> 8) as u8, i as u8], false);
    let both = |i: usize| ip4([198, 18 + (i & 1) as u8, 0, i as u8], false);
    println!("{BURST}-frame bursts of 64-byte frames in cache, {:.0} MHz", mhz());
    measure("null", Null::new(PortMap::pairs(2)), &far, true);
    measure("l2", L2::new(PortMap::pairs(2), false), &far, true);
    measure("l2:macswap", L2::new(PortMap::pairs(2), true), &far, true);
    measure("l3 IPv4, one egress", l3(), &far, true);
    measure("l3 IPv4, one egress, no clocks", l3(), &far, false);
    measure("l3 IPv4, two egresses", l3(), &both, true);
    measure("l3 IPv4, VLAN", l3(), &|i| ip4([198, 19, 0, i as u8], true), true);
    measure("l3 IPv6", l3(), &|i| ip6(i as u16), true);
    measure("l3 IPv4 and IPv6", l3(), &|i| if i & 1 == 0 { far(i) } else { ip6(i as u16) }, true);
    let impair = |text: &str| {
        let spec: ImpairSpec = text.parse().unwrap();
        Impair::new(l3(), &spec, 2, HeapPool::new(64, 128), 1_000_000_000)
    };
    measure("l3 + impair idle", impair(""), &far, true);
    measure("l3 + impair rate=1000Gpps", impair("rate=1000Gpps"), &far, true);
    measure("l3 + impair rate=100TbpsL2", impair("rate=100TbpsL2"), &far, true);
    measure("l3 + impair reorder=0.000001%", impair("reorder=0.000001%"), &far, true);
}
