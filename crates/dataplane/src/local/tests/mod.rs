//! A router with two ports and a VLAN, and frames for it made by etherparse.

mod answers;
mod errors;
mod hostile;
mod waiting;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{mpsc, Arc},
};

use etherparse::{IpHeaders, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, PacketBuilder, PacketBuilderStep};
use packet::{
    heap::{HeapBuf, HeapPool},
    Buffer, Burst, MacAddr,
};

use super::*;
use crate::{
    fib::{Fib4, Fib6},
    model::Event,
    tables::{Adjacency, Interface, Next, Tag},
    DropCounters, Prefix,
};

pub(super) const HZ: u64 = 1_000_000;
pub(super) const OWN: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 1, 0]), MacAddr([2, 0, 0, 0, 1, 1])];
/// The host on the first link, known; the one on the second is not.
pub(super) const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
pub(super) const HOST4: [u8; 4] = [10, 0, 0, 2];
pub(super) const US4: [u8; 4] = [10, 0, 0, 1];
pub(super) const FAR4: [u8; 4] = [10, 1, 0, 5];
pub(super) const FORWARD: u32 = 3;
pub(super) const GLEAN: u32 = 4;
pub(super) const UNRESOLVED: u32 = 5;
pub(super) const GATEWAY: u32 = 6;
pub(super) const AT: Ingress = Ingress { port: 0, interface: 0 };
pub(super) const TAGGED_AT: Ingress = Ingress { port: 0, interface: 2 };
pub(super) const ALL_NODES_MAC: MacAddr = MacAddr([0x33, 0x33, 0, 0, 0, 1]);

pub(super) fn ip6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

pub(super) fn host6() -> Ipv6Addr {
    ip6("2001:db8::2")
}

pub(super) fn us6() -> Ipv6Addr {
    ip6("2001:db8::1")
}

pub(super) fn tables() -> Tables {
    let mut tables = Tables::bare(&OWN);
    tables.interfaces[0].ip4 = vec![(US4.into(), 24)];
    tables.interfaces[0].ip6 = vec![(us6(), 64)];
    tables.interfaces[1].ip4 = vec![([10, 1, 0, 1].into(), 24)];
    tables.interfaces[1].ip6 = vec![(ip6("2001:db8:1::1"), 64)];
    let vlan = Interface { vlan: Some(7), ip4: vec![([10, 7, 0, 1].into(), 24)], ..tables.interfaces[0].clone() };
    tables.interfaces.push(vlan);
    let forward = Adjacency::forward(0, 0, HOST, OWN[0]);
    let glean = Adjacency { next: Next::Glean, port: 1, interface: 1, ..Adjacency::LOCAL };
    tables.adjacencies.extend([
        forward,
        glean,
        Adjacency { next: Next::Unresolved, ..glean },
        Adjacency { tag: Tag::Vid(9), ..Adjacency::forward(1, 1, MacAddr([2, 0, 0, 0, 0, 0x66]), OWN[1]) },
    ]);
    let own = ["10.0.0.1/32", "10.1.0.1/32", "2001:db8::1/128", "2001:db8:1::1/128"].map(|prefix| (prefix, 2));
    let others = [
        ("10.0.0.2/32", FORWARD),
        ("10.1.0.0/24", GLEAN),
        ("10.9.0.0/16", UNRESOLVED),
        ("10.66.0.0/16", GATEWAY),
        ("2001:db8::2/128", FORWARD),
        ("2001:db8:1::/64", GLEAN),
        ("2001:db8:66::/48", GATEWAY),
    ];
    let routes: Vec<(Prefix, u32)> =
        own.into_iter().chain(others).map(|(prefix, hop)| (prefix.parse().unwrap(), hop)).collect();
    (tables.fib4, tables.fib6) = (Arc::new(Fib4::new(&routes)), Arc::new(Fib6::new(&routes)));
    tables
}

/// The path under test and its books.
pub(super) struct Rig {
    pub(super) local: Local<HeapPool>,
    pub(super) tables: Tables,
    pub(super) out: Outputs<HeapBuf>,
    pub(super) now: u64,
    pub(super) pool: HeapPool,
    pub(super) events: mpsc::Receiver<Event>,
    received: u64,
    sent: u64,
    before: DropCounters,
}

impl Rig {
    pub(super) fn new() -> Self {
        let pool = HeapPool::new(256, 2048);
        let (tell, events) = mpsc::sync_channel(64);
        Self {
            local: Local::new(pool.clone(), tell, HZ, true),
            tables: tables(),
            out: Outputs::new(2),
            now: 17,
            pool,
            events,
            received: 0,
            sent: 0,
            before: DropCounters::default(),
        }
    }

    pub(super) fn frame(&mut self, bytes: &[u8]) -> HeapBuf {
        self.received += 1;
        self.pool.frame(bytes).unwrap()
    }

    pub(super) fn deliver(&mut self, bytes: &[u8], at: Ingress) -> Vec<Vec<u8>> {
        let frame = self.frame(bytes);
        self.local.deliver(frame, at, &self.tables, &mut self.out, self.now);
        self.collect(at.port.into())
    }

    pub(super) fn refuse(&mut self, bytes: &[u8], fault: Fault) -> Vec<Vec<u8>> {
        let frame = self.frame(bytes);
        self.local.refuse(frame, DropReason::Policed, fault, AT, &self.tables, &mut self.out, self.now);
        self.collect(0)
    }

    pub(super) fn resolve(&mut self, bytes: &[u8], dst: impl Into<IpAddr>, adjacency: u32) -> Vec<Vec<u8>> {
        let frame = self.frame(bytes);
        self.local.resolve(frame, dst.into(), adjacency, AT, &self.tables, &mut self.out, self.now);
        self.collect(1)
    }

    /// Polls; the frames to be routed once more and their port. They leave the books as if sent.
    pub(super) fn poll(&mut self) -> Option<(u16, Vec<Vec<u8>>)> {
        let mut burst = Burst::new();
        let port = self.local.poll(&self.tables, &mut burst, &mut self.out, self.now);
        assert_eq!(port.is_some(), !burst.is_empty());
        self.sent += burst.len() as u64;
        port.map(|port| (port, burst.iter().map(|f| f.data().to_vec()).collect()))
    }

    /// What leaves by a port, with nothing on the other, and the books balanced.
    pub(super) fn collect(&mut self, port: usize) -> Vec<Vec<u8>> {
        assert!(self.out.ports[1 - port].is_empty());
        let frames: Vec<_> = self.out.ports[port].drain(..).map(|f| f.data().to_vec()).collect();
        self.sent += frames.len() as u64;
        self.balance();
        frames
    }

    /// `received + originated = sent + drops + punted + held`, and no frame anywhere else.
    pub(super) fn balance(&mut self) {
        self.out.drops.empty();
        let waiting: usize = self.out.ports.iter().map(Burst::len).sum();
        let ends = self.sent + waiting as u64 + self.out.drops.counters().total() + self.out.punted;
        assert_eq!(self.received + self.out.originated, ends + self.local.held() as u64, "the ledger");
        assert_eq!(self.pool.in_use(), waiting + self.local.held(), "the pool");
    }

    /// The drops since the last time this was asked.
    pub(super) fn drops(&mut self) -> Vec<(DropReason, u64)> {
        let now = self.out.drops.counters().clone();
        let moved = now.since(&std::mem::replace(&mut self.before, now.clone()));
        moved.iter().filter(|&(_, n)| n > 0).collect()
    }

    /// The counters that are not zero.
    pub(super) fn counts(&self) -> Vec<(&'static str, u64)> {
        let mut counts = Vec::new();
        self.local.counters(&mut |name, n| counts.extend((n > 0).then_some((name, n))));
        counts
    }

    pub(super) fn learned(&self) -> Vec<(u16, IpAddr, MacAddr)> {
        let neighbour = |event| match event {
            Event::Neighbour { interface, addr, mac } => (interface, addr, mac),
            Event::Remote { .. } => panic!("{event:?}"),
        };
        self.events.try_iter().map(neighbour).collect()
    }
}

/// The beginning of an IPv4 frame.
pub(super) fn from4(dst: MacAddr, src: MacAddr, header: Ipv4Header) -> PacketBuilderStep<IpHeaders> {
    PacketBuilder::ethernet2(src.0, dst.0).ip(IpHeaders::Ipv4(header, Default::default()))
}

pub(super) fn head4(src: impl Into<Ipv4Addr>, dst: impl Into<Ipv4Addr>, ttl: u8) -> Ipv4Header {
    let (src, dst) = (src.into().octets(), dst.into().octets());
    let mut header = Ipv4Header::new(0, ttl, IpNumber::UDP, src, dst).unwrap();
    header.dont_fragment = false;
    header
}

pub(super) fn from6(dst: MacAddr, src: MacAddr, header: Ipv6Header) -> PacketBuilderStep<IpHeaders> {
    PacketBuilder::ethernet2(src.0, dst.0).ip(IpHeaders::Ipv6(header, Default::default()))
}

pub(super) fn head6(src: Ipv6Addr, dst: Ipv6Addr, hop_limit: u8) -> Ipv6Header {
    Ipv6Header {
        traffic_class: 0,
        flow_label: Ipv6FlowLabel::ZERO,
        payload_length: 0,
        next_header: IpNumber::UDP,
        hop_limit,
        source: src.octets(),
        destination: dst.octets(),
    }
}

/// Any of etherparse's builders, written out.
macro_rules! bytes {
    ($builder:expr, $payload:expr) => {{
        let (mut frame, payload): (Vec<u8>, &[u8]) = (Vec::new(), $payload);
        $builder.write(&mut frame, payload).unwrap();
        frame
    }};
}
pub(super) use bytes;

pub(super) fn echo4(src: impl Into<Ipv4Addr>, dst: impl Into<Ipv4Addr>) -> Vec<u8> {
    bytes!(from4(OWN[0], HOST, head4(src, dst, 1)).icmpv4_echo_request(7, 9), &[0xab; 33])
}

pub(super) fn echo6(src: Ipv6Addr, dst: Ipv6Addr) -> Vec<u8> {
    bytes!(from6(OWN[0], HOST, head6(src, dst, 3)).icmpv6_echo_request(7, 9), &[0xab; 33])
}

pub(super) fn udp4(src: impl Into<Ipv4Addr>, dst: impl Into<Ipv4Addr>, payload: usize) -> Vec<u8> {
    bytes!(from4(OWN[0], HOST, head4(src, dst, 64)).udp(33000, 33434), &vec![0xab; payload])
}

pub(super) fn udp6(src: Ipv6Addr, dst: Ipv6Addr, payload: usize) -> Vec<u8> {
    bytes!(from6(OWN[0], HOST, head6(src, dst, 64)).udp(33000, 33434), &vec![0xab; payload])
}

/// The same frame with a VLAN tag put in.
pub(super) fn tagged(mut frame: Vec<u8>, tci: [u8; 2]) -> Vec<u8> {
    frame.splice(12..12, [0x81, 0x00, tci[0], tci[1]]);
    frame
}

/// An ARP frame.
pub(super) fn arp_frame(op: u16, dst: MacAddr, src: (MacAddr, [u8; 4]), target: (MacAddr, [u8; 4])) -> Vec<u8> {
    let op = op.to_be_bytes();
    let head = [&dst.0[..], &src.0 .0, &[8, 6, 0, 1, 8, 0, 6, 4], &op].concat();
    [&head[..], &src.0 .0, &src.1, &target.0 .0, &target.1].concat()
}

pub(super) fn arp_request(src: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    arp_frame(1, MacAddr::BROADCAST, (HOST, src), (MacAddr::default(), target))
}

/// A neighbour discovery frame: type, flags, target, and an option.
pub(super) fn nd_frame(
    macs: (MacAddr, MacAddr),
    (src, dst): (Ipv6Addr, Ipv6Addr),
    (kind, flags): (u8, u8),
    target: Ipv6Addr,
    option: Option<(u8, MacAddr)>,
) -> Vec<u8> {
    let option = option.map_or(vec![], |(kind, mac)| [&[kind, 1][..], &mac.0].concat());
    let body = [&target.octets()[..], &option].concat();
    bytes!(from6(macs.0, macs.1, head6(src, dst, 255)).icmpv6_raw(kind, 0, [flags, 0, 0, 0]), &body)
}

pub(super) fn solicitation(src: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    let option = (!src.is_unspecified()).then_some((1, HOST));
    let group = Ipv6Addr::from_bits(ip6("ff02::1:ff00:0").to_bits() | target.to_bits() & 0xff_ffff);
    let [.., a, b, c, d] = group.octets();
    nd_frame((MacAddr([0x33, 0x33, a, b, c, d]), HOST), (src, group), (135, 0), target, option)
}
