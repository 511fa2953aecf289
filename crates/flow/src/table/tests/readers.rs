//! Readers on other threads see each flow as it was at one instant. For 0.4 s, or `LINERATE_SOAK_S` seconds.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Instant,
};

use super::*;

/// A flow's key tells the bytes of its packets, so that a row mixed of two flows or two moments shows.
fn check(flow: &Record) {
    let (packets, bytes, i) = match (Key4::from_key(&flow.key), Key6::from_key(&flow.key)) {
        (Some(Key4([addresses, ports, _])), _) => {
            let i = (addresses >> 32) as u32;
            assert_eq!((addresses as u32, ports), (!i, four(i).key.0[1]));
            (flow.forward.packets + flow.back.packets, flow.forward.frame_bytes + flow.back.frame_bytes, i)
        }
        (_, Some(key)) => {
            let i = key.0[1] as u32;
            assert_eq!(key, six(i).key);
            (flow.forward.packets, flow.forward.frame_bytes, i)
        }
        _ => unreachable!(),
    };
    assert_eq!(bytes, packets * u64::from(64 + i % 1000), "{flow:?}");
    assert!(packets > 0 && flow.first <= flow.last, "{flow:?}");
    // Each packet of a flow comes one tick after the one before.
    assert_eq!((flow.last - flow.first) / 1_000_000, packets - 1, "{flow:?}");
}

#[test]
fn every_row_read_is_of_one_flow_at_one_moment() {
    // Enough flows to evict all the time, each in bursts of its own.
    let (mut worker, reader, mut ended) = small(TableFull::Evict, true, 256);
    let stop = AtomicBool::new(false);
    thread::scope(|threads| {
        let scans: Vec<_> = (0..2)
            .map(|_| {
                let (reader, stop) = (reader.clone(), &stop);
                threads.spawn(move || {
                    let mut seen = 0u64;
                    while !stop.load(Ordering::Relaxed) {
                        reader.scan(0, reader.places(), &mut |_, flow| {
                            check(flow);
                            seen += 1;
                        });
                        let counts = reader.counts();
                        assert!(counts.flows <= reader.places());
                    }
                    seen
                })
            })
            .collect();
        let records = threads.spawn({
            let stop = &stop;
            move || {
                let mut seen = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    while let Some(record) = ended.pop() {
                        check(&record);
                        seen += 1;
                    }
                    thread::yield_now();
                }
                seen
            }
        });
        let started = Instant::now();
        let (mut now, mut i) = (0u64, 0u32);
        let soak = std::env::var("LINERATE_SOAK_S").ok().and_then(|s| s.parse().ok());
        while started.elapsed() < soak.map_or(Duration::from_millis(400), Duration::from_secs) {
            i = i.wrapping_add(1);
            for packet in 0..8 {
                now += 1;
                worker.count4(&[four(i % 3000).with(|f| f.reversed = packet == 5)], 0, now, &NoPrefetch);
            }
            // Their next packets are not the next ticks: they go before that.
            if i % 3000 == 0 {
                while !worker.flush(usize::MAX) {
                    thread::yield_now();
                }
                worker.flushed = 0;
            }
            for _ in 0..3 {
                now += 1;
                worker.count6(&[six(i)], 0, now, &NoPrefetch);
            }
        }
        stop.store(true, Ordering::Relaxed);
        let seen: u64 = scans.into_iter().map(|scan| scan.join().unwrap()).sum();
        assert!(seen > 1000 && records.join().unwrap() > 1000);
    });
}
