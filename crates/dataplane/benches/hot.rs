//! Cycles a frame of each function on heap buffers in cache: `cargo bench -p dataplane`.
//!
//! Best of many short runs, in nanoseconds by `Instant` and in cycles by the frequency the kernel states. The
//! clock of the nodes is a free one, so that what is measured is the work; what reading the TSC adds is measured in
//! the binary.
#![allow(missing_docs, clippy::unwrap_used)]

use std::{
    hint::black_box,
    net::{IpAddr, Ipv4Addr},
    sync::{mpsc::sync_channel, Arc},
    time::Instant,
};

use dataplane::{
    fib::{Fib4, Fib6},
    impair::{Impair, ImpairSpec},
    l3::L3,
    local::Local,
    node::NodeTimer,
    tables::{Adjacency, Group, Tables, Tag, GROUP},
    Dispatch, Function, Null, Outputs, PortMap, Prefix, Shared, L2,
};
use packet::{
    heap::{HeapBuf, HeapPool},
    Alloc, Buffer, Burst, Clock, FakeClock, MacAddr, BURST,
};

/// A buffer that is one pointer to move, as an mbuf is.
struct Thin(Box<HeapBuf>);

impl Buffer for Thin {
    fn data(&self) -> &[u8] {
        self.0.data()
    }
    fn data_mut(&mut self) -> &mut [u8] {
        self.0.data_mut()
    }
    fn prepend(&mut self, n: usize) -> bool {
        self.0.prepend(n)
    }
    fn trim_front(&mut self, n: usize) -> bool {
        self.0.trim_front(n)
    }
    fn set_len(&mut self, len: usize) -> bool {
        self.0.set_len(len)
    }
}

#[derive(Debug)]
struct ThinPool;

impl Alloc for ThinPool {
    type Buf = Thin;
    fn alloc(&mut self, _: &mut Burst<Thin>, _: usize, _: usize) -> usize {
        0
    }
}

/// What sorting frames to two ports costs with no work done, the bench's own part included.
struct Sort;

impl<B: Buffer> Function<B> for Sort {
    fn process<C: Clock>(
        &mut self,
        _: usize,
        burst: &mut Burst<B>,
        out: &mut Outputs<B>,
        _: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        burst.drain(..).enumerate().for_each(|(i, frame)| out.push(black_box(i) & 1, frame));
        Dispatch::Split
    }
    fn nodes(&self, _: &mut dyn FnMut(&dataplane::node::NodeStats)) {}
}

/// Bursts in the cache at once, and how often each is sent through before its TTLs are set back.
const BURSTS: usize = 4;
const ROUNDS: usize = 50;
const REPEATS: usize = 400;

fn ip4(dst: [u8; 4], tag: bool) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 46, 0, 0, 0, 0, 250, 17, 0, 0, 198, 18, 1, 2];
    packet.extend(dst);
    let sum: u32 = packet.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    packet.resize(46, 0);
    frame(packet, [8, 0], tag)
}

fn ip6(dst: u16) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 18, 17, 250, 0x20, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2];
    packet.extend([0x20, 1, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0]);
    packet.extend(dst.to_be_bytes());
    packet.resize(58, 0);
    frame(packet, [0x86, 0xdd], false)
}

fn frame(packet: Vec<u8>, ethertype: [u8; 2], tag: bool) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8];
    if tag {
        bytes.extend([0x81, 0, 0, 7]);
    }
    bytes.extend(ethertype);
    bytes.extend(packet);
    bytes
}

fn mhz() -> f64 {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|l| l.starts_with("cpu MHz"));
    line.and_then(|l| l.split(':').nth(1)).and_then(|v| v.trim().parse().ok()).unwrap_or(1000.0)
}

fn measure<F: Function<HeapBuf>>(name: &str, function: F, frames: &dyn Fn(usize) -> Vec<u8>, timed: bool) {
    measure_as(name, function, frames, timed, |frame| frame);
}

/// With buffers like mbufs.
fn thin<F: Function<Thin>>(name: &str, function: F, frames: &dyn Fn(usize) -> Vec<u8>) {
    measure_as(&format!("{name}, thin"), function, frames, true, |frame| Thin(Box::new(frame)));
}

fn measure_as<B: Buffer, F: Function<B>>(
    name: &str,
    mut function: F,
    frames: &dyn Fn(usize) -> Vec<u8>,
    timed: bool,
    wrap: fn(HeapBuf) -> B,
) {
    if std::env::args().nth(1).is_some_and(|only| only != "--bench" && !name.contains(&only)) {
        return;
    }
    let pool = HeapPool::new(BURSTS * BURST + 4096, 128);
    let clock = FakeClock::new(1_000_000_000);
    let fresh: Vec<Vec<u8>> = (0..BURSTS * BURST).map(frames).collect();
    let mut bursts: Vec<Burst<B>> =
        fresh.chunks(BURST).map(|frames| frames.iter().map(|f| wrap(pool.frame(f).unwrap())).collect()).collect();
    let mut out = Outputs::new(2);
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        for (buf, bytes) in bursts.iter_mut().flatten().zip(&fresh) {
            buf.data_mut().copy_from_slice(bytes);
        }
        let start = Instant::now();
        for _ in 0..ROUNDS {
            for burst in &mut bursts {
                let mut timer = NodeTimer::start(&clock, clock.now(), timed);
                match black_box(function.process(0, burst, &mut out, &mut timer)) {
                    Dispatch::All(_) => {}
                    Dispatch::Split => {
                        for port in 0..2 {
                            burst.extend(out.port(port).unwrap().drain(..));
                        }
                    }
                }
            }
        }
        let ns = start.elapsed().as_nanos() as f64;
        best = best.min(ns / (ROUNDS * BURSTS * BURST) as f64);
        clock.advance(1_000_000);
    }
    assert!(bursts.iter().all(|burst| burst.len() == BURST), "{name} lost frames");
    println!("{name:<44} {best:7.2} ns {:7.1} cycles a frame", best * mhz() / 1e3);
}

/// `n` adjacencies, every other one by port 1 and 0.
fn hops(n: u16) -> Vec<Adjacency> {
    let hop = |i: u16| {
        let [hi, lo] = i.to_be_bytes();
        Adjacency::forward(1 - i % 2, 1 - i % 2, MacAddr([2, 0, 0, 0, hi, lo]), MacAddr([2, 0, 0, 0, 1, 1]))
    };
    (0..n).map(hop).collect()
}

/// Routes to these adjacencies, the first of which is number 3; numbers with [`GROUP`] are to groups.
fn tables(hops: Vec<Adjacency>, routes: &[(&str, u32)]) -> Tables {
    let routes: Vec<(Prefix, u32)> = routes.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), *hop)).collect();
    let mut tables = Tables::bare(&[MacAddr([2, 0, 0, 0, 1, 0]), MacAddr([2, 0, 0, 0, 1, 1])]);
    tables.adjacencies.extend(hops);
    (tables.fib4, tables.fib6) = (Arc::new(Fib4::new(&routes)), Arc::new(Fib6::new(&routes)));
    tables
}

/// The networks that [`ip4`] and [`ip6`] frames go to, by port 0 and port 1.
fn two_ports() -> Tables {
    tables(hops(2), &[("198.18.0.0/16", 4), ("198.19.0.0/16", 3), ("2001:2:0:2::/64", 3)])
}

/// `n` routes of /24 in 198.18.0.0/15 and above, each to the next of `hops` adjacencies.
fn many(n: u32, adjacencies: u16) -> Tables {
    let prefix = |i: u32| Prefix::new(IpAddr::V4(Ipv4Addr::from(0xc612_0000 + (i << 8))), 24).unwrap();
    let routes: Vec<_> = (0..n).map(|i| (prefix(i), 3 + i % u32::from(adjacencies))).collect();
    Tables { fib4: Arc::new(Fib4::new(&routes)), ..tables(hops(adjacencies), &[]) }
}

fn ecmp() -> Tables {
    let paths = (0..16).map(|i| 3 + i % 2).collect();
    Tables { groups: vec![Group { paths }], ..tables(hops(2), &[("198.18.0.0/15", GROUP)]) }
}

/// Frames leave port 1 with VID 8, whatever they had before.
fn vlan() -> Tables {
    let mut hop = hops(1);
    hop[0].tag = Tag::Vid(8);
    let mut tables = tables(hop, &[("198.18.0.0/15", 3)]);
    let mut vlans = Box::new([u16::MAX; 4096]);
    (vlans[7], vlans[8]) = (0, 0);
    tables.ports[0].vlans = Some(vlans);
    tables
}

fn l3_of<A: Alloc>(tables: Tables, alloc: A) -> L3<A> {
    L3::new(Shared::new(tables).reader(), Local::new(alloc, sync_channel(1).0, 1_000_000_000, false))
}

fn l3(tables: Tables) -> L3<HeapPool> {
    l3_of(tables, HeapPool::new(64, 128))
}

fn main() {
    let far = |i: usize| ip4([198, 19, (i >> 8) as u8, i as u8], false);
    let both = |i: usize| ip4([198, 18 + (i & 1) as u8, 0, i as u8], false);
    println!("{BURST}-frame bursts of 64-byte frames in cache, {:.0} MHz", mhz());
    measure("null", Null::new(PortMap::pairs(2)), &far, true);
    measure("l2", L2::new(PortMap::pairs(2), false), &far, true);
    measure("l2:macswap", L2::new(PortMap::pairs(2), true), &far, true);
    measure("l3 IPv4, one egress", l3(two_ports()), &far, true);
    measure("l3 IPv4, one egress, no clocks", l3(two_ports()), &far, false);
    thin("l3 IPv4, one egress", l3_of(two_ports(), ThinPool), &far);
    measure("sort only", Sort, &both, true);
    thin("sort only", Sort, &both);
    measure("l3 IPv4, two egresses", l3(two_ports()), &both, true);
    thin("l3 IPv4, two egresses", l3_of(two_ports(), ThinPool), &both);
    // 61 is prime to the number of routes: the frames of a burst go all over the table.
    let spread = |n: u32| move |i: usize| ip4((0xc612_0001 + ((i as u32 * 61 % n) << 8)).to_be_bytes(), false);
    thin("l3 IPv4, 1k routes, 2 adjacencies", l3_of(many(1000, 2), ThinPool), &spread(1000));
    thin("l3 IPv4, 256 routes, 256 adjacencies", l3_of(many(256, 256), ThinPool), &spread(256));
    thin("l3 IPv4, 1k routes, 1k adjacencies", l3_of(many(1000, 1000), ThinPool), &spread(1000));
    thin("l3 IPv4, ECMP of 2", l3_of(ecmp(), ThinPool), &far);
    measure("l3 IPv4, VLAN kept", l3(two_ports()), &|i| ip4([198, 19, 0, i as u8], true), true);
    measure("l3 IPv4, VLAN set", l3(vlan()), &|i| ip4([198, 19, 0, i as u8], true), true);
    measure("l3 IPv6", l3(two_ports()), &|i| ip6(i as u16), true);
    measure("l3 IPv4 and IPv6", l3(two_ports()), &|i| if i & 1 == 0 { far(i) } else { ip6(i as u16) }, true);
    let impair = |text: &str| {
        let spec: ImpairSpec = text.parse().unwrap();
        Impair::new(l3(two_ports()), &spec, 2, HeapPool::new(64, 128), 1_000_000_000)
    };
    measure("l3 + impair idle", impair(""), &far, true);
    measure("l3 + impair rate=1000Gpps", impair("rate=1000Gpps"), &far, true);
    measure("l3 + impair rate=100TbpsL2", impair("rate=100TbpsL2"), &far, true);
    measure("l3 + impair reorder=0.000001%", impair("reorder=0.000001%"), &far, true);
}
