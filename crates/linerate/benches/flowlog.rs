//! `linerate flowlog` against DPDK's l3fwd on the same ports, by flows, with readers, against other flow loggers on one
//! capture, and its latency beside that of `null`; one lcore.
//!
//! `cargo bench -p linerate --bench flowlog -- [rate] [flows] [readers] [captures] [latency] [quick]`; without a name,
//! only `rate` runs. With `quick`, each runs for one round. `flows 1M` (1, 1k, 64k, 1M, 4M, 16M) measures only at the
//! given counts. Rates are of 64-byte IPv4/UDP frames out of an endless capture (`net_pcap`, which itself costs some 29
//! cycles a frame and more for many flows) to a null port. Captures are read once, from memory (/dev/shm), each program
//! exporting as it does: softflowd and linerate IPFIX over UDP, nfpcapd files. Their start, by the time for a capture
//! of one frame, is told apart. Rounds of each in turn, since these machines are shared; compare within a run.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "flowlog/captures.rs"]
mod captures;
mod contest;
#[path = "flowlog/latency.rs"]
mod latency;
#[path = "flowlog/logger.rs"]
mod logger;
#[path = "flowlog/readers.rs"]
mod readers;

use contest::Load;
use logger::{rate, Logger, Seen};

const RATE_ROUNDS: usize = 15;
const ROUNDS: usize = 7;
const SWEEP_ROUNDS: usize = 3;
/// Sixteen million frames of a capture in memory take 15 GB.
const SIZES: [(&str, u32); 6] =
    [("1", 1), ("1k", 1024), ("64k", 1 << 16), ("1M", 1 << 20), ("4M", 1 << 22), ("16M", 1 << 24)];

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if !args.iter().any(|a| a == "--bench") {
        return; // `cargo test --benches` only wants to know that it builds
    }
    let asked = |mode: &str| args.iter().any(|a| a == mode);
    let quick = args.iter().any(|a| a == "quick");
    let rounds = |rounds| if quick { 1 } else { rounds };
    if asked("rate") || !["flows", "readers", "captures", "latency"].into_iter().any(asked) {
        println!("\n64-byte frames, 1k flows, one lcore");
        let load = Load::new(1024, 16);
        contest::compare(&["l3fwd em", "flowlog"], rounds(RATE_ROUNDS), |name| match name {
            "flowlog" => rate(&load).fps,
            _ => contest::l3fwd(&load, "em"),
        });
    }
    if asked("flows") {
        let some = SIZES.iter().any(|(name, _)| asked(name));
        sweep(rounds(SWEEP_ROUNDS), SIZES.iter().filter(|(name, _)| !some || asked(name)));
    }
    if asked("readers") {
        beside_readers(rounds(ROUNDS));
    }
    if asked("captures") {
        captures::compare(rounds(SWEEP_ROUNDS));
    }
    if asked("latency") {
        latency::compare(rounds(ROUNDS));
    }
}

/// One logger, by turns without clients and with them: what differs from process to process does not count.
fn beside_readers(rounds: usize) {
    println!(
        "\n64-byte frames, 64k flows in random order, one lcore; nine clients subscribe to the top 100, one is hostile"
    );
    let logger = Logger::start(&Load::shuffled(1 << 16, 16));
    logger.fill();
    let _busy = readers::Busy::start();
    let mut ratios = Vec::new();
    let mut before = logger.clocks();
    for _ in 0..rounds {
        let clients = readers::Readers::start(logger.address());
        let beside = logger.clocks();
        println!("{}", clients.end());
        let after = logger.clocks();
        println!("clocks a packet: {before:.1} alone, {beside:.1} with 10 clients, {after:.1} alone");
        ratios.push((before + after) / 2.0 / beside);
        before = after;
    }
    ratios.sort_by(f64::total_cmp);
    let (least, most) = (ratios[0], ratios[rounds - 1]);
    println!("rate with clients, of that alone: {least:.3} to {most:.3}, median {:.3}", ratios[rounds / 2]);
}

/// Rates, clocks and memory against flows.
fn sweep<'a>(rounds: usize, sizes: impl Iterator<Item = &'a (&'a str, u32)>) {
    println!("\n64-byte frames in random order, one lcore");
    println!(
        "{:<6} {:>7} {:>7} {:>7} {:>13} {:>12} {:>12}",
        "flows", "min", "median", "max", "clocks/packet", "bytes/place", "bytes/flow"
    );
    for &(name, flows) in sizes {
        let load = Load::shuffled(flows, 16);
        let mut seen: Vec<Seen> = (0..rounds).map(|_| rate(&load)).collect();
        seen.sort_by(|a, b| a.fps.total_cmp(&b.fps));
        let median = &seen[rounds / 2];
        println!(
            "{name:<6} {:>7.1} {:>7.1} {:>7.1} {:>13.1} {:>12.1} {:>12.1}",
            seen[0].fps / 1e6,
            median.fps / 1e6,
            seen[rounds - 1].fps / 1e6,
            median.clocks,
            median.memory / median.capacity,
            median.memory / median.flows,
        );
    }
}
