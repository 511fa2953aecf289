//! Frames that wait for a neighbour, requests for it, and probes.

use super::*;
use crate::tables::{Group, Probe, GROUP};

fn to_far(host: u8) -> Vec<u8> {
    udp4(HOST4, [10, 1, 0, host], 4)
}

fn request(port: usize, from: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    let mut frame = arp_frame(1, MacAddr::BROADCAST, (OWN[port], from), (MacAddr::default(), target));
    frame.resize(60, 0);
    frame
}

#[test]
fn a_frame_waits_is_asked_for_and_goes_on() {
    let mut rig = Rig::new();
    assert!(!rig.local.due(&rig.tables));
    assert_eq!(rig.resolve(&to_far(5), FAR4, GLEAN), [request(1, [10, 1, 0, 1], FAR4)]);
    assert!(rig.resolve(&to_far(5), FAR4, GLEAN).is_empty(), "asked already");
    assert!(rig.local.due(&rig.tables));
    assert_eq!(rig.poll(), None);
    let routes: [(Prefix, u32); 2] =
        [("10.1.0.5/32".parse().unwrap(), FORWARD), ("10.1.0.0/24".parse().unwrap(), GLEAN)];
    rig.tables.fib4 = Arc::new(Fib4::new(&routes));
    assert_eq!(rig.poll(), None, "not looked at again at once");
    rig.now += HZ / 1000;
    assert_eq!(rig.poll(), Some((0, vec![to_far(5); 2])));
    assert_eq!((rig.local.held(), rig.local.due(&rig.tables)), (0, false));
    rig.balance();
    assert_eq!(rig.counts(), [("arp-requests-sent", 1)]);
}

#[test]
fn an_ipv6_neighbour_is_solicited() {
    let mut rig = Rig::new();
    let target = ip6("2001:db8:1::abcd:5");
    let got = rig.resolve(&udp6(host6(), target, 4), target, GLEAN);
    let macs = (MacAddr([0x33, 0x33, 0xff, 0xcd, 0, 5]), OWN[1]);
    let ends = (ip6("2001:db8:1::1"), ip6("ff02::1:ffcd:5"));
    assert_eq!(got, [nd_frame(macs, ends, (135, 0), target, Some((1, OWN[1])))]);
    assert_eq!(rig.counts(), [("nd-solicitations-sent", 1), ("frames-waiting", 1)]);
}

#[test]
fn the_newest_three_of_a_next_hop_stay_and_sixty_four_in_all() {
    let mut rig = Rig::new();
    for payload in 0..5 {
        rig.resolve(&udp4(HOST4, FAR4, payload), FAR4, GLEAN);
        rig.resolve(&udp4(HOST4, [10, 9, 0, payload as u8], payload), [10, 9, 0, payload as u8], UNRESOLVED);
    }
    assert_eq!((rig.local.held(), rig.drops()), (6, vec![(DropReason::NoNeighbour, 4)]));
    for host in 10..110 {
        rig.resolve(&to_far(host), [10, 1, 0, host], GLEAN);
    }
    assert_eq!((rig.local.held(), rig.drops()), (64, vec![(DropReason::NoNeighbour, 42)]));
    for adjacency in [GLEAN, UNRESOLVED] {
        rig.tables.adjacencies[adjacency as usize].next = Next::Forward;
    }
    let (_, frames) = rig.poll().unwrap();
    let newest = [2, 3, 4].map(|payload| udp4(HOST4, FAR4, payload));
    assert!(frames.len() == 64 && newest.iter().all(|frame| frames.contains(frame)));
    rig.balance();
}

#[test]
fn a_neighbour_is_asked_for_once_a_second_as_long_as_frames_come() {
    let mut rig = Rig::new();
    let mut asked = 0;
    for ms in 0..5000 {
        rig.now = 17 + ms * (HZ / 1000);
        asked += rig.resolve(&to_far(5), FAR4, GLEAN).len();
        assert_eq!(rig.poll(), None);
        asked += rig.collect(1).len();
    }
    assert_eq!(asked, 5);
    rig.now += 60 * HZ;
    for i in 0..2000u16 {
        let [a, b] = i.to_be_bytes();
        rig.resolve(&to_far(5), [10, 8, a, b], GLEAN);
    }
    assert_eq!(rig.counts().first(), Some(&("arp-requests-sent", 105)));
}

#[test]
fn patience_ends_after_three_seconds_and_the_source_is_told() {
    let mut rig = Rig::new();
    rig.resolve(&to_far(5), FAR4, GLEAN);
    rig.now += 1;
    // One in a tunnel, whose source has no part in this.
    rig.resolve(&to_far(6), [10, 9, 0, 1], UNRESOLVED);
    rig.now = 17 + 3 * HZ - 1;
    rig.poll();
    rig.out.ports[1].drain(..);
    rig.now += HZ;
    rig.sent += 1;
    assert_eq!(rig.poll(), None);
    let told = rig.collect(0);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0][34..36], [3, 1]);
    assert_eq!(told[0][26..34], [US4, HOST4].concat());
    assert_eq!((rig.drops(), rig.local.held()), (vec![(DropReason::NoNeighbour, 2)], 0));
}

#[test]
fn frames_of_one_port_at_a_time_go_on() {
    let mut rig = Rig::new();
    for port in [0, 1, 0] {
        let (frame, at) = (rig.frame(&to_far(port as u8)), Ingress { port, interface: port });
        rig.local.resolve(frame, [10, 9, 0, 1].into(), UNRESOLVED, at, &rig.tables, &mut rig.out, rig.now);
    }
    rig.tables.adjacencies[UNRESOLVED as usize].next = Next::Drop(DropReason::BlackHole);
    assert_eq!(rig.poll(), Some((0, vec![to_far(0); 2])));
    assert_eq!(rig.poll(), Some((1, vec![to_far(1)])));
    assert_eq!(rig.poll(), None);
    rig.balance();
}

#[test]
fn a_group_must_be_known_as_a_whole_and_a_labelled_frame_has_only_its_adjacency() {
    let mut rig = Rig::new();
    rig.resolve(&to_far(5), [10, 9, 0, 1], UNRESOLVED);
    rig.resolve(&[7; 60], Ipv4Addr::UNSPECIFIED, UNRESOLVED);
    let group = |rig: &mut Rig, paths: [u32; 2]| {
        rig.tables.groups = vec![Group { paths: paths.into() }];
        rig.tables.fib4 = Arc::new(Fib4::new(&[("10.9.0.0/16".parse().unwrap(), GROUP)]));
        rig.now += HZ / 1000;
        rig.poll()
    };
    assert_eq!(group(&mut rig, [FORWARD, UNRESOLVED]), None);
    assert_eq!(group(&mut rig, [FORWARD, GATEWAY]), Some((0, vec![to_far(5)])));
    assert_eq!(group(&mut rig, [FORWARD, GATEWAY]), None);
    rig.tables.adjacencies[UNRESOLVED as usize].next = Next::Forward;
    assert_eq!(group(&mut rig, [FORWARD, GATEWAY]), Some((0, vec![vec![7; 60]])));
}

#[test]
fn release_lets_everything_go_in_silence() {
    let mut rig = Rig::new();
    rig.resolve(&to_far(5), FAR4, GLEAN);
    rig.resolve(&to_far(6), [10, 1, 0, 6], GLEAN);
    rig.local.release();
    assert_eq!(rig.poll(), None);
    assert!(rig.collect(0).is_empty());
    assert_eq!((rig.drops(), rig.local.held()), (vec![(DropReason::NoNeighbour, 2)], 0));
}

#[test]
fn a_broadcast_address_is_not_asked_for() {
    let mut rig = Rig::new();
    for host in [0, 255] {
        assert!(rig.resolve(&to_far(host), [10, 1, 0, host], GLEAN).is_empty());
    }
    assert_eq!(rig.drops(), [(DropReason::MartianDestination, 2)]);
    rig.resolve(&to_far(5), FAR4, 99);
    assert_eq!(rig.drops(), [(DropReason::NoNeighbour, 1)]);
}

#[test]
fn an_empty_pool_withholds_the_request_and_not_the_frame() {
    let mut rig = Rig::new();
    let all: Vec<_> = (1..256).map(|_| rig.pool.frame(&[0; 60]).unwrap()).collect();
    let frame = rig.frame(&to_far(5));
    rig.local.resolve(frame, FAR4.into(), GLEAN, AT, &rig.tables, &mut rig.out, rig.now);
    assert_eq!(rig.counts(), [("neighbour-requests-withheld", 1), ("frames-waiting", 1)]);
    drop(all);
    rig.balance();
}

#[test]
fn probes_go_out_once_a_round_and_from_one_lcore() {
    let mut rig = Rig::new();
    let probes = (0..70u8).map(|host| Probe { interface: 1, addr: [10, 1, 0, host].into() });
    rig.tables.probes = probes.collect();
    rig.tables.probes.push(Probe { interface: 2, addr: [10, 7, 0, 9].into() });
    rig.tables.probes.push(Probe { interface: 99, addr: FAR4.into() });
    assert!(!rig.local.due(&rig.tables), "no round yet");
    rig.tables.probe_round = 1;
    let mut polls = Vec::new();
    while rig.local.due(&rig.tables) {
        assert_eq!(rig.poll(), None);
        if rig.out.ports[0].is_empty() {
            polls.push(rig.collect(1));
        } else {
            let of_vlan: Vec<_> = rig.out.ports[0].drain(..).map(|f| f.data().to_vec()).collect();
            let mut want = tagged(request(0, [10, 7, 0, 1], [10, 7, 0, 9]), [0, 7]);
            want.truncate(60);
            assert_eq!(of_vlan, [want]);
            rig.sent += 1;
            polls.push(rig.collect(1));
        }
    }
    assert_eq!(polls.iter().map(Vec::len).collect::<Vec<_>>(), [32, 32, 6]);
    assert_eq!(polls[2][5], request(1, [10, 1, 0, 1], [10, 1, 0, 69]));
    assert_eq!(rig.counts(), [("arp-requests-sent", 71)]);
    rig.local.prober = false;
    rig.tables.probe_round = 2;
    assert!(rig.local.due(&rig.tables));
    rig.poll();
    assert!(!rig.local.due(&rig.tables) && rig.collect(1).is_empty());
}
