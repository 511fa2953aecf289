//! Records for tests, sources of them, and waiting.
#![allow(dead_code, clippy::unwrap_used)]

use std::{
    collections::VecDeque,
    net::{Ipv4Addr, Ipv6Addr},
    process::Command,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use flow::{export::Records, Addresses, Distinguish, EndReason, Key, Record, Way};
use proptest::prelude::*;

/// 13 November 2023.
pub const T0: u64 = 1_699_900_000_123_456_789;

pub const REASONS: [EndReason; 5] =
    [EndReason::Idle, EndReason::Active, EndReason::EndOfFlow, EndReason::Forced, EndReason::LackOfResources];

/// The `n`th of many: IPv4, or IPv6 for `v6`; TCP, UDP, ICMP and SCTP in turn.
pub fn record(n: u64, v6: bool, biflow: bool) -> Record {
    let low = n as u32;
    let addresses = if v6 {
        let [src, dst] = [0x2001_0db8_u128 << 96 | u128::from(n), 0x2001_0db8_0001_u128 << 80 | 9].map(Ipv6Addr::from);
        Addresses::V6 { src, dst }
    } else {
        Addresses::V4 { src: Ipv4Addr::from(0x0a00_0000 + low), dst: Ipv4Addr::from([192, 0, 2, 9]) }
    };
    let protocol = [6, 17, if v6 { 58 } else { 1 }, 132][n as usize % 4];
    let (sport, dport) = if protocol == 1 || protocol == 58 { (0, 8 << 8) } else { (1024 + (n % 60_000) as u16, 443) };
    let tcp_flags = if protocol == 6 { 0x1b } else { 0 };
    let back = Way { packets: n + 2, ip_bytes: 100 * n + 7, frame_bytes: 118 * n + 43, tcp_flags: tcp_flags & 0x12 };
    let back = if biflow { back } else { Way::default() };
    Record {
        key: Key { addresses, sport, dport, protocol, port: (n % 2) as u8, scope: None, bottom: false },
        ingress: (n % 2) as u8,
        tos: (n % 256) as u8,
        forward: Way { packets: n + 1, ip_bytes: 64 * n + 60, frame_bytes: 82 * n + 78, tcp_flags },
        back,
        first: T0 + n,
        last: T0 + n + 1_234_567_890,
        end: Some(REASONS[n as usize % 5]),
        details: None,
    }
}

/// Any record that an exporter of this kind can have, and that nothing is lost of on the way.
pub fn any_record(biflow: bool, distinguish: Distinguish) -> impl Strategy<Value = Record> {
    let addresses = prop_oneof![
        any::<[[u8; 4]; 2]>().prop_map(|[s, d]| Addresses::V4 { src: s.into(), dst: d.into() }),
        any::<[[u8; 16]; 2]>().prop_map(|[s, d]| Addresses::V6 { src: s.into(), dst: d.into() }),
    ];
    let protocol = prop_oneof![Just(1), Just(6), Just(17), Just(58), any::<u8>()];
    let scope = match distinguish {
        Distinguish::None => 0..=0u32,
        Distinguish::Vlan => 0..=4095,
        Distinguish::Vni => 0..=0xff_ffff,
        Distinguish::Label => 0..=0xf_ffff,
    };
    let scope = proptest::option::of(scope).prop_map(move |scope| scope.filter(|_| distinguish != Distinguish::None));
    let ways = any::<[u64; 6]>();
    let times = [0..4_200_000_000_000_000_000u64, 0..4_200_000_000_000_000_000u64];
    let rest =
        (any::<[u16; 2]>(), any::<[u8; 2]>(), any::<u16>(), proptest::option::of(proptest::sample::select(&REASONS)));
    (addresses, protocol, scope, ways, times, rest).prop_map(
        move |(addresses, protocol, scope, ways, [first, last], ([sport, dport], [ingress, tos], flags, end))| {
            let icmp = protocol == if addresses.src().is_ipv4() { 1 } else { 58 };
            let [forward, back] = [[0, 1, 2], [3, 4, 5]].map(|[a, b, c]| Way {
                packets: ways[a],
                ip_bytes: ways[b],
                frame_bytes: ways[c],
                tcp_flags: flags & 0x1ff,
            });
            let back = if biflow { Way { tcp_flags: !flags & 0x1ff, ..back } } else { Way::default() };
            let sport = if icmp { 0 } else { sport };
            let bottom = distinguish == Distinguish::Label && scope.is_some_and(|label| label & 1 == 1);
            Record {
                key: Key { addresses, sport, dport, protocol, port: ingress, scope, bottom },
                ingress,
                tos,
                forward,
                back,
                first,
                last,
                end,
                details: None,
            }
        },
    )
}

/// As collectors get them when nothing is known of the ports: as interfaces from 1 on.
pub fn as_collected(records: &[Record]) -> Vec<Record> {
    let of = |record: &Record| {
        let ingress = record.ingress + 1;
        Record { key: Key { port: ingress, ..record.key }, ingress, ..*record }
    };
    records.iter().map(of).collect()
}

/// A source that the test fills.
#[derive(Clone, Default)]
pub struct Given(pub Arc<Mutex<VecDeque<Record>>>);

impl Given {
    pub fn put(&self, records: impl IntoIterator<Item = Record>) {
        self.0.lock().unwrap().extend(records);
    }

    pub fn boxed(&self) -> Vec<Box<dyn Records>> {
        vec![Box::new(self.clone())]
    }
}

impl Records for Given {
    fn pull(&mut self, into: &mut Vec<Record>, most: usize) {
        let mut records = self.0.lock().unwrap();
        let n = most.min(records.len());
        into.extend(records.drain(..n));
    }
}

/// Waits for something to become true.
pub fn wait_for(what: &str, mut is: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < Duration::from_secs(30), "waited for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a program is there. Where not, the test is skipped and says so; in CI that is a failure.
pub fn have(program: &str) -> bool {
    let there = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap().status.success();
    if !there {
        assert!(std::env::var_os("CI").is_none(), "{program} is missing");
        eprintln!("skipped: {program} is missing");
    }
    there
}
