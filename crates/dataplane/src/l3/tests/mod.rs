//! Frames built by etherparse through tables built by hand, and the books balanced after each burst.

mod faults;
mod links;
mod paths;
mod routing;

use std::{
    net::Ipv6Addr,
    sync::{mpsc::sync_channel, Arc},
};

use etherparse::{NetHeaders, PacketBuilder, PacketHeaders, TransportHeader};
use packet::{heap::HeapPool, Buffer, FakeClock, MacAddr, BURST};

use super::*;
use crate::{
    fib::{Fib4, Fib6},
    tables::{Adjacency, Next, ADJ_LOCAL, ADJ_MARTIAN},
    DropCounters, Prefix, Shared,
};

const PORT_MACS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 1, 0]), MacAddr([2, 0, 0, 0, 1, 1])];
const NEIGHBOURS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];

/// Adjacency numbers of [`tables`] above the fixed ones: `TO` and the next to the neighbours at port 0 and 1.
const TO: u32 = 3;
const GLEAN: u32 = 5;
const UNRESOLVED: u32 = 6;
const BLACK_HOLE: u32 = 7;

const ROUTES: [(&str, u32); 18] = [
    ("0.0.0.0/8", ADJ_MARTIAN),
    ("127.0.0.0/8", ADJ_MARTIAN),
    ("224.0.0.0/4", ADJ_MARTIAN),
    ("240.0.0.0/4", ADJ_MARTIAN),
    ("::/128", ADJ_MARTIAN),
    ("::1/128", ADJ_MARTIAN),
    ("fe80::/10", ADJ_MARTIAN),
    ("ff00::/8", ADJ_MARTIAN),
    ("198.18.0.0/16", TO),
    ("198.19.0.0/16", TO + 1),
    ("2001:2:0:1::/64", TO),
    ("2001:2:0:2::/64", TO + 1),
    ("192.0.2.1/32", ADJ_LOCAL),
    ("2001:db8::1/128", ADJ_LOCAL),
    ("192.0.2.0/24", GLEAN),
    ("2001:db8:1::/64", GLEAN),
    ("203.0.113.0/24", UNRESOLVED),
    ("198.51.100.0/24", BLACK_HOLE),
];

fn hop(port: u16) -> Adjacency {
    let at = usize::from(port);
    Adjacency::forward(port, port, NEIGHBOURS[at], PORT_MACS[at])
}

fn tables() -> Tables {
    let routes = ROUTES.map(|(prefix, hop)| (prefix.parse::<Prefix>().unwrap(), hop));
    let mut tables = Tables::bare(&PORT_MACS);
    let (glean, unresolved) =
        (Adjacency { next: Next::Glean, ..hop(1) }, Adjacency { next: Next::Unresolved, ..hop(1) });
    tables.adjacencies.extend([hop(0), hop(1), glean, unresolved, Adjacency::drop(DropReason::BlackHole)]);
    (tables.fib4, tables.fib6) = (Arc::new(Fib4::new(&routes)), Arc::new(Fib6::new(&routes)));
    tables.interfaces[0].ip6.push(("fe80::1".parse().unwrap(), 64));
    tables
}

/// An Ethernet frame of UDP, built by etherparse.
fn udp4(src: [u8; 4], dst: [u8; 4], ttl: u8) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 9], PORT_MACS[0].0).ipv4(src, dst, ttl).udp(1024, 7);
    let mut frame = Vec::new();
    builder.write(&mut frame, &[0xab; 18]).unwrap();
    frame
}

fn udp6(src: &str, dst: &str, hop_limit: u8) -> Vec<u8> {
    let [src, dst] = [src, dst].map(|a| a.parse::<Ipv6Addr>().unwrap().octets());
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 9], PORT_MACS[0].0).ipv6(src, dst, hop_limit).udp(1024, 7);
    let mut frame = Vec::new();
    builder.write(&mut frame, &[0xab; 18]).unwrap();
    frame
}

/// ICMPv6 of this type.
fn icmp6(src: &str, dst: &str, kind: u8) -> Vec<u8> {
    patched(udp6(src, dst, 255), &[(20, 58), (54, kind)])
}

fn arp() -> Vec<u8> {
    let mut frame = [&PORT_MACS[0].0[..], &NEIGHBOURS[0].0, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]].concat();
    frame.resize(60, 0);
    frame
}

fn good4() -> Vec<u8> {
    udp4([198, 18, 1, 2], [198, 19, 1, 2], 64)
}

fn good6() -> Vec<u8> {
    udp6("2001:2:0:1::2", "2001:2:0:2::2", 64)
}

/// The same frame with this VLAN tag put in.
fn with_tci(mut frame: Vec<u8>, tci: u16) -> Vec<u8> {
    let [hi, lo] = tci.to_be_bytes();
    frame.splice(12..12, [0x81, 0x00, hi, lo]);
    frame
}

/// With priority 5 in VLAN 42.
fn tagged(frame: Vec<u8>) -> Vec<u8> {
    with_tci(frame, 0xa02a)
}

/// The same IPv4 frame with a router alert option and its header checksum right.
fn with_options(mut frame: Vec<u8>) -> Vec<u8> {
    frame.splice(34..34, [0x94, 4, 0, 0]);
    frame[14] = 0x46;
    let total = (frame.len() - 14) as u16;
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    set_checksum(&mut frame);
    frame
}

fn set_checksum(frame: &mut [u8]) {
    let header = 14..14 + usize::from(frame[14] & 0xf) * 4;
    frame[24..26].fill(0);
    let sum = packet::checksum::finish(packet::checksum::sum(&frame[header]));
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

/// A good frame with some bytes changed and, if IPv4, its checksum made right again.
fn patched(mut frame: Vec<u8>, patches: &[(usize, u8)]) -> Vec<u8> {
    patches.iter().for_each(|&(at, byte)| frame[at] = byte);
    if frame[12..14] == [8, 0] && frame[14] & 0xf >= 5 {
        set_checksum(&mut frame);
    }
    frame
}

struct Ran {
    /// Frames out by port.
    out: [Vec<Vec<u8>>; 2],
    drops: Vec<(DropReason, u64)>,
    dispatch: Dispatch,
    /// Frames that went to `ip-local`.
    local: u64,
}

struct Rig {
    pool: HeapPool,
    function: L3<HeapPool>,
}

impl Rig {
    fn new(tables: Tables) -> Self {
        let pool = HeapPool::new(2 * BURST, 2048);
        let local = Local::new(pool.clone(), sync_channel(64).0, 1_000_000_000, false);
        Self { pool, function: L3::new(Shared::new(tables).reader(), local) }
    }

    /// One burst through the function, and the books balanced.
    fn run(&mut self, ingress: usize, frames: &[Vec<u8>]) -> Ran {
        let Self { pool, function } = self;
        let held = function.held();
        let local = function.local().node().vectors;
        let clock = FakeClock::new(1_000_000_000);
        let mut out = Outputs::new(2);
        let mut burst: Burst<_> = frames.iter().map(|f| pool.frame(f).unwrap()).collect();
        let dispatch = function.process(ingress, &mut burst, &mut out, &mut NodeTimer::start(&clock, 0, true));
        if let Dispatch::All(port) = dispatch {
            assert!(out.ports.iter().all(Burst::is_empty));
            out.ports[port] = burst;
        } else {
            assert!(burst.is_empty());
        }
        let drops: DropCounters = out.drops.counters().clone();
        out.drops.empty();
        let sent = out.ports.iter().map(Burst::len).sum::<usize>();
        assert_eq!(
            frames.len() as u64 + held as u64 + out.originated,
            sent as u64 + drops.total() + out.punted + function.held() as u64,
            "rx + originated = tx + drops + punted + held"
        );
        assert_eq!(pool.in_use(), sent + function.held());
        let bytes = |port: usize| out.ports[port].iter().map(|f| f.data().to_vec()).collect();
        let out = [bytes(0), bytes(1)];
        let drops = drops.iter().filter(|&(_, n)| n > 0).collect();
        Ran { out, drops, dispatch, local: function.local().node().vectors - local }
    }
}

/// One burst through the function of [`tables`].
fn run(ingress: usize, frames: &[Vec<u8>]) -> Ran {
    Rig::new(tables()).run(ingress, frames)
}

/// What is decided on a lone frame from port 0: `None` when it leaves.
fn fate(tables: &Tables, frame: &[u8]) -> Option<RouteOutcome> {
    let pool = HeapPool::new(1, 2048);
    let mut burst: Burst<_> = [pool.frame(frame).unwrap()].into_iter().collect();
    let (mut scratch, mut out) = (RouteScratch::default(), Outputs::new(2));
    scratch.input(&burst, &tables.ports[0], &tables.interfaces);
    scratch.lookup(&burst, tables);
    match scratch.rewrite(&mut burst, tables, &mut out.drops) {
        Some(_) => None,
        None => Some(scratch.fate(0)),
    }
}

/// What a router makes of a good frame: etherparse takes it apart, ages it and sums it.
fn routed(frame: &[u8], port: usize) -> Vec<u8> {
    let mut headers = PacketHeaders::from_ethernet_slice(frame).unwrap();
    let mut bytes = Vec::new();
    let mut ethernet = match headers.link.take().unwrap() {
        etherparse::LinkHeader::Ethernet2(ethernet) => ethernet,
        other => panic!("{other:?}"),
    };
    (ethernet.destination, ethernet.source) = (NEIGHBOURS[port].0, PORT_MACS[port].0);
    ethernet.write(&mut bytes).unwrap();
    if let Some(vlan) = headers.vlan.take() {
        vlan.write(&mut bytes).unwrap();
    }
    match headers.net.take().unwrap() {
        NetHeaders::Ipv4(mut ip, _) => {
            ip.time_to_live -= 1;
            ip.write(&mut bytes).unwrap();
        }
        NetHeaders::Ipv6(mut ip, _) => {
            ip.hop_limit -= 1;
            ip.write(&mut bytes).unwrap();
        }
    }
    if let Some(TransportHeader::Udp(udp)) = headers.transport.take() {
        udp.write(&mut bytes).unwrap();
    }
    bytes.extend(headers.payload.slice());
    bytes
}
