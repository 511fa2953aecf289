//! When a flow is recorded, why, and what is in the record.

use super::*;

fn tcp(i: u32, tcp_flags: u16, reversed: bool) -> Packet4 {
    four(i).with(|f| (f.tcp_flags, f.reversed) = (tcp_flags, reversed))
}

fn ends(records: &[Record]) -> Vec<(u64, u64, EndReason)> {
    records.iter().map(|r| (r.forward.packets, r.back.packets, r.end.unwrap())).collect()
}

#[test]
fn a_flow_is_shown_as_it_was_counted() {
    let (mut worker, reader, _ended) = small(TableFull::DropNew, true, 64);
    let first = tcp(7, SYN, true).with(|f| f.tos = 0xb8);
    // The first and its answer in one burst, another burst later.
    worker.count4(&[first, tcp(7, SYN | ACK, false)], 1, 2500, &NoPrefetch);
    worker.count4(&[tcp(7, ACK, true)], 1, 4000, &NoPrefetch);
    worker.count6(&[six(5)], 1, 4000, &NoPrefetch);
    let [flow, other] = flows(&reader)[..] else { panic!() };
    assert_eq!(Key4::from_key(&flow.key).unwrap(), first.key.flipped(), "from who spoke first");
    assert_eq!((flow.ingress, flow.tos, flow.tcp_flags(), flow.end), (1, 0xb8, SYN | ACK, None));
    assert_eq!((flow.forward.packets, flow.forward.frame_bytes), (2, 142));
    assert_eq!((flow.back.packets, flow.back.frame_bytes), (1, 71));
    assert_eq!((flow.forward.tcp_flags, flow.back.tcp_flags), (SYN | ACK, SYN | ACK), "each way its own");
    assert_eq!((flow.first, flow.last), (2_500_000_000, 4_000_000_000));
    assert_eq!(Key6::from_key(&other.key).unwrap(), six(5).key);
    assert_eq!((other.tos, other.forward.frame_bytes, other.ingress), (8, 69, 1));
    let counts = reader.counts();
    assert_eq!((counts.flows, counts.created), (2, 2));
}

#[test]
fn what_is_expected_is_counted_as_ever() {
    let burst: Vec<Packet4> = (0..64).map(|i| four(i % 40)).collect();
    let counted = |expected: &[&[Packet4]]| {
        let (mut worker, reader, _ended) = small(TableFull::DropNew, true, 64);
        for (now, expected) in (1..).zip(expected) {
            worker.begin();
            expected.iter().for_each(|packet| worker.expect4(packet, &NoPrefetch));
            worker.count4(&burst, 0, now, &NoPrefetch);
        }
        let mut flows: Vec<_> =
            flows(&reader).iter().map(|f| (f.key, f.forward.packets, f.forward.frame_bytes)).collect();
        flows.sort_by_key(|(key, ..)| format!("{key:?}"));
        flows
    };
    let plain = counted(&[&[], &[], &[]]);
    assert_eq!((plain.len(), plain.iter().map(|(_, packets, _)| packets).sum::<u64>()), (40, 192));
    // All of them, fewer than come, and others before a new beginning; and more than a burst holds.
    assert_eq!(counted(&[&burst, &burst, &burst]), plain);
    assert_eq!(counted(&[&burst[..7], &burst[..63], &[]]), plain);
    let twice = [&burst[..], &burst].concat();
    assert_eq!(counted(&[&burst, &twice, &burst]), plain);
    let (mut worker, reader, _ended) = small(TableFull::DropNew, true, 64);
    (40..60).for_each(|i| worker.expect4(&four(i), &NoPrefetch));
    worker.begin();
    worker.count4(&burst[..20], 0, 1, &NoPrefetch);
    assert!(flows(&reader).iter().all(|f| (0..20).any(|i| Key4::from_key(&f.key) == Some(four(i).key))));
}

#[test]
fn quiet_flows_end_and_long_ones_are_cut() {
    let (mut worker, reader, mut ended) = small(TableFull::DropNew, true, 64);
    worker.count4(&[four(1), four(2)], 0, 1000, &NoPrefetch);
    age(&mut worker, 8_999);
    assert!(records(&mut ended).is_empty());
    for second in 2..=31 {
        worker.count4(&[four(2)], 0, second * 1000, &NoPrefetch);
    }
    age(&mut worker, 31_000);
    let out = records(&mut ended);
    assert_eq!(out.len(), 2);
    let of = |i: u32| out.iter().find(|r| Key4::from_key(&r.key) == Some(four(i).key)).unwrap();
    assert_eq!((of(1).end, of(1).forward.packets), (Some(EndReason::Idle), 1));
    assert_eq!((of(2).end, of(2).forward.packets, of(2).first), (Some(EndReason::Active), 31, 1_000_000_000));
    // Cut, but not gone: there is nothing to show until it goes on, from zero and from then.
    assert_eq!((reader.counts().flows, flows(&reader).len()), (1, 0));
    worker.count4(&[four(2), four(2)], 0, 35_000, &NoPrefetch);
    let flow = flows(&reader)[0];
    assert_eq!((flow.forward.packets, flow.forward.frame_bytes, flow.first), (2, 132, 35_000_000_000));
    assert_eq!(reader.counts().created, 2);
    // A flow that ends right after it was cut gives no empty record.
    age(&mut worker, 65_000);
    age(&mut worker, 73_000);
    assert_eq!(ends(&records(&mut ended)), [(2, 0, EndReason::Idle)]);
    worker.count4(&[four(2)], 0, 100_000, &NoPrefetch);
    worker.count4(&[four(2)], 0, 130_000, &NoPrefetch);
    age(&mut worker, 130_000);
    age(&mut worker, 138_000);
    assert_eq!(ends(&records(&mut ended)), [(2, 0, EndReason::Active)]);
    assert_eq!((reader.counts().flows, reader.counts().ended), (0, [2, 2, 0, 0, 0]));
}

#[test]
fn packets_of_a_capture_have_times_of_their_own_and_end_what_is_due_by_them() {
    let (mut worker, reader, mut ended) = small(TableFull::DropNew, true, 64);
    let (fin, back) = (tcp(3, FIN | ACK, false), tcp(3, FIN | ACK, true));
    // 1 rests for eight seconds, 2 goes on for half a minute and has a frame that was written late, 3 is closed by both
    // ends and goes on after a second, 4 is quiet at the end.
    let mut seen = vec![(0, four(1)), (7_999, four(1)), (15_999, four(1)), (100, fin), (200, back), (1_200, four(3))];
    seen.extend((0..30).map(|n| (n * 1000, four(2))));
    seen.extend([(28_500, four(2)), (30_000, four(2)), (10, four(4))]);
    // More than one burst.
    seen.extend((0..70).map(|n| (31_000 + n, four(5))));
    let (ticks, packets): (Vec<_>, Vec<_>) = seen.into_iter().unzip();
    captured(&mut worker, &packets, &ticks);
    assert_eq!((worker.latest(), reader.counts().created), (31_069, 7));
    while !worker.flush(64) {}
    assert_eq!((reader.counts().flows, reader.counts().dropped_records), (0, 0));
    let told = |r: Record| {
        let i = (1..6).find(|&i| Key4::from_key(&r.key) == Some(four(i).key)).unwrap();
        (i, r.first / 1_000_000, r.last / 1_000_000, r.forward.packets + r.back.packets, r.end.unwrap())
    };
    let mut told: Vec<_> = records(&mut ended).into_iter().map(told).collect();
    told.sort_by_key(|&(i, first, ..)| (i, first));
    let (idle, forced) = (EndReason::Idle, EndReason::Forced);
    assert_eq!(
        told,
        [
            (1, 0, 7_999, 2, idle),
            (1, 15_999, 15_999, 1, idle),
            (2, 0, 29_000, 31, EndReason::Active),
            (2, 30_000, 30_000, 1, forced),
            (3, 100, 200, 2, EndReason::EndOfFlow),
            (3, 1_200, 1_200, 1, idle),
            (4, 10, 10, 1, idle),
            (5, 31_000, 31_069, 70, forced),
        ]
    );
}

#[test]
fn a_flow_of_a_capture_that_is_due_for_a_cut_at_the_end_ends() {
    let (mut worker, reader, mut ended) = small(TableFull::DropNew, true, 64);
    captured(&mut worker, &[four(2), four(1), four(1), four(1), four(1)], &[0, 0, 7_000, 14_000, 21_000]);
    captured(&mut worker, &[four(1), four(3)], &[28_000, 35_000]);
    while !worker.flush(64) {}
    assert_eq!((reader.counts().flows, reader.counts().ended), (0, [1, 0, 0, 2, 0]));
    assert_eq!(records(&mut ended).len(), 3);
}

#[test]
fn a_stepped_wall_clock_moves_no_flow_and_ends_none() {
    const HOUR: u64 = 3_600_000_000_000;
    const S: u64 = 1_000_000_000;
    let (mut worker, mut reader, mut ended) = small(TableFull::DropNew, true, 64);
    let mut base = reader.timebase();
    let start = 10 * HOUR;
    let mut step = |worker: &mut Worker<Heap>, ended: &mut EndedReader, ticks: u64, by: i64| {
        base.follow(Timebase::new(
            ticks,
            (start + ticks * 1_000_000).checked_add_signed(by * HOUR as i64).unwrap(),
            HZ,
        ));
        reader.anchor(base);
        ended.anchor(base);
        // It is heard of, and nothing is due.
        worker.age(ticks, 16);
    };
    step(&mut worker, &mut ended, 500, 0);
    worker.count4(&[four(1), four(2)], 0, 1000, &NoPrefetch);
    step(&mut worker, &mut ended, 2000, 1);
    worker.count4(&[four(2), four(3)], 0, 3000, &NoPrefetch);
    for second in 4..=32 {
        worker.count4(&[four(2)], 0, second * 1000, &NoPrefetch);
    }
    age(&mut worker, 31_000);
    let told = |ended: &mut EndedReader, i: u32| {
        let mut told: Vec<_> = records(ended);
        told.retain(|r| Key4::from_key(&r.key) == Some(four(i).key));
        told.iter().map(|r| (r.first, r.last, r.end)).collect::<Vec<_>>()
    };
    // By the clock it began by, though it went on after the step.
    assert_eq!(told(&mut ended, 2), [(start + S, start + 32 * S, Some(EndReason::Active))]);
    // Its next record is by the new clock, which is ahead; the clock is then stepped two hours back.
    worker.count4(&[four(2)], 0, 40_000, &NoPrefetch);
    step(&mut worker, &mut ended, 41_000, -1);
    worker.count4(&[four(2), four(4)], 0, 42_000, &NoPrefetch);
    age(&mut worker, 70_000);
    let all = records(&mut ended);
    let of =
        |i: u32| all.iter().find(|r| Key4::from_key(&r.key) == Some(four(i).key)).map(|r| (r.first, r.last)).unwrap();
    assert_eq!(of(2), (start + HOUR + 40 * S, start + HOUR + 42 * S));
    assert_eq!(of(4), (start - HOUR + 42 * S, start - HOUR + 42 * S));
}

#[test]
fn tcp_ends_a_flow() {
    for (biflow, frames, closed) in [
        (true, &[(FIN, false), (FIN, true)][..], true),
        (true, &[(FIN, false), (FIN | ACK, false)], false),
        (true, &[(FIN, true)], false),
        (true, &[(ACK, true), (FIN, true), (FIN | ACK, false), (ACK, true)], true),
        (true, &[(RST, true)], true),
        (true, &[(ACK, false), (RST | ACK, true)], true),
        (false, &[(FIN, false)], true),
        (false, &[(ACK, false), (FIN | ACK, false)], true),
        (true, &[(SYN, false), (SYN, false)], false),
    ] {
        let (mut worker, reader, mut ended) = small(TableFull::DropNew, biflow, 64);
        for &(flags, reversed) in frames {
            worker.count4(&[tcp(1, flags, reversed)], 0, 1000, &NoPrefetch);
        }
        age(&mut worker, 1999);
        assert_eq!(reader.counts().flows, 1, "late frames are still counted: {frames:?}");
        age(&mut worker, 2000);
        let out = records(&mut ended);
        assert_eq!(out.iter().any(|r| r.end == Some(EndReason::EndOfFlow)), closed, "{biflow} {frames:?}");
        assert_eq!(
            out.iter().map(|r| r.forward.packets + r.back.packets).sum::<u64>(),
            [0, frames.len() as u64][usize::from(closed)]
        );
    }
}

#[test]
fn a_new_connection_on_old_ports_is_a_new_record() {
    let (mut worker, reader, mut ended) = small(TableFull::DropNew, true, 64);
    worker.count4(&[tcp(1, SYN, false), tcp(1, RST, true)], 0, 1000, &NoPrefetch);
    worker.count4(&[tcp(1, SYN, true).with(|f| f.tos = 4), tcp(1, ACK, false)], 1, 1500, &NoPrefetch);
    let out = records(&mut ended);
    assert_eq!(ends(&out), [(1, 1, EndReason::EndOfFlow)]);
    assert_eq!((out[0].tcp_flags(), out[0].ingress), (SYN | RST, 0));
    let [flow] = flows(&reader)[..] else { panic!() };
    assert_eq!((flow.tcp_flags(), flow.ingress, flow.tos, flow.first), (SYN | ACK, 1, 4, 1_500_000_000));
    assert_eq!((flow.forward.packets, flow.back.packets), (1, 1));
    assert_eq!(Key4::from_key(&flow.key).unwrap(), four(1).key.flipped());
    // Nothing has closed this one.
    age(&mut worker, 4000);
    assert_eq!(reader.counts().flows, 1);
}

#[test]
fn full_is_refused_or_the_oldest_goes() {
    let refused = |full| {
        let (mut worker, reader, mut ended) = small(full, true, 1 << 16);
        for i in 0..20_000u32 {
            worker.count4(&[four(i)], 0, 1000 + u64::from(i), &NoPrefetch);
        }
        let (counts, places) = (reader.counts(), 1280);
        assert!(counts.flows > places * 97 / 100 && counts.flows <= places, "{counts:?}");
        assert_eq!(flows(&reader).len() as u64, counts.flows);
        (counts, flows(&reader), records(&mut ended))
    };
    let (counts, left, out) = refused(TableFull::DropNew);
    assert_eq!((counts.flows + counts.refused_packets, counts.evicted, out.len()), (20_000, 0, 0));
    // All there was room for in the beginning is still there.
    assert!((0..1024).all(|i| left.iter().any(|f| Key4::from_key(&f.key) == Some(four(i).key))));
    let (counts, left, out) = refused(TableFull::Evict);
    assert_eq!((counts.refused_packets, counts.created, counts.evicted), (0, 20_000, out.len() as u64));
    assert_eq!(counts.flows + counts.evicted, 20_000);
    assert!(out.iter().all(|r| r.end == Some(EndReason::LackOfResources)));
    // The oldest of 32 at each time: the middle of those left is among the last few.
    let mut last: Vec<u64> = left.iter().map(|f| f.last / 1_000_000).collect();
    last.sort_unstable();
    assert!(last[last.len() / 2] > 1000 + 20_000 - 1280, "{:?}", last[last.len() / 2]);
    assert!(last[0] > 1000 + 20_000 - 4 * 1280, "{:?}", last[0]);
}

#[test]
fn counters_never_wrap() {
    const HUGE: u64 = 4;
    for (packets, forward, back) in
        [(0x7fff_ffff_u64 << 32, 0, 0), (0x7fff_ffff, 0, 0), (5, (1 << 37) - 48, 0), (5, 0, (1 << 37) - 1)]
    {
        let (mut worker, reader, mut ended) = small(TableFull::DropNew, true, 64);
        worker.count4(&[four(1)], 0, 1000, &NoPrefetch);
        let mut place = 0;
        reader.scan(0, 2000, &mut |at, _| place = at as usize);
        let add = |word: usize, n: u64| {
            reader.shared.memory[8 * place + word].fetch_add(n, sync::Ordering::Relaxed);
        };
        add(5, packets);
        add(6, forward);
        add(7, back);
        let most = HUGE * u64::from(PackedFacts::MOST_IP);
        let huge =
            |reversed| four(1).with(|f| (f.ip_bytes, f.frame_bytes, f.reversed) = (u32::MAX, u32::MAX, reversed));
        for _ in 0..HUGE {
            worker.count4(&[huge(false), huge(true)], 0, 2000, &NoPrefetch);
        }
        let mut all = flows(&reader);
        all.extend(records(&mut ended));
        assert_eq!((all.len(), reader.counts().ended), (2, [0, 1, 0, 0, 0]));
        let sum = |f: fn(&Record) -> u64| all.iter().map(f).sum::<u64>();
        assert_eq!(sum(|r| r.forward.packets), (packets >> 32) + 1 + HUGE);
        assert_eq!(sum(|r| r.back.packets), (packets & 0xffff_ffff) + HUGE);
        assert_eq!(sum(|r| r.forward.ip_bytes), forward + 47 + most);
        assert_eq!(sum(|r| r.back.ip_bytes), back + most);
        assert_eq!(sum(|r| r.forward.frame_bytes), forward + 65 + most);
        assert_eq!(sum(|r| r.back.frame_bytes), back + most);
    }
}

#[test]
fn bytes_around_the_packets_are_exact_however_many() {
    let frame = |i, around: u32, reversed| four(i).with(|f| (f.frame_bytes, f.reversed) = (46 + i + around, reversed));
    let bytes = |r: &Record| [r.forward, r.back].map(|way| (way.packets, way.ip_bytes, way.frame_bytes, way.tcp_flags));
    let (mut worker, reader, mut ended) = small(TableFull::DropNew, true, 64);
    let mut sums = [[0u64; 2]; 2];
    for n in 0..40_000u32 {
        // Much around, little around, the most that counts, and more than that.
        let (around, counts) = [(14, 14), (9000, 9000), (0, 0), (65_535, 65_535), (70_000, 65_535)][n as usize % 5];
        let back = n % 3 == 0;
        worker.count4(&[frame(1, around, back)], 0, 1000, &NoPrefetch);
        let sum = &mut sums[usize::from(back)];
        (sum[0], sum[1]) = (sum[0] + 1, sum[1] + 47 + counts);
        if n % 997 == 0 || n > 39_990 {
            // Whose first frame goes back: that is forward here.
            let want = [sums[1], sums[0]]
                .map(|[packets, bytes]| (packets, 47 * packets, bytes, if packets > 0 { ACK } else { 0 }));
            assert_eq!(bytes(&flows(&reader)[0]), want);
        }
    }
    worker.count4(&[frame(1, 14, true)], 0, 25_000, &NoPrefetch);
    let live = bytes(&flows(&reader)[0]);
    // Cut, it comes out whole, and goes on from zero, with the flags that it had.
    age(&mut worker, 31_500);
    let out = records(&mut ended);
    assert_eq!((out.len(), bytes(&out[0])), (1, live));
    worker.count4(&[frame(1, 20, true)], 0, 32_000, &NoPrefetch);
    assert_eq!(bytes(&flows(&reader)[0]), [(1, 47, 67, ACK), (0, 0, 0, ACK)]);
    // The next flow in its place begins with nothing.
    (0..3).for_each(|_| worker.count4(&[frame(1, 60_000, false)], 0, 33_000, &NoPrefetch));
    age(&mut worker, 80_000);
    assert_eq!(records(&mut ended).len(), 1);
    for i in 0..1000 {
        worker.count4(&[frame(i, 1, false)], 0, 81_000, &NoPrefetch);
    }
    assert!(flows(&reader).iter().all(|r| r.forward.frame_bytes == r.forward.ip_bytes + 1));
    // IPv6 as well.
    let (mut worker, reader, _ended) = small(TableFull::DropNew, true, 64);
    for _ in 0..1000 {
        worker.count6(&[six(1).with(|f| f.frame_bytes = 9051)], 0, 1000, &NoPrefetch);
    }
    let flow = flows(&reader)[0];
    assert_eq!((flow.forward.ip_bytes, flow.forward.frame_bytes), (51_000, 9_051_000));
}

#[test]
fn records_that_nobody_takes_are_dropped_and_counted() {
    let (mut worker, reader, mut ended) = small(TableFull::DropNew, true, 40);
    worker.count4(&(0..100).map(four).collect::<Vec<_>>(), 0, 0, &NoPrefetch);
    age(&mut worker, 9000);
    assert_eq!((reader.counts().ended[0], reader.counts().dropped_records), (100, 60));
    assert_eq!(records(&mut ended).len(), 40);
    // The flush waits for room: nothing is lost as long as somebody takes.
    worker.count4(&(0..500).map(four).collect::<Vec<_>>(), 0, 9000, &NoPrefetch);
    worker.count6(&(0..200).map(six).collect::<Vec<_>>(), 0, 9000, &NoPrefetch);
    let mut out = Vec::new();
    while !worker.flush(100) {
        out.extend(records(&mut ended));
    }
    assert!(!ended.is_closed());
    drop(worker);
    assert!(ended.is_closed());
    out.extend(records(&mut ended));
    assert_eq!((out.len(), reader.counts().dropped_records), (700, 60));
    assert!(out.iter().all(|r| r.end == Some(EndReason::Forced)));
    assert!(flows(&reader).is_empty());
}

#[test]
fn wrong_specs_say_what_is_legal() {
    let base = TableSpec::new(1024);
    let second = Duration::from_secs(1);
    let got = (1 << 24) + 1;
    let (half, day) = (second / 2, second * 86_401);
    let wrong = [
        (TableSpec::new(1023), TableError::Flows { got: 1023, version: "IPv4", least: 1024 }),
        (TableSpec { flows6: got, ..base.clone() }, TableError::Flows { got, version: "IPv6", least: 0 }),
        (TableSpec { idle: half, ..base.clone() }, TableError::Timeout { which: "idle", got: half }),
        (TableSpec { active: day, ..base.clone() }, TableError::Timeout { which: "active", got: day }),
    ];
    for (spec, expected) in &wrong {
        assert_eq!(table(spec, Heap::new(0), Timebase::now(0, HZ), 0).map(drop).as_ref(), Err(expected));
    }
    insta::assert_snapshot!(wrong.map(|(_, error)| error.to_string()).join("\n"), @r"
    a table for 1023 IPv4 flows: must be 1024 to 16777216 (2^24)
    a table for 16777217 IPv6 flows: must be 0 to 16777216 (2^24)
    idle timeout of 500ms: must be 1 s to 86400 s (one day)
    active timeout of 86401s: must be 1 s to 86400 s (one day)
    ");
    let error = table(&base, Heap::new(8), Timebase::now(0, HZ), 0).map(drop).unwrap_err();
    assert_eq!(error, TableError::Memory { need: base.words(), got: 8 });
    // Without room for IPv6 there is none.
    let none = TableSpec { flows6: 0, ..base };
    for full in [TableFull::Evict, TableFull::DropNew] {
        let spec = TableSpec { full, ..none.clone() };
        let (mut worker, reader, _ended) = table(&spec, Heap::new(spec.words()), Timebase::now(0, HZ), 0).unwrap();
        worker.count6(&[six(1), six(1)], 0, 0, &NoPrefetch);
        assert_eq!((reader.counts().refused_packets, reader.places()), (2, 1280));
    }
}

/// With the sweep as it is: what was closed is a record a second of quiet and a round later, however long the idle timeout.
#[test]
fn a_closed_flow_is_recorded_within_a_round() {
    for (seconds, places, idle) in
        [(1.0, 65_536, 30.0), (2.5, 1_310_720, 30.0), (7.5, 20_971_520, 30.0), (1.0, 1_280, 3600.0)]
    {
        assert_eq!(round_s(places, idle), seconds, "{places} places, {idle} s");
    }
    let idle = Duration::from_secs(3600);
    let spec = TableSpec { idle, active: idle, ..TableSpec::new(1024) };
    let (mut worker, _reader, mut ended) = table(&spec, Heap::new(spec.words()), Timebase::new(0, 0, HZ), 64).unwrap();
    let reset = four(1).with(|f| f.tcp_flags = RST);
    worker.count4(&[reset], 0, 500, &NoPrefetch);
    let mut told = None;
    for now in (500..).step_by(10).take_while(|now| *now <= 5000) {
        worker.age(now, 256);
        told = told.or(ended.pop().map(|record| (now, record.end)));
    }
    let (now, end) = told.unwrap();
    assert!((1500..=2510).contains(&now), "at {now}");
    assert_eq!(end, Some(EndReason::EndOfFlow));
}

#[test]
fn ageing_says_how_many_places_it_looked_at() {
    let (mut worker, _, _) = small(TableFull::Evict, true, 0);
    assert_eq!(worker.age(0, 256), 0);
    // Sixteen at a time.
    assert_eq!(worker.age(1000 * HZ, 250), 256);
}
