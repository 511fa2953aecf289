//! Details go with their records, and with no others.

use super::*;
use crate::{Details, PacketDetails};

/// Room for 1,024 flows with details.
fn detailed(full: TableFull) -> Parts {
    let (idle, active) = (Duration::from_secs(8), Duration::from_secs(30));
    let spec = TableSpec { idle, active, full, details: true, ..TableSpec::new(1024) };
    table(&spec, Heap::new(spec.words()), Timebase::new(0, 0, HZ), 0).unwrap()
}

/// An IPv4 packet of N bytes; with a sequence number, a segment of TCP.
fn packet(bytes: u16, sequence: Option<u32>) -> PacketDetails {
    let [b0, b1] = bytes.to_be_bytes();
    let protocol = if sequence.is_some() { 6 } else { 17 };
    let mut packet = vec![0x45, 0, b0, b1, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2];
    packet.extend(sequence.unwrap_or_default().to_be_bytes());
    packet.extend([0, 0, 0, 0, 0x50, 0x10]);
    // The source address says its length, too.
    PacketDetails::read(&[&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, b0, b1, 8, 0][..], &packet].concat(), &packet)
}

/// The length of the packet whose link layer was recorded.
fn linked(record: &Record) -> u16 {
    let [_, src] = record.details.unwrap().forward.link.unwrap().addresses();
    u16::from_be_bytes([src.0[4], src.0[5]])
}

fn bytes(record: &Record) -> u16 {
    record.details.unwrap().forward.max_ip_bytes
}

#[test]
fn only_who_asks_gets_details() {
    let (mut worker, _, mut ended) = small(TableFull::Evict, true, 0);
    assert!(!worker.has_details());
    worker.count4(&[four(1)], 0, 0, &NoPrefetch);
    while !worker.flush(4096) {}
    assert_eq!(records(&mut ended)[0].details, None);
    let (worker, reader, _) = detailed(TableFull::Evict);
    let plain = TableSpec::new(1024);
    let plain = table(&plain, Heap::new(plain.words()), Timebase::new(0, 0, HZ), 0).unwrap().1;
    assert!(worker.has_details() && reader.memory() == plain.memory() + (64 + 2 * 52) * reader.places());
}

#[test]
fn each_record_has_the_details_of_its_flow_and_the_next_flow_has_none_of_them() {
    let (mut worker, _, mut ended) = detailed(TableFull::Evict);
    for round in 0..3u16 {
        let begin = u64::from(round) * 20 * HZ;
        for n in 0..100u16 {
            let (i, of4, of6) = (u32::from(n), 200 * round + n + 50, 200 * round + n + 7);
            worker.count4_with(&[four(i)], &[packet(of4, None)], 0, begin, &NoPrefetch);
            worker.count6_with(&[six(i)], &[packet(of6, None)], 0, begin, &NoPrefetch);
        }
        // The queues take 32 each: the other records are dropped, and their details with them.
        age(&mut worker, begin + 10 * HZ);
        let records = records(&mut ended);
        assert_eq!(records.len(), 64);
        for record in &records {
            let n = match record.key.addresses.src() {
                std::net::IpAddr::V4(src) => u32::from(src) as u16 + 50,
                std::net::IpAddr::V6(src) => u128::from(src) as u16 + 7,
            };
            let of = record.details.unwrap().forward;
            assert_eq!((of.min_ip_bytes, of.max_ip_bytes), (200 * round + n, 200 * round + n), "{record:?}");
            assert_eq!((linked(record), record.details.unwrap().back.link), (200 * round + n, None), "{record:?}");
        }
    }
}

#[test]
fn a_long_flow_keeps_its_sequence_over_its_records() {
    let (mut worker, _, mut ended) = detailed(TableFull::Evict);
    let retransmitted = |details: Option<Details>| details.unwrap().forward.retransmissions;
    let mut count = |sequence, at| {
        worker.count4_with(&[four(1)], &[packet(140, Some(sequence))], 0, at, &NoPrefetch);
        age(&mut worker, at);
    };
    for second in 1..41 {
        count(0, second * HZ);
    }
    // The first came once, and 30 times again; in the next record all come again.
    let first = records(&mut ended);
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!(u64::from(retransmitted(first[0].details)), first[0].forward.packets - 1);
    while !worker.flush(4096) {}
    let last = records(&mut ended);
    assert_eq!(u64::from(retransmitted(last[0].details)), last[0].forward.packets);
}

#[test]
fn the_link_layer_is_that_of_the_first_frame_since_the_last_record() {
    let (mut worker, _, mut ended) = detailed(TableFull::Evict);
    for second in 1..41u16 {
        let at = u64::from(second) * HZ;
        worker.count4_with(&[four(1)], &[packet(100 + second, None)], 0, at, &NoPrefetch);
        age(&mut worker, at);
    }
    let first = records(&mut ended).pop().unwrap();
    assert_eq!((linked(&first), first.forward.packets < 40), (101, true), "{first:?}");
    while !worker.flush(4096) {}
    let second = records(&mut ended).pop().unwrap();
    assert_eq!(u64::from(linked(&second)), 101 + first.forward.packets, "{second:?}");
}

#[test]
fn an_evicted_flow_takes_its_details_along() {
    let (mut worker, _, mut ended) = detailed(TableFull::Evict);
    for n in 0..5000u32 {
        worker.count4_with(&[four(n)], &[packet(n as u16 + 1, None)], 0, u64::from(n), &NoPrefetch);
        for record in records(&mut ended) {
            assert_eq!(record.end, Some(EndReason::LackOfResources));
            assert_eq!(record.details.unwrap().forward.min_ip_bytes, bytes(&record), "{record:?}");
            assert_eq!(linked(&record), bytes(&record), "{record:?}");
        }
    }
    assert!(worker.counts().evicted > 100);
}

#[test]
fn records_keep_their_own_details_while_the_queue_is_full() {
    let (mut worker, _, mut ended) = detailed(TableFull::Evict);
    let taker = std::thread::spawn(move || {
        let mut taken = 0u64;
        while !ended.is_closed() {
            // One at a time, now and then: the queue stays full.
            if let Some(record) = ended.pop() {
                let source = match record.key.addresses.src() {
                    std::net::IpAddr::V4(src) => u32::from(src) as u16,
                    std::net::IpAddr::V6(_) => 0,
                };
                assert_eq!((bytes(&record), linked(&record)), (source, source), "record {taken}: {record:?}");
                taken += 1;
            }
        }
        taken
    });
    let mut now = 0;
    while now < 2_000_000 && !taker.is_finished() {
        let n = (now % 60_000) as u32 + 1;
        worker.count4_with(&[four(n)], &[packet(n as u16, None)], 0, now, &NoPrefetch);
        now += 1;
    }
    let (ended, dropped) = (worker.counts().evicted, worker.counts().dropped_records);
    drop(worker);
    let taken = taker.join().unwrap();
    assert!(ended > 1_000_000 && dropped > 0 && taken > 0, "{ended} ended, {dropped} dropped, {taken} taken");
}

#[test]
fn packets_with_times_of_their_own_have_details_too() {
    let (mut worker, _, mut ended) = detailed(TableFull::Evict);
    for (n, tick) in [HZ, 2 * HZ].into_iter().enumerate() {
        worker.follow(tick);
        worker.count4_at_with(&[four(1)], &[packet(70 + n as u16, None)], &[tick], 0, &NoPrefetch);
        worker.count6_at_with(&[six(1)], &[packet(90 + n as u16, None)], &[tick], 0, &NoPrefetch);
    }
    while !worker.flush(4096) {}
    let mut records = records(&mut ended);
    records.sort_by_key(bytes);
    let [v4, v6] = &records[..] else { panic!("{records:?}") };
    for (record, least) in [(v4, 70), (v6, 90)] {
        let of = record.details.unwrap().forward;
        assert_eq!((of.min_ip_bytes, of.max_ip_bytes, record.forward.packets), (least, least + 1, 2), "{record:?}");
        assert_eq!(record.last - record.first, 1_000_000_000, "{record:?}");
    }
}
