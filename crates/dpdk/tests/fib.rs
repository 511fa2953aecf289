//! Forwarding tables against a linear scan.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    sync::{Mutex, MutexGuard, PoisonError},
};

use common::eal_with;
use dpdk::{DpdkError, Eal, Fib4, Fib6, FibConfig, Lookup, Memory, NextHopBytes};

fn test_eal() -> &'static Eal {
    eal_with(Memory::NoHuge { mib: 1024 })
}

/// Every lookup function of this machine; AVX-512 is not everywhere.
const ALL: [Lookup; 3] = [Lookup::Scalar, Lookup::ScalarInline, Lookup::Avx512];
const NO_ROUTE: u64 = 0;

/// A generator good enough to make routes (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

fn mask(bits: u32, len: u8) -> u128 {
    if len == 0 {
        0
    } else {
        u128::MAX << (bits - u32::from(len)) & (u128::MAX >> (128 - bits))
    }
}

/// The routes, and the longest match the slow way.
#[derive(Default)]
struct Linear(Vec<(u128, u8, u32)>);

impl Linear {
    fn add(&mut self, bits: u32, prefix: u128, len: u8, next_hop: u32) {
        let prefix = prefix & mask(bits, len);
        self.0.retain(|r| (r.0, r.1) != (prefix, len));
        self.0.push((prefix, len, next_hop));
    }
    fn lookup(&self, bits: u32, address: u128) -> Option<u64> {
        let hit = self.0.iter().filter(|r| address & mask(bits, r.1) == r.0).max_by_key(|r| r.1);
        hit.map(|r| u64::from(r.2))
    }
}

/// One test at a time: they measure DPDK's memory.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn ipv4_is_the_longest_match_with_every_lookup() {
    let _turn = turn();
    let mut fib = Fib4::new(test_eal(), &FibConfig::new(1000)).unwrap();
    let (mut linear, mut random) = (Linear::default(), Random(1));
    for i in 1..=500u32 {
        // Close together, so that prefixes nest; some twice, with another next hop.
        let (prefix, len) = (0x0a00_0000 | random.next() as u32 & 0x0003_ffff, (random.next() % 33) as u8);
        fib.add(Ipv4Addr::from_bits(prefix), len, i).unwrap();
        linear.add(32, prefix.into(), len, i);
    }
    let check = |fib: &mut Fib4, linear: &Linear, random: &mut Random| {
        let addresses: Vec<u32> = (0..4096)
            .map(|i| if i % 8 == 0 { random.next() as u32 } else { 0x0a00_0000 | random.next() as u32 & 0x0003_ffff })
            .collect();
        let expected: Vec<u64> = addresses.iter().map(|&a| linear.lookup(32, a.into()).unwrap_or(NO_ROUTE)).collect();
        let tried = ALL.into_iter().filter(|&lookup| {
            let mut found = vec![9; addresses.len()];
            // The length is not a multiple of the vector width.
            fib.select(lookup) && {
                fib.lookup_bulk(&addresses[..4093], &mut found);
                assert_eq!(found[..4093], expected[..4093], "{lookup:?}");
                assert_eq!(found[4093..], [9; 3]);
                true
            }
        });
        assert!(tried.count() >= 2);
    };
    check(&mut fib, &linear, &mut random);
    for (prefix, len, _) in linear.0.split_off(250) {
        assert!(fib.remove(Ipv4Addr::from_bits(prefix as u32), len).unwrap());
    }
    check(&mut fib, &linear, &mut random);
}

#[test]
fn ipv6_is_the_longest_match_with_every_lookup() {
    let _turn = turn();
    let mut fib = Fib6::new(test_eal(), &FibConfig::new(1000)).unwrap();
    let (mut linear, mut random) = (Linear::default(), Random(2));
    let base = 0x2001_0db8_u128 << 96;
    let near = |random: &mut Random| base | u128::from(random.next() & 0x3ffff) << 64 | u128::from(random.next() & 3);
    for i in 1..=500u32 {
        let (prefix, len) = (near(&mut random), (random.next() % 129) as u8);
        fib.add(Ipv6Addr::from_bits(prefix), len, i).unwrap();
        linear.add(128, prefix, len, i);
    }
    let addresses: Vec<u128> = (0..4093).map(|_| near(&mut random)).collect();
    let bytes: Vec<[u8; 16]> = addresses.iter().map(|a| a.to_be_bytes()).collect();
    let expected: Vec<u64> = addresses.iter().map(|&a| linear.lookup(128, a).unwrap_or(NO_ROUTE)).collect();
    for lookup in ALL {
        let mut found = vec![9; addresses.len()];
        if fib.select(lookup) {
            fib.lookup_bulk(&bytes, &mut found);
            assert_eq!(found, expected, "{lookup:?}");
        }
    }
}

#[test]
fn routes_that_come_and_go_do_not_use_the_table_up() {
    let (eal, _turn) = (test_eal(), turn());
    // Room for two long routes: DPDK's own count of groups drifts with each that goes.
    let mut fib = Fib6::new(eal, &FibConfig { groups: Some(12), ..FibConfig::new(16) }).unwrap();
    let net = |n: u128| Ipv6Addr::from_bits(0x2001_0db8_u128 << 96 | n << 80);
    fib.add(Ipv6Addr::UNSPECIFIED, 0, 7).unwrap();
    fib.add(net(1), 48, 1).unwrap();
    let mut found = [9; 3];
    for round in 0..100u32 {
        fib.add(net(2), 48, 2).unwrap();
        fib.add(net(2), 48, 3 + round).unwrap();
        fib.lookup_bulk(&[net(1).octets(), net(2).octets(), net(3).octets()], &mut found);
        assert_eq!(found, [1, 3 + u64::from(round), 7]);
        fib.remove(net(2), 48).unwrap();
        fib.lookup_bulk(&[net(1).octets(), net(2).octets(), net(3).octets()], &mut found);
        assert_eq!(found, [1, 7, 7]);
    }
    let mut fib = Fib4::new(eal, &FibConfig { groups: Some(64), ..FibConfig::new(200) }).unwrap();
    let ip = |a, d| Ipv4Addr::new(10, 0, a, d);
    fib.add(Ipv4Addr::UNSPECIFIED, 0, 7).unwrap();
    fib.add(ip(0, 0), 16, 1).unwrap();
    for round in 0..100u8 {
        // With the next hop of what covers it, DPDK counts it when it goes and not when it comes.
        fib.add(ip(1, 0), 26, 1).unwrap();
        fib.remove(ip(1, 0), 26).unwrap();
        fib.add(ip(round, 64), 26, 2).unwrap();
        fib.lookup_bulk(&[ip(round, 63), ip(round, 64), ip(round, 128)].map(Ipv4Addr::to_bits), &mut found);
        assert_eq!(found, [1, 2, 1]);
        fib.remove(ip(round, 64), 26).unwrap();
    }
}

#[test]
fn the_limits_are_said() {
    let (eal, _turn) = (test_eal(), turn());
    let used = eal.memory_used();
    let config = FibConfig { bytes: NextHopBytes::Two, no_route: 5, ..FibConfig::new(4) };
    let mut fib = Fib4::new(eal, &config).unwrap();
    // The first level alone.
    assert!(eal.memory_used() - used > 32 << 20);
    let ip = |last| Ipv4Addr::new(10, 0, last, 0);
    let large = fib.add(ip(0), 24, 32768).unwrap_err().to_string();
    insta::assert_snapshot!(large, @"IPv4 table: route 10.0.0.0/24: next hop 32768: must be 0 to 32767");
    fib.add(ip(0), 24, 32767).unwrap();
    let mut found = [0; 2];
    fib.lookup_bulk(&[ip(0).to_bits(), 1], &mut found);
    assert_eq!(found, [32767, 5]);
    assert!(matches!(fib.add(ip(0), 33, 1), Err(DpdkError::Fib { .. })));
    assert!(matches!(fib.remove(ip(0), 33), Err(DpdkError::Fib { .. })));
    assert!(!fib.remove(ip(1), 24).unwrap());
    let full = (0..=255).find_map(|i| fib.add(ip(i), 24, 1).err()).unwrap().to_string();
    insta::assert_snapshot!(full, @"IPv4 table: route 10.0.4.0/24: the table is full: it was made for 4 routes and 256 groups of long ones");
    let is_config = |config: FibConfig| matches!(Fib4::new(eal, &config), Err(DpdkError::Config { .. }));
    assert!(is_config(FibConfig::new(0)));
    assert!(is_config(FibConfig { groups: Some(40_000), ..config }));
    assert!(is_config(FibConfig { groups: Some(0), ..config }));
    assert!(is_config(FibConfig { no_route: 40_000, ..config }));
    let huge = Fib6::new(eal, &FibConfig::new(1 << 20)).unwrap_err();
    assert!(huge.machine_lacks() && matches!(huge, DpdkError::NoMemory { .. }), "{huge}");
    // An empty lookup is none.
    fib.lookup_bulk(&[], &mut [0; 4]);
    drop(fib);
}
