//! What a frame costs in this layer: nanoseconds for receiving, sending, allocating and freeing on `null` and `wire`.
//!
//! `cargo bench -p dpdk --bench ports`; one lcore, bursts of 32, 64-byte frames. Compare within one run only.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::hint::black_box;

use dpdk::{Eal, EalOptions, Lcore, Mbuf, Memory, Mempool, PortConfig, Tsc, Wire};
use packet::{Alloc, Buffer, Burst, Clock, Rx, Tx};

const ROUNDS: u64 = 400_000;
const BURST: usize = 32;

fn main() {
    // `cargo test --benches` only wants to know that it runs.
    let rounds = if std::env::args().any(|a| a == "--bench") { ROUNDS } else { 100 };
    let memory =
        if std::env::var_os("NO_HUGE").is_some() { Memory::NoHuge { mib: 128 } } else { Memory::Auto { mib: 128 } };
    let options = EalOptions { lcores: vec![Lcore { id: 1, cpu: 0 }], memory, ..EalOptions::default() };
    let eal = Eal::init(options).unwrap_or_else(|e| panic!("{e}"));
    println!("{}, {}, bursts of {BURST}", Eal::version(), eal.memory_kind().as_str());
    eal.scope(|s| s.launch(1, || run(eal, rounds)).unwrap().join()).unwrap();
    Eal::cleanup();
}

/// The best of five runs, per frame.
fn measure(tsc: Tsc, name: &str, rounds: u64, mut f: impl FnMut()) {
    let best = (0..5).map(|_| {
        let start = tsc.now();
        (0..rounds).for_each(|_| f());
        tsc.now() - start
    });
    let ticks = best.min().unwrap() as f64;
    let ns = ticks * 1e9 / tsc.hz() as f64 / (rounds * BURST as u64) as f64;
    println!("{name:<44} {ns:6.2} ns/frame {:8.1} Mpps", 1e3 / ns);
}

fn run(eal: &'static Eal, rounds: u64) {
    let tsc = Tsc::new(eal);
    for count in [4095, 32767] {
        println!("pool of {count}");
        let pool = Mempool::new(eal, "bench", count, 2048, 256).unwrap();
        let (config, mut alloc) = (PortConfig::new(&pool), pool.handle());
        let (mut out, mut into): (Burst<Mbuf>, Burst<Mbuf>) = (Burst::new(), Burst::new());

        measure(tsc, "alloc + discard", rounds, || {
            alloc.alloc(&mut out, BURST, 60);
            Mbuf::discard(black_box(&mut out));
        });
        measure(tsc, "alloc + drop one by one", rounds, || {
            alloc.alloc(&mut out, BURST, 60);
            out.clear();
        });
        let mut null = dpdk::Port::open(eal, &"null".parse().unwrap(), &config).unwrap();
        let (mut rx, mut tx) = (null.take_rx(0).unwrap(), null.take_tx(0).unwrap());
        measure(tsc, "alloc + tx to null", rounds, || {
            alloc.alloc(&mut out, BURST, 60);
            tx.tx(&mut out);
        });
        measure(tsc, "alloc + write 18 bytes at the end + tx to null", rounds, || {
            alloc.alloc(&mut out, BURST, 60);
            for frame in &mut out {
                if let Some(tail) = frame.data_mut().last_chunk_mut::<18>() {
                    *tail = black_box([7; 18]);
                }
            }
            tx.tx(&mut out);
        });
        measure(tsc, "rx of 64 from null + discard (per 32)", rounds / 2, || {
            rx.rx(&mut into);
            Mbuf::discard(&mut into);
        });
        let (mut a, mut b) = Wire::pair(eal, "bench", 1024, &config).unwrap();
        let (mut tx, mut rx) = (a.take_tx(0).unwrap(), b.take_rx(0).unwrap());
        alloc.alloc(&mut out, BURST, 60);
        measure(tsc, "the same frames round a wire: tx + rx", rounds, || {
            tx.tx(&mut out);
            rx.rx(&mut out);
        });
        out.clear();
        measure(tsc, "alloc + tx + rx over a wire + discard", rounds, || {
            alloc.alloc(&mut out, BURST, 60);
            tx.tx(&mut out);
            rx.rx(&mut into);
            Mbuf::discard(&mut into);
        });
        measure(tsc, "read 18 bytes at the end of each, over a wire", rounds, || {
            alloc.alloc(&mut out, BURST, 60);
            tx.tx(&mut out);
            rx.rx(&mut into);
            for frame in &into {
                black_box(frame.data().last_chunk::<18>());
            }
            Mbuf::discard(&mut into);
        });
    }
}
