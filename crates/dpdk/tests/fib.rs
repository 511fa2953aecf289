//! Forwarding tables against a linear scan.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::net::{Ipv4Addr, Ipv6Addr};

use common::eal_with;
use dpdk::{Eal, Fib4, Fib6, Memory, NextHopBytes};

fn test_eal() -> &'static Eal {
    eal_with(Memory::NoHuge { mib: 384 })
}

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

#[test]
fn ipv4_is_the_longest_match() {
    let mut fib = Fib4::new(test_eal(), 1000, NextHopBytes::Four).unwrap();
    let (mut linear, mut random) = (Linear::default(), Random(1));
    for i in 0..500u32 {
        // Close together, so that prefixes nest.
        let (prefix, len) = (0x0a00_0000 | random.next() as u32 & 0x0003_ffff, (random.next() % 33) as u8);
        fib.add(Ipv4Addr::from_bits(prefix), len, i).unwrap();
        linear.add(32, prefix.into(), len, i);
    }
    let check = |fib: &Fib4, linear: &Linear, random: &mut Random| {
        let addresses: Vec<u32> = (0..4096)
            .map(|i| if i % 8 == 0 { random.next() as u32 } else { 0x0a00_0000 | random.next() as u32 & 0x0003_ffff })
            .collect();
        let mut found = vec![0; addresses.len()];
        fib.lookup_bulk(&addresses, &mut found);
        for (&address, &found) in addresses.iter().zip(&found) {
            assert_eq!(found, linear.lookup(32, address.into()).unwrap_or(fib.no_route()), "{address:x}");
        }
    };
    check(&fib, &linear, &mut random);
    for (prefix, len, _) in linear.0.split_off(250) {
        fib.remove(Ipv4Addr::from_bits(prefix as u32), len).unwrap();
    }
    check(&fib, &linear, &mut random);
}

#[test]
fn ipv6_is_the_longest_match() {
    let mut fib = Fib6::new(test_eal(), 1000, NextHopBytes::Four).unwrap();
    let (mut linear, mut random) = (Linear::default(), Random(2));
    let base = 0x2001_0db8_u128 << 96;
    let near = |random: &mut Random| base | u128::from(random.next() & 0x3ffff) << 64 | u128::from(random.next() & 3);
    for i in 0..500u32 {
        let (prefix, len) = (near(&mut random), (random.next() % 129) as u8);
        fib.add(Ipv6Addr::from_bits(prefix), len, i).unwrap();
        linear.add(128, prefix, len, i);
    }
    let addresses: Vec<u128> = (0..4096).map(|_| near(&mut random)).collect();
    let bytes: Vec<[u8; 16]> = addresses.iter().map(|a| a.to_be_bytes()).collect();
    let mut found = vec![0; addresses.len()];
    fib.lookup_bulk(&bytes, &mut found);
    for (address, found) in addresses.iter().zip(found) {
        assert_eq!(found, linear.lookup(128, *address).unwrap_or(fib.no_route()), "{address:x}");
    }
}

#[test]
fn the_limits_are_said() {
    let eal = test_eal();
    let mut fib = Fib4::new(eal, 4, NextHopBytes::Two).unwrap();
    let ip = |last| Ipv4Addr::new(10, 0, last, 0);
    let large = fib.add(ip(0), 24, 32767).unwrap_err().to_string();
    assert_eq!(large, "IPv4 table: route 10.0.0.0/24: next hop 32767 is too large; legal are 0 to 32766");
    assert!(fib.add(ip(0), 33, 1).unwrap_err().to_string().contains("prefix length is too long"));
    assert!(fib.remove(ip(0), 24).unwrap_err().to_string().contains("no such route"));
    let full = (0..=255).find_map(|i| fib.add(ip(i), 24, 1).err()).unwrap().to_string();
    assert!(full.contains("the table is full"), "{full}");
    assert!(Fib4::new(eal, 0, NextHopBytes::Two).err().unwrap().to_string().contains("1 to 16777216"));
    // An empty lookup is none.
    fib.lookup_bulk(&[], &mut [0; 4]);
}
