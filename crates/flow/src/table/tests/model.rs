//! Whatever comes: each packet and each byte is in exactly one of the flows in the table, the records that came out, and
//! what was refused.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    /// Bursts of packets of these flows, flags and directions.
    Four(Vec<(u32, u16, bool)>),
    Six(Vec<(u32, u16, bool)>),
    /// New flows, so many, from this one on.
    Flood(u32, u32),
    Age(u64, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let packets = || {
        let flags = prop_oneof![4 => Just(0), 4 => Just(ACK), 1 => 0..0x200u16];
        prop::collection::vec((0..40u32, flags, any::<bool>()), 1..150)
    };
    prop_oneof![
        4 => packets().prop_map(Step::Four),
        2 => packets().prop_map(Step::Six),
        1 => (100..9000u32, 1..1500u32).prop_map(|(from, n)| Step::Flood(from, n)),
        3 => (1..9000u64, 1..2000usize).prop_map(|(ticks, budget)| Step::Age(ticks, budget)),
    ]
}

/// Packets and bytes each way, in the key's own direction and against it.
type Sum = [u64; 4];

fn add(sums: &mut HashMap<Key, Sum>, key: Key, sum: Sum) {
    let to = sums.entry(key).or_default();
    to.iter_mut().zip(sum).for_each(|(to, n)| *to += n);
}

/// A record's sums under the key as the packets had it, which has the lower address first where it can be reversed.
fn add_record(sums: &mut HashMap<Key, Sum>, record: &Record) {
    let (f, b) = (record.forward, record.back);
    let flipped = match (Key4::from_key(&record.key), Key6::from_key(&record.key)) {
        (Some(key), _) => Key::from(key.flipped()),
        (_, Some(key)) => key.flipped().into(),
        _ => unreachable!(),
    };
    if record.key.addresses.src() <= record.key.addresses.dst() {
        add(sums, record.key, [f.packets, f.frame_bytes, b.packets, b.frame_bytes]);
    } else {
        add(sums, flipped, [b.packets, b.frame_bytes, f.packets, f.frame_bytes]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_packet_is_in_exactly_one_place(
        steps in prop::collection::vec(step(), 1..30),
        evict in any::<bool>(), biflow in any::<bool>(), forced in any::<bool>(),
    ) {
        let full = if evict { TableFull::Evict } else { TableFull::DropNew };
        let (mut worker, reader, mut ended) = small(full, biflow, 1 << 16);
        let (mut sent, mut out) = (HashMap::new(), HashMap::new());
        let mut now = 0;
        let sum = |(bytes, back): (u32, bool)| if back { [0, 0, 1, bytes.into()] } else { [1, bytes.into(), 0, 0] };
        for step in steps {
            match step {
                Step::Four(packets) => {
                    let packets: Vec<_> = packets
                        .iter()
                        .map(|&(i, flags, back)| four(i).with(|f| (f.tcp_flags, f.reversed) = (flags, back && biflow)))
                        .collect();
                    packets.iter().for_each(|p| add(&mut sent, p.key.into(), sum(seen(p.facts))));
                    worker.count4(&packets, 1, now, &NoPrefetch);
                }
                Step::Six(packets) => {
                    let packets: Vec<_> = packets
                        .iter()
                        .map(|&(i, flags, back)| six(i).with(|f| (f.tcp_flags, f.reversed) = (flags, back && biflow)))
                        .collect();
                    packets.iter().for_each(|p| add(&mut sent, p.key.into(), sum(seen(p.facts))));
                    worker.count6(&packets, 1, now, &NoPrefetch);
                }
                Step::Flood(from, n) => {
                    let packets: Vec<_> = (from..from + n).map(four).collect();
                    packets.iter().for_each(|p| add(&mut sent, p.key.into(), sum(seen(p.facts))));
                    worker.count4(&packets, 2, now, &NoPrefetch);
                }
                Step::Age(ticks, budget) => {
                    now += ticks;
                    prop_assert!(worker.age(now, budget) <= budget.next_multiple_of(16));
                }
            }
            // The shown state adds up at any time.
            let live = flows(&reader);
            prop_assert!(live.len() as u64 <= reader.counts().flows);
            prop_assert!(live.iter().all(|f| f.first <= f.last && f.end.is_none()));
        }
        if forced {
            while !worker.flush(64) {}
            prop_assert_eq!(reader.counts().flows, 0);
        }
        let counts = reader.counts();
        prop_assert_eq!(&counts, worker.counts());
        let ended = records(&mut ended);
        for (reason, n) in (1u8..).zip(counts.ended) {
            prop_assert_eq!(ended.iter().filter(|r| r.end.map(|e| e as u8) == Some(reason)).count() as u64, n);
        }
        prop_assert_eq!(counts.evicted == 0 || evict, true);
        prop_assert_eq!(counts.dropped_records, 0);
        flows(&reader).iter().chain(&ended).for_each(|record| add_record(&mut out, record));
        let (mut packets, mut bytes) = (counts.refused_packets, counts.refused_bytes);
        for (key, sent) in &sent {
            let out = out.remove(key).unwrap_or_default();
            if counts.refused_packets == 0 {
                prop_assert_eq!(&out, sent, "{:?}", key);
            }
            prop_assert!(out.iter().zip(sent).all(|(out, sent)| out <= sent), "{:?}: {:?} of {:?}", key, out, sent);
            packets += out[0] + out[2];
            bytes += out[1] + out[3];
        }
        prop_assert!(out.is_empty());
        let all = sent.values().fold([0; 2], |[p, b], s| [p + s[0] + s[2], b + s[1] + s[3]]);
        prop_assert_eq!([packets, bytes], all);
    }
}
