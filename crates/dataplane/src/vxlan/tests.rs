mod sole;

use std::{
    net::IpAddr,
    sync::mpsc::{sync_channel, Receiver},
};

use etherparse::{NetHeaders, PacketBuilder, PacketHeaders, TransportHeader};
use packet::{
    heap::{HeapBuf, HeapPool},
    FakeClock, MacAddr,
};
use proptest::prelude::*;

use super::*;
use crate::{
    model::{Event, Link, Network, OverlayConfig, Remote, StaticEntry},
    tables::{Adjacency, Endpoint, Group, MacFilter, Next, Overlay, Tag, GROUP, NO_INTERFACE},
    DropCounters, DropReason, Null, PortMap, Shared,
};

const NEIGHBOUR: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
const PORT_MAC: MacAddr = MacAddr([2, 0, 0, 0, 1, 3]);
const NEAR: [u8; 6] = [2, 0xaa, 0, 0, 0, 1];
const FAR: [u8; 6] = [2, 0xbb, 0, 0, 0, 1];
const HZ: u64 = 1_000;
/// The underlay's port; 0 and 1 are access links, 2 has one in VLAN 5.
const UNDER: usize = 3;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn link(port: usize, vlan: Option<u16>) -> Link {
    Link { port, vlan }
}

/// Networks 7 (IPv4, three access links, two remotes) and 8 (IPv6, one link, one remote).
fn config() -> OverlayConfig {
    let network = |vni, local, access| Network { vni, local: ip(local), access, udp_port: 4789, learn: true };
    let remote = |vni, addr| Remote { vni, addr: ip(addr) };
    OverlayConfig {
        networks: vec![
            network(7, "192.0.2.1", vec![link(0, None), link(1, None), link(2, Some(5))]),
            network(8, "2001:db8::1", vec![link(2, Some(6))]),
        ],
        remotes: vec![remote(7, "192.0.2.2"), remote(7, "192.0.2.3"), remote(8, "2001:db8::2")],
        ..Default::default()
    }
}

fn tables(overlay: Overlay) -> Tables {
    let mut tables = Tables::bare(&[PORT_MAC; 4]);
    tables.adjacencies.push(Adjacency { mtu: 1600, ..Adjacency::forward(3, 3, NEIGHBOUR, PORT_MAC) });
    tables.overlay = Arc::new(overlay);
    tables
}

struct Rig {
    vxlan: Vxlan<HeapPool, Null>,
    shared: Shared<Tables>,
    fdb: Arc<Fdb>,
    events: Receiver<Event>,
    pool: HeapPool,
    clock: FakeClock,
}

/// What a burst came to.
#[derive(Debug)]
struct Ran {
    /// By port.
    out: Vec<Vec<Vec<u8>>>,
    drops: DropCounters,
    dispatch: Dispatch,
    originated: u64,
}

impl Ran {
    fn dropped(&self) -> Vec<(DropReason, u64)> {
        self.drops.iter().filter(|(_, n)| *n > 0).collect()
    }

    fn lens(&self) -> Vec<usize> {
        self.out.iter().map(Vec::len).collect()
    }
}

impl Rig {
    fn new(config: &OverlayConfig) -> Self {
        Self::with(tables(Overlay::new(config, &mut |_| 3, None)), 1 << 12)
    }

    fn with(tables: Tables, capacity: usize) -> Self {
        let shared = Shared::new(tables);
        let (sender, events) = sync_channel(8);
        let (fdb, pool) = (Arc::new(Fdb::new(1024)), HeapPool::new(capacity, 2048));
        let inner = Null::new(PortMap::new(vec![0, 1, 2, 3]));
        let vxlan = Vxlan::new(shared.reader(), inner, Arc::clone(&fdb), pool.clone(), sender, HZ);
        shared.current().overlay.program(&fdb, None);
        Self { vxlan, shared, fdb, events, pool, clock: FakeClock::new(HZ) }
    }

    /// One burst, the books balanced, nothing leaked.
    fn run(&mut self, ingress: usize, frames: &[Vec<u8>]) -> Ran {
        let mut out = Outputs::new(4);
        let mut burst: Burst<HeapBuf> = frames.iter().map(|f| self.pool.frame(f).unwrap()).collect();
        let mut timer = NodeTimer::start(&self.clock, self.clock.now(), true);
        let dispatch = self.vxlan.process(ingress, &mut burst, &mut out, &mut timer);
        if let Dispatch::All(port) = dispatch {
            assert!(out.ports.iter().all(Burst::is_empty));
            out.ports[port] = burst;
        } else {
            assert!(burst.is_empty());
        }
        let drops = out.drops.counters().clone();
        out.drops.empty();
        let sent = out.ports.iter().map(Burst::len).sum::<usize>();
        assert_eq!(frames.len() as u64 + out.originated, sent as u64 + drops.total() + out.punted);
        assert_eq!(self.pool.in_use(), sent);
        let bytes = out.ports.iter().map(|port| port.iter().map(|f| f.data().to_vec()).collect()).collect();
        let ran = Ran { out: bytes, drops, dispatch, originated: out.originated };
        drop(out);
        assert_eq!(self.pool.in_use(), 0);
        ran
    }

    fn counter(&self, name: &str) -> u64 {
        let mut found = None;
        self.vxlan.counters(&mut |n, count| found = if n == name { Some(count) } else { found });
        found.unwrap()
    }
}

/// UDP from one station to another.
fn inner_port(dst: [u8; 6], src: [u8; 6], sport: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    let builder = PacketBuilder::ethernet2(src, dst).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9).udp(sport, 7);
    builder.write(&mut frame, &[0xab; 18]).unwrap();
    frame
}

fn inner(dst: [u8; 6], src: [u8; 6]) -> Vec<u8> {
    inner_port(dst, src, 1024)
}

/// A frame in a tunnel to one of our ends, put together by etherparse.
fn tunnelled(src: &str, vni: u32, inner: &[u8]) -> Vec<u8> {
    let mut payload = vec![8, 0, 0, 0];
    payload.extend((vni << 8).to_be_bytes());
    payload.extend(inner);
    let builder = PacketBuilder::ethernet2(NEIGHBOUR.0, PORT_MAC.0);
    let mut frame = Vec::new();
    match ip(src) {
        IpAddr::V4(src) => {
            builder.ipv4(src.octets(), [192, 0, 2, 1], 64).udp(50000, 4789).write(&mut frame, &payload).unwrap();
        }
        IpAddr::V6(src) => {
            let IpAddr::V6(dst) = ip("2001:db8::1") else { unreachable!() };
            builder.ipv6(src.octets(), dst.octets(), 64).udp(50000, 4789).write(&mut frame, &payload).unwrap();
        }
    }
    frame
}

/// The same without a UDP checksum, as IPv4 tunnels send.
fn unsummed(mut frame: Vec<u8>) -> Vec<u8> {
    let at = if frame[12..14] == [8, 0] { 40 } else { 60 };
    frame[at..at + 2].fill(0);
    frame
}

/// Has both ends of network 7 known: NEAR at port 0, FAR behind 192.0.2.2.
fn acquainted() -> Rig {
    let mut rig = Rig::new(&config());
    rig.run(UNDER, &[unsummed(tunnelled("192.0.2.2", 7, &inner(NEAR, FAR)))]);
    rig.run(0, &[inner(FAR, NEAR)]);
    rig
}

/// Takes an encapsulated frame apart with etherparse, checks every outer field, and returns the UDP source port.
fn check_outer(frame: &[u8], src: &str, dst: &str, vni: u32, inner: &[u8]) -> u16 {
    let packet = PacketHeaders::from_ethernet_slice(frame).unwrap();
    let Some(etherparse::LinkHeader::Ethernet2(ethernet)) = packet.link else { panic!("no Ethernet") };
    assert_eq!((ethernet.destination, ethernet.source), (NEIGHBOUR.0, PORT_MAC.0));
    let Some(TransportHeader::Udp(udp)) = packet.transport else { panic!("no UDP") };
    let payload = packet.payload.slice();
    match packet.net.unwrap() {
        NetHeaders::Ipv4(header, _) => {
            assert_eq!((IpAddr::from(header.source), IpAddr::from(header.destination)), (ip(src), ip(dst)));
            assert_eq!((header.time_to_live, header.dscp.value(), header.dont_fragment), (64, 0, false));
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert_eq!(usize::from(header.total_len), inner.len() + Overlay::OVERHEAD4 - 14);
            assert_eq!(udp.checksum, 0);
        }
        NetHeaders::Ipv6(header, _) => {
            assert_eq!((IpAddr::from(header.source), IpAddr::from(header.destination)), (ip(src), ip(dst)));
            assert_eq!((header.hop_limit, header.traffic_class), (64, 0));
            assert_eq!(usize::from(header.payload_length), inner.len() + Overlay::OVERHEAD6 - 54);
            assert_eq!(udp.checksum, udp.calc_checksum_ipv6(&header, payload).unwrap());
        }
    }
    assert_eq!((udp.destination_port, usize::from(udp.length)), (4789, inner.len() + 16));
    let [v0, v1, v2, v3] = (vni << 8).to_be_bytes();
    assert_eq!(payload[..8], [8, 0, 0, 0, v0, v1, v2, v3]);
    assert_eq!(&payload[8..], inner);
    udp.source_port
}

#[test]
fn a_known_station_is_reached_through_its_tunnel() {
    let mut rig = acquainted();
    let frames: Vec<_> = (0..40).map(|sport| inner_port(FAR, NEAR, sport)).collect();
    let ran = rig.run(0, &frames);
    assert_eq!(ran.dispatch, Dispatch::All(UNDER));
    let mut ports: Vec<_> =
        frames.iter().zip(&ran.out[UNDER]).map(|(i, o)| check_outer(o, "192.0.2.1", "192.0.2.2", 7, i)).collect();
    assert!(ports.iter().all(|port| *port >= 49152));
    let again = rig.run(0, &frames[..1]);
    assert_eq!(check_outer(&again.out[UNDER][0], "192.0.2.1", "192.0.2.2", 7, &frames[0]), ports[0]);
    ports.sort_unstable();
    ports.dedup();
    assert!(ports.len() > 35, "flows differ in the source port");
    assert_eq!((rig.counter("vxlan-encapsulated"), rig.counter("vxlan-decapsulated")), (42, 1));
    assert_eq!((rig.counter("vxlan-learned"), rig.counter("vxlan-flooded")), (2, 1));
}

#[test]
fn over_ipv6_the_udp_checksum_is_there() {
    let mut rig = Rig::new(&config());
    let mut frame = inner(FAR, NEAR);
    frame.push(0xcd);
    let mut sent = frame.clone();
    sent.splice(12..12, [0x81, 0, 0xe0, 6]);
    let ran = rig.run(2, &[sent]);
    assert_eq!(ran.lens(), [0, 0, 0, 1]);
    check_outer(&ran.out[UNDER][0], "2001:db8::1", "2001:db8::2", 8, &frame);
    // And back, with a checksum and without (RFC 6935).
    let back = tunnelled("2001:db8::2", 8, &inner(NEAR, FAR));
    let ran = rig.run(UNDER, &[back.clone(), unsummed(back.clone())]);
    let mut want = inner(NEAR, FAR);
    want.splice(12..12, [0x81, 0, 0, 6]);
    assert_eq!(ran.out[2], [want.clone(), want]);
    let mut wrong = back.clone();
    wrong[90] ^= 1;
    let ran = rig.run(UNDER, &[wrong.clone(), back, wrong]);
    assert_eq!((ran.dropped(), ran.out[2].len()), (vec![(DropReason::VxlanOuter, 2)], 1));
}

#[test]
fn an_unknown_destination_goes_everywhere_but_back() {
    let mut rig = Rig::new(&config());
    let frame = inner(MacAddr::BROADCAST.0, NEAR);
    let ran = rig.run(0, std::slice::from_ref(&frame));
    assert_eq!((ran.lens(), ran.originated), (vec![0, 1, 1, 2], 3));
    assert_eq!(ran.out[1], std::slice::from_ref(&frame));
    let mut tagged = frame.clone();
    tagged.splice(12..12, [0x81, 0, 0, 5]);
    assert_eq!(ran.out[2], [tagged.clone()]);
    let one = check_outer(&ran.out[UNDER][0], "192.0.2.1", "192.0.2.2", 7, &frame);
    assert_eq!(one, check_outer(&ran.out[UNDER][1], "192.0.2.1", "192.0.2.3", 7, &frame));
    // Out of a tunnel: to access links, not into the other tunnel.
    let ran = rig.run(UNDER, &[unsummed(tunnelled("192.0.2.2", 7, &frame))]);
    assert_eq!((ran.lens(), ran.originated), (vec![1, 1, 1, 0], 2));
    // From the tagged link, whose tag is not part of the frame.
    let ran = rig.run(2, &[tagged]);
    assert_eq!((ran.lens(), ran.out[0].clone()), (vec![1, 1, 0, 2], vec![frame]));
    assert_eq!(rig.counter("vxlan-flooded"), 3);
}

#[test]
fn copies_that_cannot_be_made_are_counted() {
    let mut rig = Rig::with(tables(Overlay::new(&config(), &mut |_| 3, None)), 2);
    let ran = rig.run(0, &[inner(MacAddr::BROADCAST.0, NEAR)]);
    assert_eq!((ran.lens().iter().sum::<usize>(), ran.originated), (2, 1));
    assert_eq!(rig.counter("vxlan-copies-missing"), 2);
    // More than a port sends at once.
    let mut rig = Rig::new(&config());
    let ran = rig.run(0, &vec![inner(MacAddr::BROADCAST.0, NEAR); 64]);
    assert_eq!(ran.lens(), [0, 64, 64, 64]);
    assert_eq!(ran.dropped(), [(DropReason::TxFull, 32)]);
    assert_eq!(rig.counter("vxlan-copies-missing"), 32);
}

#[test]
fn nobody_else_there() {
    let mut config = config();
    config.remotes.clear();
    config.networks[0].access.truncate(1);
    let mut rig = Rig::new(&config);
    assert_eq!(rig.run(0, &[inner(FAR, NEAR)]).dropped(), [(DropReason::NoMember, 1)]);
}

#[test]
fn stations_move_and_access_links_talk() {
    let mut rig = acquainted();
    let ran = rig.run(1, &[inner(NEAR, [2, 9, 9, 9, 9, 9])]);
    assert_eq!(ran.dispatch, Dispatch::All(0));
    assert_eq!(rig.run(0, &[inner(NEAR, FAR)]).dropped(), [(DropReason::SamePort, 1)]);
    // FAR has been seen at port 0 now.
    assert_eq!(rig.run(1, &[inner(FAR, [2, 9, 9, 9, 9, 9])]).dispatch, Dispatch::All(0));
    let ran = rig.run(UNDER, &[unsummed(tunnelled("192.0.2.3", 7, &inner(NEAR, FAR)))]);
    assert_eq!(ran.out[0], [inner(NEAR, FAR)]);
    let ran = rig.run(1, &[inner(FAR, NEAR)]);
    check_outer(&ran.out[UNDER][0], "192.0.2.1", "192.0.2.3", 7, &inner(FAR, NEAR));
    // Into a tunnel it came out of, or another: never.
    let ran = rig.run(UNDER, &[unsummed(tunnelled("192.0.2.2", 7, &inner(FAR, [2, 8, 8, 8, 8, 8])))]);
    assert_eq!(ran.dropped(), [(DropReason::SamePort, 1)]);
    // Forgotten after the ageing time.
    rig.clock.advance(HZ * 301);
    assert_eq!(rig.run(1, &[inner(FAR, NEAR)]).originated, 3);
}

#[test]
fn learning_from_unknown_ends() {
    let mut rig = Rig::new(&config());
    let strange = unsummed(tunnelled("192.0.2.77", 7, &inner(NEAR, FAR)));
    let ran = rig.run(UNDER, &[strange.clone(), strange.clone()]);
    assert_eq!(ran.lens(), [2, 2, 2, 0], "forwarded, though not learned");
    let heard = Event::Remote { vni: 7, addr: ip("192.0.2.77") };
    assert_eq!(rig.events.try_iter().collect::<Vec<_>>(), [heard], "once a second");
    assert_eq!(rig.counter("vxlan-learned"), 0);
    rig.clock.advance(HZ);
    rig.run(UNDER, std::slice::from_ref(&strange));
    assert_eq!(rig.events.try_iter().count(), 1);
    // The control side makes it a tunnel: learned, but not flooded to.
    let mut known = config();
    known.learned.push(Remote { vni: 7, addr: ip("192.0.2.77") });
    let before = rig.shared.current();
    let overlay = Overlay::new(&known, &mut |_| 3, Some(&before.overlay));
    rig.shared.publish(tables(overlay));
    rig.run(UNDER, std::slice::from_ref(&strange));
    let ran = rig.run(0, &[inner(FAR, NEAR)]);
    check_outer(&ran.out[UNDER][0], "192.0.2.1", "192.0.2.77", 7, &inner(FAR, NEAR));
    assert_eq!(rig.run(0, &[inner([6; 6], NEAR)]).lens(), [0, 1, 1, 2]);
    // With learning off it is refused.
    known.networks[0].learn = false;
    let mut rig = Rig::new(&known);
    assert_eq!(rig.run(UNDER, &[strange]).dropped(), [(DropReason::VxlanRemote, 1)]);
    rig.run(0, &[inner(FAR, NEAR)]);
    assert_eq!((rig.counter("vxlan-learned"), rig.events.try_iter().count()), (0, 0));
}

#[test]
fn static_stations_stay_and_follow_the_configuration() {
    let mut fixed = config();
    fixed.entries.push(StaticEntry { vni: 7, mac: MacAddr(FAR), addr: ip("192.0.2.50") });
    let mut rig = Rig::new(&fixed);
    rig.run(UNDER, &[unsummed(tunnelled("192.0.2.2", 7, &inner(NEAR, FAR)))]);
    let ran = rig.run(0, &[inner(FAR, NEAR)]);
    check_outer(&ran.out[UNDER][0], "192.0.2.1", "192.0.2.50", 7, &inner(FAR, NEAR));
    let before = rig.shared.current();
    rig.shared.publish(tables(Overlay::new(&config(), &mut |_| 3, Some(&before.overlay))));
    let now = rig.shared.current();
    assert_eq!(now.overlay.program(&rig.fdb, Some(&before.overlay)), 0);
    assert_eq!(rig.run(0, &[inner(FAR, NEAR)]).originated, 3, "unknown again");
}

#[test]
fn numbers_stay_over_recompilation() {
    let full = config();
    let first = Overlay::new(&full, &mut |_| 3, None);
    let of = |overlay: &Overlay, addr| overlay.domain_of(7).and_then(|d| overlay.peer(d, ip(addr)));
    let mut less = config();
    less.remotes.remove(0);
    less.networks.remove(1);
    less.networks[0].access.remove(0);
    let second = Overlay::new(&less, &mut |_| 3, Some(&first));
    assert_eq!(of(&second, "192.0.2.3"), of(&first, "192.0.2.3"));
    assert_eq!((of(&second, "192.0.2.2"), second.domain_of(8)), (None, None));
    let third = Overlay::new(&full, &mut |_| 3, Some(&second));
    assert_ne!(of(&third, "192.0.2.2"), of(&first, "192.0.2.2"), "a number given back is not soon given again");
    assert_eq!(third.domain_of(7), first.domain_of(7));
    let tunnel = of(&third, "192.0.2.2").unwrap();
    assert_eq!(third.endpoint(tunnel), Some(Endpoint::Tunnel(ip("192.0.2.2"))));
    assert_eq!(third.endpoint(1), Some(Endpoint::Access(link(1, None))));
}

#[test]
fn what_makes_no_sense_is_left_out() {
    let mut odd = config();
    odd.remotes.push(Remote { vni: 7, addr: ip("2001:db8::9") });
    odd.remotes.push(Remote { vni: 9, addr: ip("192.0.2.9") });
    odd.remotes.push(odd.remotes[0]);
    odd.networks.push(Network { access: vec![link(0, None)], ..odd.networks[0].clone() });
    odd.networks.push(Network { vni: 10, ..odd.networks[0].clone() });
    let mut rig = Rig::new(&odd);
    assert_eq!(rig.run(0, &[inner(FAR, NEAR)]).lens(), [0, 1, 1, 2]);
}

#[test]
fn too_long_is_never_silent() {
    let mut rig = acquainted();
    // 1600 bytes of outer packet: 36 of headers and 1564 of frame.
    for (len, fits) in [(1564, true), (1565, false), (1900, false)] {
        let mut frame = inner(FAR, NEAR);
        frame.resize(len, 0);
        let ran = rig.run(0, &[frame]);
        assert_eq!(ran.drops[DropReason::VxlanMtu], u64::from(!fits), "{len}");
    }
    assert_eq!(rig.counter("vxlan-mtu-exceeded"), 1936);
    // Flooded, the access links still get it; each tunnel counts.
    let mut frame = inner(MacAddr::BROADCAST.0, NEAR);
    frame.resize(1565, 0);
    let ran = rig.run(0, &[frame]);
    assert_eq!((ran.lens(), ran.dropped()), (vec![0, 1, 1, 0], vec![(DropReason::VxlanMtu, 2)]));
}

#[test]
fn the_underlay_decides_at_every_burst() {
    let mut rig = acquainted();
    let publish = |rig: &mut Rig, change: &dyn Fn(&mut Tables)| {
        let before = rig.shared.current();
        let mut next = tables(Overlay::new(&config(), &mut |_| 3, Some(&before.overlay)));
        change(&mut next);
        rig.shared.publish(next);
    };
    let cases = [
        (Next::Glean, DropReason::NoNeighbour),
        (Next::Unresolved, DropReason::NoNeighbour),
        (Next::Drop(DropReason::NoRoute), DropReason::VxlanNoRoute),
        (Next::Drop(DropReason::BlackHole), DropReason::BlackHole),
        (Next::Local, DropReason::VxlanNoRoute),
    ];
    for (next, reason) in cases {
        publish(&mut rig, &|tables| tables.adjacencies[3].next = next);
        assert_eq!(rig.run(0, &[inner(FAR, NEAR)]).dropped(), [(reason, 1)], "{next:?}");
        let now = rig.shared.current();
        assert_eq!(now.unresolved_tunnels().count(), if next == Next::Glean { 3 } else { 0 });
    }
    // An outer tag, and labels.
    publish(&mut rig, &|tables| tables.adjacencies[3].tag = Tag::Vid(33));
    let ran = rig.run(0, &[inner(FAR, NEAR)]);
    assert_eq!(ran.out[UNDER][0][12..18], [0x81, 0, 0, 33, 8, 0]);
    check_outer(&ran.out[UNDER][0], "192.0.2.1", "192.0.2.2", 7, &inner(FAR, NEAR));
    let labelled = |tables: &mut Tables| {
        let stack = crate::tables::Stack { entries: [[0, 1, 0, 0], [0, 1, 0x10, 0], [0; 4], [0; 4]], len: 2 };
        tables.labels = Arc::new(crate::tables::Labels::new(&[], vec![stack], &mut |_| 0));
        tables.adjacencies[3].push = 1;
    };
    publish(&mut rig, &labelled);
    let ran = rig.run(0, &[inner(FAR, NEAR)]);
    assert_eq!(ran.out[UNDER][0][12..22], [0x88, 0x47, 0, 1, 0, 64, 0, 1, 0x11, 64]);
    publish(&mut rig, &|tables| {
        labelled(tables);
        // The frame of 60 bytes with 36 of headers and two labels is 104.
        tables.adjacencies[3].mtu = 103;
    });
    assert_eq!(rig.run(0, &[inner(FAR, NEAR)]).dropped(), [(DropReason::VxlanMtu, 1)], "labels count");
}

#[test]
fn flows_spread_over_equal_paths_and_stay() {
    let mut rig = acquainted();
    let before = rig.shared.current();
    let mut next = tables(Overlay::new(&config(), &mut |_| GROUP, Some(&before.overlay)));
    next.adjacencies.push(Adjacency { mtu: 1600, ..Adjacency::forward(2, 2, NEIGHBOUR, PORT_MAC) });
    next.groups.push(Group { paths: [3, 4].into() });
    rig.shared.publish(next);
    let frames: Vec<_> = (0..64).map(|sport| inner_port(FAR, NEAR, sport)).collect();
    let first = rig.run(0, &frames);
    assert!(first.out[2].len() > 10 && first.out[3].len() > 10, "{:?}", first.lens());
    assert_eq!(rig.run(0, &frames).lens(), first.lens());
}

#[test]
fn every_outer_form_is_taken_and_the_rest_is_the_routers() {
    let mut rig = acquainted();
    let plain = unsummed(tunnelled("192.0.2.2", 7, &inner(NEAR, FAR)));
    let mut tagged = plain.clone();
    tagged.splice(12..12, [0x81, 0, 0, 9]);
    let mut padded = plain.clone();
    padded.extend([0; 9]);
    let mut options = plain.clone();
    options.splice(34..34, [1, 1, 1, 0]);
    (options[14], options[17]) = (0x46, options[17] + 4);
    options[24..26].fill(0);
    let sum = packet::checksum::finish(packet::checksum::sum(&options[14..38]));
    options[24..26].copy_from_slice(&sum.to_be_bytes());
    let mut reserved = plain.clone();
    (reserved[42], reserved[49]) = (0xff, 0xee);
    let summed = tunnelled("192.0.2.2", 7, &inner(NEAR, FAR));
    let ran = rig.run(UNDER, &[plain.clone(), tagged.clone(), padded, options, reserved, summed]);
    assert_eq!(ran.out[0], vec![inner(NEAR, FAR); 6]);
    assert_eq!(ran.dispatch, Dispatch::All(0));

    let change = |at: usize, value: u8| {
        let mut frame = plain.clone();
        frame[at] = value;
        frame
    };
    // To the router: another port, address, protocol, MAC address; a fragment; a bad header checksum.
    let foreign = [change(37, 0), change(33, 9), change(23, 6), change(0, 3), change(20, 0x20), change(24, 9)];
    let ran = rig.run(UNDER, &foreign);
    assert_eq!((ran.dispatch, ran.out[3].len()), (Dispatch::All(3), 6));
    // Both kinds in one burst.
    let ran = rig.run(UNDER, &[foreign[0].clone(), plain.clone(), foreign[1].clone(), change(42, 0)]);
    assert_eq!((ran.out[3].clone(), ran.out[0].clone()), (foreign[..2].to_vec(), vec![inner(NEAR, FAR)]));
    assert_eq!(ran.dropped(), [(DropReason::VxlanHeader, 1)]);

    for (frame, reason) in [
        (change(42, 0xf7), DropReason::VxlanHeader),
        (change(48, 9), DropReason::VxlanVni),
        (change(48, 8), DropReason::VxlanVni),
        (change(39, 7), DropReason::VxlanOuter),
        (change(38, 1), DropReason::VxlanOuter),
        (change(39, 15), DropReason::VxlanHeader),
        (change(39, 29), DropReason::Runt),
        (change(41, 1), DropReason::VxlanOuter),
        (change(56, 1), DropReason::BridgeSource),
    ] {
        assert_eq!(rig.run(UNDER, &[frame]).dropped(), [(reason, 1)]);
    }
    // VLAN interfaces on the port: only their tags are taken.
    let before = rig.shared.current();
    let mut next = tables(Overlay::new(&config(), &mut |_| 3, Some(&before.overlay)));
    let mut vlans = Box::new([NO_INTERFACE; 4096]);
    vlans[9] = 3;
    next.ports[UNDER].vlans = Some(vlans);
    next.ports[UNDER].macs = MacFilter::only(PORT_MAC);
    rig.shared.publish(next);
    let mut other = tagged.clone();
    other[15] = 8;
    assert_eq!(rig.run(UNDER, &[tagged, other]).lens(), [1, 0, 0, 1]);
}

#[test]
fn access_frames_that_are_not_carried() {
    let mut rig = acquainted();
    let frames =
        [inner([1, 0x80, 0xc2, 0, 0, 0xe], NEAR), inner(FAR, [3, 0, 0, 0, 0, 1]), inner(FAR, NEAR)[..13].to_vec()];
    let mut want = vec![(DropReason::BridgeReserved, 1), (DropReason::BridgeSource, 1), (DropReason::Runt, 1)];
    want.sort_unstable();
    assert_eq!(rig.run(0, &frames).dropped(), want);
    // A port with VLAN access links: other frames are the router's.
    let frame = inner(FAR, NEAR);
    let mut tagged = frame.clone();
    tagged.splice(12..12, [0x81, 0, 0, 77]);
    assert_eq!(rig.run(2, &[frame, tagged]).lens(), [0, 0, 2, 0]);
}

#[test]
fn without_headroom_a_frame_is_dropped() {
    let mut rig = acquainted();
    let mut out = Outputs::new(4);
    let mut burst: Burst<_> = (0..3).map(|_| rig.pool.frame(&inner(FAR, NEAR)).unwrap()).collect();
    assert!(burst[1].prepend(100));
    burst[1].data_mut()[..14].copy_from_slice(&inner(FAR, NEAR)[..14]);
    let mut timer = NodeTimer::start(&rig.clock, 0, true);
    assert_eq!(rig.vxlan.process(0, &mut burst, &mut out, &mut timer), Dispatch::All(UNDER));
    assert_eq!((burst.len(), out.drops.counters()[DropReason::NoBuffer]), (2, 1));
    assert_eq!(rig.counter("vxlan-encapsulated"), 1 + 2);
}

#[test]
fn every_truncation_is_survived_and_counted() {
    let mut rig = acquainted();
    let back4 = unsummed(tunnelled("192.0.2.2", 7, &inner(NEAR, FAR)));
    let back6 = tunnelled("2001:db8::2", 8, &inner(NEAR, FAR));
    for (ingress, frame) in [(0, inner(FAR, NEAR)), (2, inner(FAR, NEAR)), (UNDER, back4), (UNDER, back6)] {
        for len in 0..frame.len() {
            rig.run(ingress, &[frame[..len].to_vec()]);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_survived(
        ingress in 0usize..5,
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..30),
        edits in prop::collection::vec((0usize..110, any::<u8>(), any::<bool>()), 0..30),
    ) {
        let mut rig = acquainted();
        let mut frames = frames;
        for (at, value, ip6) in edits {
            let (src, vni) = if ip6 { ("2001:db8::2", 8) } else { ("192.0.2.2", 7) };
            let mut frame = tunnelled(src, vni, &inner(NEAR, FAR));
            if value & 1 == 0 {
                frame = unsummed(frame);
            }
            if let Some(byte) = frame.get_mut(at) {
                *byte = value;
            }
            frames.push(frame);
        }
        rig.run(ingress, &frames);
        rig.run(UNDER, &frames);
    }
}
