//! Forwarding tables at full size: memory, time to load, and cycles a lookup with each of DPDK's functions.
//!
//! `cargo bench -p dpdk --bench fib`; random addresses inside the routes, 64 at a time, best of many.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    hint::black_box,
    net::{Ipv4Addr, Ipv6Addr},
    time::Instant,
};

use dpdk::{Eal, EalOptions, Fib4, Fib6, FibConfig, Lcore, Lookup, Memory, Tsc};
use packet::Clock;

fn main() {
    // `cargo test --benches` only wants to know that it runs.
    let full = std::env::args().any(|a| a == "--bench");
    let mib = if full { 4096 } else { 384 };
    let memory = match std::env::var("HUGE_MIB") {
        Ok(mib) => Memory::Huge { mib: mib.parse().unwrap() },
        Err(_) => Memory::NoHuge { mib },
    };
    let options = EalOptions { lcores: vec![Lcore { id: 1, cpu: 1 }], memory, ..EalOptions::default() };
    let eal = Eal::init(options).unwrap_or_else(|e| panic!("{e}"));
    println!("{}, {}", Eal::version(), eal.memory_kind().as_str());
    let only = std::env::args().find(|a| a == "ipv4" || a == "ipv6");
    eal.scope(|s| {
        s.launch(1, || {
            if only.as_deref() != Some("ipv6") {
                for routes in if full { vec![1, 1000, 100_000, 1_000_000] } else { vec![100] } {
                    ipv4(eal, routes);
                }
            }
            if only.as_deref() != Some("ipv4") {
                for routes in if full { vec![1, 1000, 200_000] } else { vec![100] } {
                    ipv6(eal, routes);
                }
            }
        })
        .unwrap()
        .join()
    })
    .unwrap();
    Eal::cleanup();
}

/// A generator good enough to make routes (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// Lengths in the shares seen in the Internet's table, and 3 % that providers have inside.
fn length4(random: &mut Random) -> u8 {
    match random.next() % 100 {
        0..=57 => 24,
        58..=69 => 22 + (random.next() % 2) as u8,
        70..=84 => 20 + (random.next() % 2) as u8,
        85..=96 => 12 + (random.next() % 8) as u8,
        _ => 25 + (random.next() % 8) as u8,
    }
}

fn length6(random: &mut Random) -> u8 {
    match random.next() % 100 {
        0..=49 => 48,
        50..=64 => 32,
        65..=84 => 36 + 4 * (random.next() % 3) as u8,
        85..=94 => 56,
        _ => 64,
    }
}

fn ipv4(eal: &'static Eal, routes: usize) {
    let mut random = Random(1);
    let mut addresses = Vec::new();
    let before = eal.memory_used();
    let start = Instant::now();
    let mut fib = Fib4::new(eal, &FibConfig::new(routes as u32)).unwrap_or_else(|e| panic!("{e}"));
    let made = start.elapsed();
    let mut all: Vec<(u32, u8)> = (0..routes)
        // Unicast: 1.0.0.0 to 223.255.255.255.
        .map(|_| (0x0100_0000 + (random.next() % 0xdf00_0000) as u32, length4(&mut random)))
        .collect();
    if !shuffled() {
        all.sort_unstable_by_key(|&(prefix, len)| (prefix & u32::MAX << (32 - len), len));
    }
    let start = Instant::now();
    for (&(prefix, len), hop) in all.iter().zip(0..) {
        fib.add(Ipv4Addr::from_bits(prefix), len, 1 + hop % 1000).unwrap_or_else(|e| panic!("{e}"));
        addresses.push(prefix);
    }
    report("IPv4", routes, fib.groups(), eal.memory_used() - before, made, start.elapsed());
    let tests: Vec<u32> = (0..1 << 16).map(|_| addresses[random.next() as usize % routes]).collect();
    for lookup in [Lookup::Scalar, Lookup::ScalarInline, Lookup::Avx512] {
        if fib.select(lookup) {
            time(eal, lookup, &tests, |a, hops| fib.lookup_bulk(a, hops));
        }
    }
}

fn ipv6(eal: &'static Eal, routes: usize) {
    let mut random = Random(2);
    let mut addresses = Vec::new();
    let before = eal.memory_used();
    let start = Instant::now();
    let mut fib = Fib6::new(eal, &FibConfig::new(routes as u32)).unwrap_or_else(|e| panic!("{e}"));
    let made = start.elapsed();
    let mut all: Vec<(u128, u8)> = (0..routes)
        .map(|_| {
            // Some ten thousand providers of a /32 in 2000::/3, each with networks inside.
            let provider = 0x2001_0000 + (random.next() % 10_000) as u32 * 0x1_0003;
            (u128::from(provider) << 96 | u128::from(random.next() >> 32) << 64, length6(&mut random))
        })
        .collect();
    if !shuffled() {
        all.sort_unstable_by_key(|&(prefix, len)| (prefix & u128::MAX << (128 - len), len));
    }
    let start = Instant::now();
    for (&(prefix, len), hop) in all.iter().zip(0..) {
        fib.add(Ipv6Addr::from_bits(prefix), len, 1 + hop % 1000).unwrap_or_else(|e| panic!("{e}"));
        addresses.push(prefix.to_be_bytes());
    }
    report("IPv6", routes, fib.groups(), eal.memory_used() - before, made, start.elapsed());
    let tests: Vec<[u8; 16]> = (0..1 << 16).map(|_| addresses[random.next() as usize % routes]).collect();
    for lookup in [Lookup::Scalar, Lookup::Avx512] {
        if fib.select(lookup) {
            time(eal, lookup, &tests, |a, hops| fib.lookup_bulk(a, hops));
        }
    }
}

/// Routes in the order of their prefixes, as a table's owner has them, unless asked otherwise.
fn shuffled() -> bool {
    std::env::args().any(|a| a == "shuffled")
}

fn report(
    family: &str,
    routes: usize,
    groups: u32,
    bytes: u64,
    made: std::time::Duration,
    loaded: std::time::Duration,
) {
    let mib = bytes as f64 / f64::from(1 << 20);
    println!("{family}, {routes} routes, {groups} groups: {mib:.0} MiB, made in {made:.3?}, loaded in {loaded:.3?}");
}

/// The best and the median run over all addresses: cycles a lookup.
fn time<A>(eal: &'static Eal, lookup: Lookup, addresses: &[A], find: impl Fn(&[A], &mut [u64])) {
    let tsc = Tsc::new(eal);
    let mut hops = [0; 64];
    let mut runs: Vec<u64> = (0..60)
        .map(|_| {
            let start = tsc.now();
            for burst in addresses.chunks(64) {
                find(burst, &mut hops);
                black_box(&mut hops);
            }
            tsc.now() - start
        })
        .collect();
    runs.sort_unstable();
    let each = |ticks: u64| ticks as f64 / addresses.len() as f64;
    println!("    {lookup:<14?} best {:5.1}, median {:5.1} cycles a lookup", each(runs[0]), each(runs[runs.len() / 2]));
}
