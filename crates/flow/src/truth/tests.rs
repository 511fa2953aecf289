//! Tests of the score.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::{Addresses, EndReason, Key, Record, Way};

const FRAME: u64 = 60;
const SECOND: u64 = 1_000_000_000;

fn key(n: u64) -> Key {
    let src = (0x0a00_0000 + n as u32).into();
    let addresses = Addresses::V4 { src, dst: [10, 255, 0, 1].into() };
    Key { addresses, sport: 1000, dport: 7, protocol: 17, port: 0, scope: None, bottom: false }
}

/// As an exporter says it that counts one kind of bytes.
fn counted(packets: u64, bytes: u64) -> Way {
    Way { packets, ip_bytes: bytes, ..Way::default() }
}

fn record(n: u64, packets: u64, first: u64, last: u64, frame: u64) -> Record {
    Record {
        key: Key { port: 3, scope: Some(9), ..key(n) },
        ingress: 3,
        tos: 0,
        forward: counted(packets, packets * frame),
        back: Way::default(),
        first,
        last,
        end: Some(EndReason::Idle),
        details: None,
    }
}

/// Flow `n` has `sizes[n]` packets, one per second, the first at 1 s and `n` ns. A record holds up to `each` packets.
fn perfect(sizes: &[u64], each: u64) -> (Listed, Vec<Record>) {
    let (mut expected, mut records) = (Listed::default(), Vec::new());
    for (n, &packets) in (0..).zip(sizes) {
        let at = |i: u64| SECOND + n + i * SECOND;
        expected.push(key(n), Sent { packets, bytes: packets * FRAME, first: at(0), last: at(packets - 1) });
        let mut from = 0;
        while from < packets {
            let to = (from + each).min(packets);
            records.push(record(n, to - from, at(from), at(to - 1), FRAME));
            from = to;
        }
    }
    (expected, records)
}

fn score(expected: &Listed, records: &[Record]) -> Score {
    let mut recorded = Recorded::new(1 << 20);
    records.iter().for_each(|record| recorded.add(record, |key| expected.find(key)));
    Score::new(recorded, expected)
}

#[test]
fn the_same_is_perfect() {
    let (expected, records) = perfect(&[1, 5, 3], 2);
    let score = score(&expected, &records);
    assert!(score.perfect() && score.nothing_missed() && score.examples.is_empty());
    assert_eq!(score.flows, Flows { sent: 3, exact: 3, ..Flows::default() });
    assert_eq!(score.packets, Packets { sent: 9, recorded: 9, ..Packets::default() });
    assert_eq!(score.first_error, Some(Spread { flows: 3, min_ns: 0, median_ns: 0, p99_abs_ns: 0, max_ns: 0 }));
    assert_eq!((score.records, score.octets), (6, Octets::Frame));
}

#[test]
fn nothing_at_all_is_all_missed() {
    let (expected, _) = perfect(&[1, 5], 2);
    let score = score(&expected, &[]);
    assert_eq!((score.flows.missed, score.packets.missed, score.first_error), (2, 6, None));
    assert!(!score.nothing_missed() && !score.perfect());
    assert_eq!(score.packets.worst, 0);
}

#[test]
fn bytes_may_be_of_packets_or_of_frames() {
    let (expected, records) = perfect(&[4, 2], 9);
    for (frame, octets) in [(FRAME, Octets::Frame), (FRAME - 14, Octets::Ip), (FRAME + 4, Octets::FrameAndFcs)] {
        let mut other = records.clone();
        other.iter_mut().for_each(|r| r.forward.ip_bytes = r.forward.packets * frame);
        let score = score(&expected, &other);
        assert_eq!((score.octets, score.flows.exact, score.bytes.sent), (octets, 2, 6 * frame));
    }
    let mut other = records;
    other[0].forward.ip_bytes += 1;
    let score = score(&expected, &other);
    assert_eq!((score.flows.miscounted, score.packets.missed, score.bytes.extra, score.bytes.worst), (1, 0, 1, 1));
}

#[test]
fn joined_directions_count_apart() {
    let (expected, mut records) = perfect(&[3], 9);
    let r = &mut records[0];
    r.key = Key { sport: 7, dport: 1000, ..r.key };
    if let Addresses::V4 { src, dst } = r.key.addresses {
        r.key.addresses = Addresses::V4 { src: dst, dst: src };
    }
    (r.forward, r.back) = (counted(1, 60), r.forward);
    let score = score(&expected, &records);
    assert_eq!((score.flows.exact, score.invented.records, score.invented.packets), (1, 1, 1));
}

#[test]
fn what_is_above_the_limit_is_said() {
    let (expected, records) = perfect(&[1, 1, 1], 9);
    let mut recorded = Recorded::new(2);
    records.iter().for_each(|r| recorded.add(r, |key| expected.find(key)));
    let score = Score::new(recorded, &expected);
    assert!(score.beyond == 1 && !score.nothing_missed() && !score.perfect());
}

/// What may go wrong with a flow.
#[derive(Debug, Clone, Copy)]
enum Wrong {
    Nothing,
    /// One of its records is lost.
    Drop(usize),
    /// A copy of one of its records arrives, shifted by this time if the record is longer than an instant.
    Again(usize),
    /// One of its records has more or fewer packets.
    Miscount(usize, i64),
    /// All its records are early or late by this time.
    Shift(i64),
}

fn wrong() -> impl Strategy<Value = Wrong> {
    prop_oneof![
        3 => Just(Wrong::Nothing),
        1 => any::<usize>().prop_map(Wrong::Drop),
        1 => any::<usize>().prop_map(Wrong::Again),
        1 => (any::<usize>(), prop_oneof![-4i64..0, 1i64..9]).prop_map(|(at, n)| Wrong::Miscount(at, n)),
        1 => (-900_000_000i64..900_000_000).prop_map(Wrong::Shift),
    ]
}

proptest! {
    #[test]
    fn every_corruption_is_found_and_nothing_else(
        flows in prop::collection::vec((1u64..20, wrong()), 1..40),
        each in 1u64..8, invented in 0u64..5, seed: u64,
    ) {
        let sizes: Vec<u64> = flows.iter().map(|f| f.0).collect();
        let (expected, records) = perfect(&sizes, each);
        let (mut want, mut packets) = (Flows::default(), Packets::default());
        let (mut said, mut duplicates, mut shifts) = (Vec::new(), 0, Vec::new());
        for (n, &(size, wrong)) in (0..).zip(&flows) {
            let mut own: Vec<Record> = records.iter().filter(|r| r.key.addresses == key(n).addresses).copied().collect();
            let pick = |at: usize| at % own.len();
            want.sent += 1;
            packets.sent += size;
            match wrong {
                Wrong::Nothing => { want.exact += 1; shifts.push(0); }
                Wrong::Drop(at) => {
                    let gone = own.remove(pick(at)).forward.packets;
                    packets.missed += gone;
                    if own.is_empty() { want.missed += 1 } else {
                        want.miscounted += 1;
                        packets.worst = packets.worst.max(gone);
                    }
                }
                Wrong::Again(at) => {
                    own.push(own[pick(at)]);
                    want.duplicated += 1;
                    duplicates += 1;
                    packets.duplicated += own[own.len() - 1].forward.packets;
                    shifts.push(0);
                }
                Wrong::Miscount(at, by) => {
                    let at = pick(at);
                    let way = &mut own[at].forward;
                    let now = way.packets.saturating_add_signed(by);
                    if now == 0 || now == way.packets {
                        want.exact += 1;
                        shifts.push(0);
                    } else {
                        want.miscounted += 1;
                        packets.missed += way.packets.saturating_sub(now);
                        packets.extra += now.saturating_sub(way.packets);
                        packets.worst = packets.worst.max(way.packets.abs_diff(now));
                        *way = counted(now, now * FRAME);
                    }
                }
                Wrong::Shift(by) => {
                    own.iter_mut().for_each(|r| {
                        r.first = r.first.saturating_add_signed(by);
                        r.last = r.last.saturating_add_signed(by);
                    });
                    want.exact += 1;
                    shifts.push(by);
                }
            }
            said.extend(own);
        }
        packets.recorded = packets.sent - packets.missed + packets.extra;
        said.extend((0..invented).map(|n| record(flows.len() as u64 + n, 2, SECOND, SECOND, FRAME)));
        // Records arrive in any order.
        let mut x = seed | 1;
        for i in (1..said.len()).rev() {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            said.swap(i, (x >> 33) as usize % (i + 1));
        }
        let score = score(&expected, &said);
        prop_assert_eq!(score.flows, want);
        prop_assert_eq!(score.packets, packets);
        prop_assert_eq!(score.duplicate_records, duplicates);
        prop_assert_eq!((score.invented.records, score.invented.packets), (invented, 2 * invented));
        prop_assert_eq!(score.perfect(), want.exact == want.sent && invented == 0);
        shifts.sort_unstable();
        let ends = |spread: Option<Spread>| spread.map(|s| (s.flows, s.min_ns, s.median_ns, s.max_ns));
        let true_ends = shifts.first().map(|min| {
            (shifts.len() as u64, *min, shifts[(shifts.len() - 1) / 2], shifts[shifts.len() - 1])
        });
        prop_assert_eq!(ends(score.first_error), true_ends);
        prop_assert_eq!(ends(score.last_error), true_ends);
    }

    #[test]
    fn any_records_are_survived(
        records in prop::collection::vec((0u64..5, any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()), 0..60)
    ) {
        let (expected, _) = perfect(&[1, 2, 3], 2);
        let said: Vec<Record> = records.iter().map(|&(n, packets, first, last, bytes)| Record {
            forward: counted(packets, bytes), ..record(n, 0, first, last, 0)
        }).collect();
        let score = score(&expected, &said);
        let Flows { sent, exact, missed, duplicated, miscounted } = score.flows;
        prop_assert_eq!(sent, exact + missed + duplicated + miscounted);
    }
}
