//! The forwarding database: learning, ageing, moving, and many threads.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use proptest::prelude::*;

use super::*;

fn mac(i: u64) -> MacAddr {
    let [_, _, _, a, b, c, d, e] = i.to_be_bytes();
    MacAddr([2, a, b, c, d, e])
}

/// MAC addresses that all fall into one bucket.
fn crowd(fdb: &Fdb, n: usize) -> Vec<MacAddr> {
    let bucket = |i| fdb.place(7, mac(i)).line >> 1;
    (0..).filter(|&i| bucket(i) == bucket(0)).take(n).map(mac).collect()
}

#[test]
fn a_station_is_learned_moves_and_ages() {
    let fdb = Fdb::new(100).with_ageing(10);
    let (a, domain) = (mac(1), 4095);
    assert_eq!((fdb.lookup(domain, a, 0), fdb.ageing_s(), fdb.len(0)), (None, 10, 0));
    assert_eq!(fdb.learn(domain, a, 65535, 0), Learned::New);
    assert_eq!(fdb.learn(domain, a, 65535, 0), Learned::Known);
    assert_eq!((fdb.lookup(domain, a, 10), fdb.lookup(domain, a, 11)), (Some(65535), None));
    assert_eq!((fdb.lookup(0, a, 0), fdb.lookup(domain, mac(2), 0)), (None, None));
    assert_eq!(fdb.learn(domain, a, 65535, 5), Learned::Known);
    assert_eq!(fdb.lookup(domain, a, 15), Some(65535));
    assert_eq!(fdb.learn(domain, a, 3, 4), Learned::Moved, "on an lcore whose clock is a second behind");
    let entry = Entry { domain, mac: a, endpoint: 3, age_s: Some(2) };
    assert_eq!(fdb.entries(7).collect::<Vec<_>>(), [entry]);
    assert_eq!(fdb.learn(domain, a, 4, 16), Learned::New, "aged out, so not moved");
    assert_eq!(fdb.lookup(domain, a, 16), Some(4));
    assert!(fdb.remove(domain, a) && !fdb.remove(domain, a));
    assert_eq!((fdb.lookup(domain, a, 16), fdb.len(16)), (None, 0));
    let wraps = Fdb::new(1).with_ageing(10);
    wraps.learn(0, a, 1, u32::MAX - 2);
    assert_eq!((wraps.lookup(0, a, 7), wraps.lookup(0, a, 8)), (Some(1), None));
}

#[test]
fn static_entries_neither_move_nor_age() {
    let fdb = Fdb::new(100).with_ageing(10);
    fdb.learn(1, mac(1), 5, 0);
    assert!(fdb.set_static(1, mac(1), 6) && fdb.set_static(1, mac(2), 7));
    assert_eq!(fdb.learn(1, mac(1), 5, 100), Learned::Known);
    assert_eq!(fdb.learn(1, mac(1), 6, 100), Learned::Known);
    fdb.learn(1, mac(3), 6, 100);
    fdb.learn(2, mac(4), 6, 100);
    fdb.learn(2, mac(5), 5, 100);
    assert_eq!((fdb.flush(Flush::Endpoint(6)), fdb.flush(Flush::Domain(2)), fdb.flush(Flush::All)), (2, 1, 0));
    let mut entries: Vec<_> = fdb.entries(100).collect();
    entries.sort();
    let fixed = |i, endpoint| Entry { domain: 1, mac: mac(i), endpoint, age_s: None };
    assert_eq!(entries, [fixed(1, 6), fixed(2, 7)]);
    assert!(fdb.set_static(1, mac(1), 9), "a static entry is replaced by another");
    assert_eq!(fdb.lookup(1, mac(1), 10_000), Some(9));
}

#[test]
fn a_full_bucket_takes_others_only_for_the_aged() {
    let fdb = Fdb::new(1).with_ageing(10);
    let macs = crowd(&fdb, 11);
    for (i, &mac) in macs.iter().enumerate() {
        let want = if i < 2 * SLOTS { Learned::New } else { Learned::Full };
        assert_eq!(fdb.learn(7, mac, i as u16, 5), want, "{i}");
    }
    let known = |now| macs.iter().filter(|&&mac| fdb.lookup(7, mac, now).is_some()).count();
    assert_eq!((known(5), fdb.len(5)), (10, 10));
    assert_eq!(fdb.learn(7, macs[0], 0, 14), Learned::Known);
    assert_eq!(fdb.learn(7, macs[10], 10, 16), Learned::New);
    assert_eq!((fdb.lookup(7, macs[0], 16), fdb.lookup(7, macs[10], 16), known(16)), (Some(0), Some(10), 2));
    // The last one ages too, but for the one that was refreshed: static ones take any slot, down to the last.
    assert!(macs[..10].iter().all(|&mac| fdb.set_static(7, mac, 1)));
    assert!(!fdb.set_static(7, macs[10], 1));
    assert_eq!(fdb.learn(7, macs[10], 1, 99), Learned::Full);
    assert_eq!((known(1_000), fdb.flush(Flush::All)), (10, 0));
}

#[test]
fn as_many_stations_as_asked_for_find_room() {
    let fdb = Fdb::new(65_536);
    let full = (0..65_536).filter(|&i| fdb.learn(0, mac(i), 1, 0) == Learned::Full).count();
    assert_eq!(full, 0, "numbered one by one");
    let scattered = Fdb::new(65_536);
    let scatter = |i: u64| mac(i.wrapping_mul(0x5851_f42d_4c95_7f2d) >> 7);
    let full = (0..65_536).filter(|&i| scattered.learn(0, scatter(i), 1, 0) == Learned::Full).count();
    assert!(full < 131, "{full} of 65536");
    assert_eq!(scattered.len(0), 65_536 - full);
}

#[derive(Debug, Clone)]
enum Op {
    Learn(u16, u64, u16),
    Fix(u16, u64, u16),
    Remove(u16, u64),
    Flush(Flush),
    Wait(u32),
}

fn op() -> impl Strategy<Value = Op> {
    let key = || (0..3u16, 0..9u64);
    prop_oneof![
        8 => (key(), 0..4u16).prop_map(|((domain, mac), endpoint)| Op::Learn(domain, mac, endpoint)),
        1 => (key(), 0..4u16).prop_map(|((domain, mac), endpoint)| Op::Fix(domain, mac, endpoint)),
        1 => key().prop_map(|(domain, mac)| Op::Remove(domain, mac)),
        1 => prop_oneof![
            Just(Flush::All),
            (0..4u16).prop_map(Flush::Endpoint),
            (0..3u16).prop_map(Flush::Domain)
        ].prop_map(Op::Flush),
        2 => (0..8u32).prop_map(Op::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn equal_to_a_map(ops in proptest::collection::vec(op(), 1..80)) {
        let fdb = Fdb::new(1).with_ageing(10);
        // Three stations of each domain share a bucket with others; the rest are anywhere.
        let crowd = crowd(&fdb, 3);
        let station = |i: u64| crowd.get(i as usize).copied().unwrap_or(mac(i << 20));
        let mut oracle: HashMap<(u16, MacAddr), (u16, Option<u32>)> = HashMap::new();
        let mut now = 0;
        for op in ops {
            match op {
                Op::Learn(domain, i, endpoint) => {
                    let old = oracle.get(&(domain, station(i))).copied();
                    let (want, new) = match old {
                        None => (Learned::New, (endpoint, Some(now))),
                        Some((_, None)) => (Learned::Known, old.unwrap()),
                        Some((at, _)) if at == endpoint => (Learned::Known, (endpoint, Some(now))),
                        Some(_) => (Learned::Moved, (endpoint, Some(now))),
                    };
                    oracle.insert((domain, station(i)), new);
                    prop_assert_eq!(fdb.learn(domain, station(i), endpoint, now), want);
                }
                Op::Fix(domain, i, endpoint) => {
                    oracle.insert((domain, station(i)), (endpoint, None));
                    prop_assert!(fdb.set_static(domain, station(i), endpoint));
                }
                Op::Remove(domain, i) => {
                    let had = oracle.remove(&(domain, station(i))).is_some();
                    // An aged entry may still be there to be removed.
                    prop_assert!(fdb.remove(domain, station(i)) || !had);
                }
                Op::Flush(which) => {
                    oracle.retain(|key, value| value.1.is_none() || match which {
                        Flush::All => false,
                        Flush::Endpoint(endpoint) => value.0 != endpoint,
                        Flush::Domain(domain) => key.0 != domain,
                    });
                    fdb.flush(which);
                }
                Op::Wait(seconds) => {
                    now += seconds;
                    oracle.retain(|_, value| value.1.is_none_or(|seen| now - seen <= 10));
                }
            }
            for domain in 0..3 {
                for i in 0..9 {
                    let want = oracle.get(&(domain, station(i))).map(|value| value.0);
                    prop_assert_eq!(fdb.lookup(domain, station(i), now), want);
                }
            }
            let entry = |(&(domain, mac), &(endpoint, seen)): (&(u16, MacAddr), &(u16, Option<u32>))| Entry {
                domain, mac, endpoint, age_s: seen.map(|seen| now - seen),
            };
            let mut want: Vec<_> = oracle.iter().map(entry).collect();
            let mut got: Vec<_> = fdb.entries(now).collect();
            want.sort();
            got.sort();
            prop_assert_eq!(got, want);
        }
    }

    #[test]
    fn a_key_is_found_again_from_its_place(domain in 0..4096u16, bytes in any::<[u8; 6]>(), bits in 14..17u32) {
        let fdb = Fdb::new(PER_BUCKET << bits);
        fdb.learn(domain, MacAddr(bytes), 9, 3);
        let want = Entry { domain, mac: MacAddr(bytes), endpoint: 9, age_s: Some(0) };
        prop_assert_eq!(fdb.entries(3).collect::<Vec<_>>(), [want]);
    }
}

/// Writers fight over one bucket and clocks run, so that slots change hands all the time; every endpoint says whose it
/// is, so that a reader that believes half an entry is found out.
#[test]
fn readers_never_see_an_endpoint_that_was_not_the_stations() {
    let fdb = Fdb::new(1).with_ageing(1);
    let macs = crowd(&fdb, 24);
    let done = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let (fdb, macs) = (&fdb, &macs);
                scope.spawn(move || {
                    for step in 0..400_000usize {
                        let i = (step * 7 + writer * 11) % macs.len();
                        fdb.learn(7, macs[i], (i * 8 + step % 8) as u16, (step / 40) as u32);
                        if step % 4 != 0 {
                            fdb.remove(7, macs[(i + 21) % macs.len()]);
                        }
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut seen = 0u64;
            loop {
                let last = done.load(Ordering::Relaxed);
                for (i, &mac) in macs.iter().enumerate() {
                    // As of any time: the clock of the writers is not the reader's.
                    for now in [0, 5_000, 10_000] {
                        if let Some(endpoint) = fdb.lookup(7, mac, now) {
                            assert_eq!(usize::from(endpoint) / 8, i);
                            seen += 1;
                        }
                    }
                }
                if last {
                    break seen;
                }
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    assert!(seen > 0);
    fdb.flush(Flush::All);
    assert_eq!(fdb.len(0), 0);
    assert!(macs.iter().all(|&mac| fdb.matches(fdb.place(7, mac)) == 0));
}
