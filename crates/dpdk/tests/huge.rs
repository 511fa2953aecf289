//! Huge pages when there are enough of them, ordinary memory when not; the same ports over both.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::time::Duration;

use common::{eal_with, full, open, pass, pool};
use dpdk::{DpdkError, Memory, MemoryKind};

fn free_huge_pages() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find(|l| l.starts_with("HugePages_Free:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn memory_is_chosen_and_shared_memory_ports_work_over_it() {
    let before = free_huge_pages();
    let eal = eal_with(Memory::Auto { mib: 96 });
    let want = if before >= 49 { MemoryKind::Huge } else { MemoryKind::NoHuge };
    println!("{before} huge pages free: {}", eal.memory_kind().as_str());
    assert_eq!(eal.memory_kind(), want);
    let dir = tempfile::tempdir().unwrap();
    let pool = pool(eal, 8191);
    for (server, client) in [
        (format!("memif:{}/m,role=server", dir.path().display()), format!("memif:{}/m", dir.path().display())),
        (format!("vhost:{}/v", dir.path().display()), format!("virtio:{}/v", dir.path().display())),
    ] {
        let (mut a, mut b) = (open(eal, &server, &pool), open(eal, &client, &pool));
        for port in [&a, &b] {
            assert!(port.wait_link_up(Duration::from_secs(10)), "{port:?} is down; {}", dpdk::log_tail());
        }
        pass(&pool, &mut a.take_tx(0).unwrap(), &mut b.take_rx(0).unwrap(), 3000, 1514);
        pass(&pool, &mut b.take_tx(0).unwrap(), &mut a.take_rx(0).unwrap(), 3000, 1514);
        drop((b, a));
        full(&pool);
    }
}

#[test]
fn more_huge_pages_than_there_are_is_an_error_that_says_how_many() {
    let error = dpdk::Eal::init(dpdk::EalOptions { memory: Memory::Huge { mib: 1 << 20 }, ..Default::default() });
    // The other test's EAL may run already.
    let error = error.unwrap_err();
    assert!(matches!(error, DpdkError::NoHugepages { needed: 524_289, .. } | DpdkError::AlreadyInitialised), "{error}");
}
