//! Words of DPDK's memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::atomic::Ordering::Relaxed;

use common::eal_with;
use dpdk::{prefetch, Memory, SharedWords};

#[test]
fn words_are_zero_aligned_shared_and_given_back() {
    let eal = eal_with(Memory::NoHuge { mib: 128 });
    const LEN: usize = (32 << 20) / 8;
    // More in turn than there is at once.
    for round in 0..8 {
        let words = SharedWords::new(eal, LEN).unwrap();
        assert_eq!((words.len(), words.as_ptr() as usize % 64), (LEN, 0));
        assert!(words.iter().all(|w| w.load(Relaxed) == 0), "round {round}: not zero");
        std::thread::scope(|s| {
            for half in words.chunks(LEN / 2) {
                s.spawn(|| half.iter().for_each(|w| w.store(u64::MAX, Relaxed)));
            }
        });
        prefetch(&words[LEN - 1]);
        assert!(words.iter().all(|w| w.load(Relaxed) == u64::MAX));
    }
    let refused = SharedWords::new(eal, (1 << 30) / 8).unwrap_err();
    assert!(refused.machine_lacks() && refused.to_string().contains("a table of 1024 MiB"), "{refused}");
    assert!(refused.to_string().contains("--memory-mib"), "{refused}");
    for bad in [0, usize::MAX / 8, usize::MAX] {
        assert!(SharedWords::new(eal, bad).unwrap_err().to_string().contains("at least one word"), "{bad}");
    }
}
