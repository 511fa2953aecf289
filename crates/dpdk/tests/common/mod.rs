//! One EAL for a test binary: DPDK is started once per process, so each set of arguments has a file of its own.
#![allow(dead_code)]

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use dpdk::{DpdkError, Eal, EalOptions, Lcore, Mbuf, Memory, Mempool, Port, PortConfig, PortSpec, RxQueue, TxQueue};
use packet::{Alloc, Buffer, Burst, Rx, Tx};

/// Ordinary memory, two workers, no PCI.
pub fn eal_with(memory: Memory) -> &'static Eal {
    static EAL: OnceLock<&'static Eal> = OnceLock::new();
    EAL.get_or_init(|| {
        let allowed: Vec<u32> = (0..64).filter(|&cpu| cpu_allowed(cpu)).collect();
        let cpu = |i: usize| allowed[i % allowed.len()];
        let lcores = vec![Lcore { id: 1, cpu: cpu(0) }, Lcore { id: 2, cpu: cpu(1) }];
        Eal::init(EalOptions { lcores, memory, ..EalOptions::default() }).unwrap_or_else(|e| panic!("{e}"))
    })
}

fn cpu_allowed(cpu: u32) -> bool {
    let text = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let list = text.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    list.split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        (first.parse().unwrap()..=last.parse().unwrap()).contains(&cpu)
    })
}

pub fn pool(eal: &'static Eal, count: u32) -> Mempool {
    Mempool::new(eal, "test", count, 2048, 0).unwrap()
}

pub fn open(eal: &'static Eal, text: &str, pool: &Mempool) -> Port {
    Port::open(eal, &text.parse::<PortSpec>().unwrap(), &PortConfig::new(pool)).unwrap_or_else(|e| panic!("{e}"))
}

/// The error of a port that cannot be opened; its text is one line.
pub fn refused(eal: &'static Eal, text: &str, pool: &Mempool) -> DpdkError {
    let error = match text.parse::<PortSpec>() {
        Ok(spec) => Port::open(eal, &spec, &PortConfig::new(pool)).unwrap_err(),
        Err(e) => e,
    };
    let line = error.to_string();
    assert!(!line.contains('\n'), "{line:?}");
    println!("{line}");
    error
}

/// Frame number `i`: its length varies and every byte is known.
pub fn content(i: usize, most: usize) -> Vec<u8> {
    let len = 60 + i * 37 % (most - 59);
    let mut bytes: Vec<u8> = (0..len).map(|at| (at + i) as u8).collect();
    // Addressed to a MAC of nobody's, of a local experimental type, so that no kernel answers.
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb5]);
    bytes[14..18].copy_from_slice(&(i as u32).to_be_bytes());
    bytes
}

/// Sends `count` numbered frames, never more than a small ring holds at once (a peer that forwards drops what does
/// not fit), and receives them all, in order and unchanged.
pub fn pass(pool: &Mempool, tx: &mut TxQueue, rx: &mut RxQueue, count: usize, most: usize) {
    let mut alloc = pool.handle();
    let (mut out, mut into): (Burst<Mbuf>, Burst<Mbuf>) = (Burst::new(), Burst::new());
    let (mut made, mut got) = (0, 0);
    let end = Instant::now() + Duration::from_secs(20);
    while got < count {
        assert!(Instant::now() < end, "{got} of {count} received, {made} made; {}", dpdk::log_tail());
        while made < count && out.len() < 32 && made - got < 128 {
            let bytes = content(made, most);
            if alloc.alloc(&mut out, 1, bytes.len()) == 0 {
                break;
            }
            out.last_mut().unwrap().data_mut().copy_from_slice(&bytes);
            made += 1;
        }
        tx.tx(&mut out);
        tx.tx_done_cleanup();
        rx.rx(&mut into);
        for frame in &into {
            let foreign = frame.data().get(12..14) != Some(&[0x88, 0xb5]);
            if !foreign {
                assert_eq!(frame.data(), content(got, most), "frame {got}");
                got += 1;
            }
        }
        Mbuf::discard(&mut into);
    }
    assert!(out.is_empty());
}

/// Waits for mbufs that drivers still hold to come back.
pub fn full(pool: &Mempool) {
    let end = Instant::now() + Duration::from_secs(5);
    while pool.avail() < pool.capacity() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(pool.avail(), pool.capacity());
}

/// Sends frame number `i`.
pub fn send_one(pool: &Mempool, tx: &mut TxQueue, i: usize) {
    let mut burst: Burst<Mbuf> = Burst::new();
    let bytes = content(i, 1514);
    assert_eq!(pool.handle().alloc(&mut burst, 1, bytes.len()), 1);
    burst[0].data_mut().copy_from_slice(&bytes);
    assert_eq!(tx.tx(&mut burst), 1);
    tx.tx_done_cleanup();
}
