//! Work on lcores.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    panic::{catch_unwind, AssertUnwindSafe},
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        Mutex, MutexGuard, PoisonError,
    },
};

use common::eal_with;
use dpdk::{current_lcore, DpdkError, Eal, Mbuf, Memory, Mempool, PortConfig, Scheduling, Tsc, Wire};
use packet::{Alloc, Buffer, Burst, Clock, Rx, Tx};

/// The lcores are shared, so the tests take turns.
fn test_eal() -> (&'static Eal, MutexGuard<'static, ()>) {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    (eal_with(Memory::NoHuge { mib: 64 }), turn)
}

#[test]
fn closures_borrow_and_return_values() {
    let (eal, _turn) = test_eal();
    let words = [String::from("a"), String::from("b")];
    let total = AtomicU64::new(0);
    for round in 0..100 {
        let sum = eal.scope(|s| {
            let jobs = [1, 2].map(|lcore| {
                let (word, total) = (&words[lcore as usize - 1], &total);
                s.launch(lcore, move || {
                    assert_eq!(current_lcore(), Some(lcore));
                    total.fetch_add(1, Ordering::Relaxed);
                    word.len() as u32 + lcore
                })
                .unwrap()
            });
            jobs.map(|job| job.join().unwrap()).iter().sum::<u32>()
        });
        assert_eq!((sum, total.load(Ordering::Relaxed)), (5, 2 * (round + 1)));
    }
    assert_eq!(std::thread::spawn(current_lcore).join().unwrap(), None);
}

#[test]
fn the_scope_waits_for_what_nobody_joined() {
    let (eal, _turn) = test_eal();
    let done = AtomicBool::new(false);
    eal.scope(|s| {
        let job = s.launch(1, || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            done.store(true, Ordering::Relaxed);
        });
        assert!(!job.unwrap().is_finished());
    });
    assert!(done.into_inner());
}

#[test]
fn a_busy_missing_or_main_lcore_is_refused() {
    let (eal, _turn) = test_eal();
    let stop = AtomicBool::new(false);
    let refused = eal.scope(|s| {
        let _job = s
            .launch(1, || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
            .unwrap();
        let refused = [1, 0, 7, u32::MAX].map(|lcore| s.launch(lcore, || ()).err());
        // Before anything is asserted: the scope waits for the job.
        stop.store(true, Ordering::Relaxed);
        refused
    });
    let lcores = refused.each_ref().map(|error| match error {
        Some(DpdkError::Lcore { lcore, .. }) => Some(*lcore),
        _ => None,
    });
    assert_eq!(lcores, [Some(1), Some(0), Some(7), Some(u32::MAX)], "{refused:?}");
    let lines: Vec<_> = refused.iter().flatten().take(3).map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    lcore 1: busy
    lcore 0: the main lcore: call the function directly
    lcore 7: DPDK was not started with it
    ");
}

#[test]
fn a_panic_on_a_worker_is_an_error_at_the_join_or_a_panic_of_the_scope() {
    let (eal, _turn) = test_eal();
    let joined = eal.scope(|s| s.launch(1, || -> u32 { panic!("frame {} is bad", 7) }).unwrap().join());
    let error = joined.unwrap_err();
    assert!(matches!(&error, DpdkError::Panicked { lcore: 1, message } if message == "frame 7 is bad"), "{error}");

    let other = AtomicBool::new(false);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        eal.scope(|s| {
            s.launch(1, || panic!("not joined")).map(drop).unwrap();
            s.launch(2, || other.store(true, Ordering::Relaxed)).map(drop).unwrap();
        })
    }));
    assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"not joined"));
    assert!(other.into_inner());

    let mut alive = 0;
    let caught = catch_unwind(AssertUnwindSafe(|| {
        eal.scope(|s| {
            s.launch(1, || alive += 1).map(drop).unwrap();
            panic!("in the scope");
        })
    }));
    assert!(caught.is_err());
    assert_eq!(alive, 1);
}

#[test]
fn two_lcores_pass_frames_and_the_pool_is_full_again() {
    const COUNT: u64 = 200_000;
    let (eal, _turn) = test_eal();
    let pool = Mempool::new(eal, "lcores", 4095, 256, 128).unwrap();
    let (mut a, mut b) = Wire::pair(eal, "t", 512, &PortConfig { mtu: 128, ..PortConfig::new(&pool) }).unwrap();
    let (mut tx, mut rx, mut alloc) = (a.take_tx(0).unwrap(), b.take_rx(0).unwrap(), pool.handle());
    let received = eal.scope(|s| {
        s.launch(1, move || {
            let (mut burst, mut sent) = (Burst::<Mbuf>::new(), 0);
            while sent < COUNT {
                let n = (COUNT - sent).min(32) as usize;
                if burst.is_empty() && alloc.alloc(&mut burst, n, 60) > 0 {
                    for (frame, i) in burst.iter_mut().zip(sent..) {
                        frame.data_mut()[..8].copy_from_slice(&i.to_le_bytes());
                    }
                }
                sent += tx.tx(&mut burst) as u64;
                std::hint::spin_loop();
            }
        })
        .unwrap();
        let receiver = s.launch(2, move || {
            let (mut burst, mut seen) = (Burst::<Mbuf>::new(), 0u64);
            while seen < COUNT {
                rx.rx(&mut burst);
                for frame in &burst {
                    assert_eq!(frame.data()[..8], seen.to_le_bytes());
                    seen += 1;
                }
                Mbuf::discard(&mut burst);
            }
            seen
        });
        receiver.unwrap().join().unwrap()
    });
    assert_eq!(received, COUNT);
    assert_eq!(pool.avail(), pool.capacity());
}

#[test]
fn the_clock_runs() {
    let (eal, _turn) = test_eal();
    let tsc = Tsc::new(eal);
    let (first, second) = (tsc.now(), tsc.now());
    assert!(second >= first && tsc.hz() > 100_000_000);
    let _ = Tsc::invariant();
}

#[test]
fn lcores_are_raised_for_their_work_only() {
    let (eal, _turn) = test_eal();
    let may = dpdk::check_realtime().is_ok();
    let of_lcore = |scheduling| eal.scope_as(scheduling, |s| s.launch(1, dpdk::is_realtime).unwrap().join().unwrap());
    for _ in 0..50 {
        let (above, lcores) = eal.scope_as(Scheduling::Realtime, |s| {
            let jobs = [1, 2].map(|lcore| s.launch(lcore, dpdk::is_realtime).unwrap());
            (dpdk::is_realtime(), jobs.map(|job| job.join().unwrap()))
        });
        assert_eq!((above, lcores), (may, [may, may]));
        assert!(!dpdk::is_realtime() && !of_lcore(Scheduling::Ordinary));
    }
    // After a panic, too.
    let died = eal.scope_as(Scheduling::Realtime, |s| s.launch(1, || panic!("on purpose")).unwrap().join());
    assert!(matches!(died, Err::<(), _>(DpdkError::Panicked { lcore: 1, .. })));
    assert!(!dpdk::is_realtime() && !of_lcore(Scheduling::Ordinary));
}
