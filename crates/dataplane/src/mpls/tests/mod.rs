mod actions;
mod bursts;
mod hostile;

use std::sync::Arc;

use etherparse::PacketBuilder;
use packet::{
    headers::mpls::Mpls as Label,
    heap::{HeapBuf, HeapPool},
    FakeClock, MacAddr,
};

use super::*;
use crate::{
    model::{Hop, LabelAction, LabelRoute, Path},
    tables::{Group, Labels, MacFilter, Stack, Tag, NO_INTERFACE},
    DropCounters, Shared,
};

const MACS: [MacAddr; 3] = [MacAddr([2, 0, 0, 0, 1, 0]), MacAddr([2, 0, 0, 0, 1, 1]), MacAddr([2, 0, 0, 0, 1, 2])];
const PEERS: [MacAddr; 3] = [MacAddr([2, 0, 0, 0, 9, 0]), MacAddr([2, 0, 0, 0, 9, 1]), MacAddr([2, 0, 0, 0, 9, 2])];
const SENDER: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);

/// Sends a frame by the port that its last byte says, drops it when that is 2, and keeps it when 3.
#[derive(Debug)]
struct Stub {
    node: NodeStats,
    seen: Vec<Vec<u8>>,
    held: Vec<HeapBuf>,
}

impl Function<HeapBuf> for Stub {
    fn process<C: Clock>(
        &mut self,
        _: usize,
        burst: &mut Burst<HeapBuf>,
        out: &mut Outputs<HeapBuf>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        assert!(out.ports.iter().all(Burst::is_empty));
        timer.end_node(&mut self.node, burst.len());
        self.seen.extend(burst.iter().map(|frame| frame.data().to_vec()));
        let way = |frame: &HeapBuf| frame.data().last().copied().unwrap_or(2);
        if burst.iter().all(|frame| way(frame) == 1) {
            return Dispatch::All(1);
        }
        for frame in burst.drain(..) {
            match way(&frame) {
                2 => out.drops.drop(frame, DropReason::NoRoute),
                3 => self.held.push(frame),
                port => out.push(usize::from(port), frame),
            }
        }
        Dispatch::Split
    }
    fn poll<C: Clock>(
        &mut self,
        burst: &mut Burst<HeapBuf>,
        _: &mut Outputs<HeapBuf>,
        _: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        burst.extend(self.held.drain(..));
        Dispatch::All(0)
    }
    fn release(&mut self) {
        self.seen.clear();
    }
    fn held(&self) -> usize {
        self.held.len()
    }
    fn nodes(&self, visit: &mut dyn FnMut(&NodeStats)) {
        visit(&self.node);
    }
    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("stub", 7);
    }
}

/// What labels mean here; a path's weight is its next hop number, and 200 a group.
fn routes() -> Vec<LabelRoute> {
    let path = |weight| Path { hop: Hop::Drop, labels: Vec::new(), weight };
    let swap = |label, out, to| LabelRoute { label, action: LabelAction::Swap { out, path: path(to) } };
    let pop = |label, to| LabelRoute { label, action: LabelAction::Pop { path: path(to) } };
    let mut routes = vec![
        swap(16, 17, 3),
        swap(17, 16, 4),
        swap(18, 0xf_ffff, 3),
        pop(20, 3),
        LabelRoute { label: 21, action: LabelAction::Lookup },
        LabelRoute { label: 22, action: LabelAction::Drop },
        swap(23, 30, 5),
        pop(24, 5),
        swap(25, 3, 3),
        swap(30, 31, 10),
        swap(31, 30, 11),
        swap(32, 33, 12),
        pop(33, 12),
        swap(35, 35, 200),
        pop(36, 200),
        swap(39, 0, 3),
        pop(40, 10),
    ];
    routes.extend([6, 7, 8, 9, 13, 14, 99].map(|to| swap(50 + u32::from(to), 50, to)));
    routes
}

fn tables() -> Tables {
    let mut tables = Tables::bare(&MACS);
    let to = |port: usize| Adjacency::forward(port as u16, port as u16, PEERS[port], MACS[port]);
    let next = |next| Adjacency { next, ..to(1) };
    tables.adjacencies.extend([
        to(1),
        to(0),
        Adjacency { push: 1, ..to(1) },
        next(crate::tables::Next::Glean),
        next(crate::tables::Next::Unresolved),
        Adjacency::LOCAL,
        Adjacency::drop(DropReason::BlackHole),
        Adjacency { tag: Tag::Vid(0x123), ..to(1) },
        Adjacency { tag: Tag::None, ..to(1) },
        Adjacency { mtu: 100, ..to(1) },
        Adjacency { port: 9, ..to(1) },
        Adjacency { push: 9, ..to(1) },
    ]);
    tables.groups.push(Group { paths: Box::new([3, 4]) });
    let stack = Stack { entries: [[0, 6, 0x40, 0], [0, 0xc, 0x80, 0], [0; 4], [0; 4]], len: 2 };
    let mut resolve = |path: &Path| if path.weight == 200 { GROUP } else { u32::from(path.weight) };
    tables.labels = Arc::new(Labels::new(&routes(), vec![stack], &mut resolve));
    // Port 2 has VLAN 5 and takes its own address only.
    let mut vlans = Box::new([NO_INTERFACE; 4096]);
    vlans[5] = 3;
    tables.ports[2].vlans = Some(vlans);
    tables.ports[2].macs = MacFilter::only(MACS[2]);
    tables
}

fn mpls() -> Mpls<Stub> {
    let inner = Stub { node: NodeStats::new("stub"), seen: Vec::new(), held: Vec::new() };
    Mpls::new(Shared::new(tables()).reader(), inner)
}

struct Ran {
    out: [Vec<Vec<u8>>; 3],
    drops: DropCounters,
    dispatch: Dispatch,
}

/// One burst through the function, and the books balanced.
fn run(function: &mut Mpls<Stub>, ingress: usize, frames: &[Vec<u8>]) -> Ran {
    let pool = HeapPool::new(BURST, 2048);
    let clock = FakeClock::new(1_000_000_000);
    let mut out = Outputs::new(3);
    let mut burst: Burst<_> = frames.iter().map(|f| pool.frame(f).unwrap()).collect();
    let dispatch = function.process(ingress, &mut burst, &mut out, &mut NodeTimer::start(&clock, 0, true));
    if let Dispatch::All(port) = dispatch {
        assert!(out.ports.iter().all(Burst::is_empty));
        out.ports[port] = burst;
    } else {
        assert!(burst.is_empty());
    }
    let drops = out.drops.counters().clone();
    out.drops.empty();
    let sent = out.ports.iter().map(Burst::len).sum::<usize>();
    let held = Function::<HeapBuf>::held(function);
    assert_eq!(frames.len(), sent + drops.total() as usize + held, "received = sent + drops + held");
    assert_eq!(pool.in_use(), sent + held);
    let bytes = |port: usize| out.ports[port].iter().map(|f| f.data().to_vec()).collect();
    let ran = Ran { out: [0, 1, 2].map(bytes), drops, dispatch };
    function.inner.held.clear();
    drop(out);
    assert_eq!(pool.in_use(), 0);
    ran
}

fn dropped(ran: &Ran) -> Vec<(DropReason, u64)> {
    ran.drops.iter().filter(|&(_, n)| n > 0).collect()
}

/// An IP packet built by etherparse that the stub sends by port `way`.
fn ip4(ttl: u8, way: u8) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4([198, 18, 1, 2], [198, 19, 1, way], ttl).udp(1024, 7);
    builder.write(&mut packet, &[[0xab; 17].as_slice(), &[way]].concat()).unwrap();
    packet
}

fn ip6(hop_limit: u8, way: u8) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv6([0x20; 16], [0x21; 16], hop_limit).udp(1024, 7);
    builder.write(&mut packet, &[[0xab; 17].as_slice(), &[way]].concat()).unwrap();
    packet
}

/// A frame with these labels, as (label, EXP, TTL); without any it is of IP.
fn frame(dst: MacAddr, src: MacAddr, tag: Option<u16>, labels: &[(u32, u8, u8)], packet: &[u8]) -> Vec<u8> {
    let mut bytes = [dst.0, src.0].concat();
    if let Some(tci) = tag {
        bytes.extend([0x81, 0]);
        bytes.extend(tci.to_be_bytes());
    }
    bytes.extend(match (labels, packet.first().map(|b| b >> 4)) {
        ([], Some(6)) => [0x86, 0xdd],
        ([], _) => [0x08, 0x00],
        _ => [0x88, 0x47],
    });
    for (i, &(label, tc, ttl)) in labels.iter().enumerate() {
        let mut entry = [0; 4];
        assert!(Label { label, tc, bottom: i + 1 == labels.len(), ttl }.write(&mut entry));
        bytes.extend(entry);
    }
    bytes.extend(packet);
    bytes
}

fn arriving(labels: &[(u32, u8, u8)], packet: &[u8]) -> Vec<u8> {
    frame(MACS[0], SENDER, None, labels, packet)
}

fn leaving(port: usize, labels: &[(u32, u8, u8)], packet: &[u8]) -> Vec<u8> {
    frame(PEERS[port], MACS[port], None, labels, packet)
}
