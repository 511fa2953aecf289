//! Equal paths, unresolved ones, short ones and labelled ones.

use std::{collections::HashSet, net::IpAddr};

use super::*;
use crate::{
    local::Fault,
    tables::{Group, Labels, Stack, Tag, GROUP},
};

/// [`tables`] with these routes alone.
fn routes(routes: &[(&str, u32)]) -> Tables {
    let routes: Vec<(Prefix, u32)> = routes.iter().map(|(p, hop)| (p.parse().unwrap(), *hop)).collect();
    Tables { fib4: Arc::new(Fib4::new(&routes)), fib6: Arc::new(Fib6::new(&routes)), ..tables() }
}

fn flow(i: u16) -> Vec<u8> {
    let [hi, lo] = i.to_be_bytes();
    let good = if i.is_multiple_of(2) { good4() } else { good6() };
    let ports = if i.is_multiple_of(2) { 34 } else { 54 };
    patched(good, &[(ports, hi), (ports + 1, lo)])
}

#[test]
fn flows_spread_over_equal_paths_and_stay_there() {
    let mut tables = routes(&[("198.19.0.0/16", GROUP), ("2001:2::/32", GROUP)]);
    tables.groups.push(Group { paths: Box::new([TO, TO + 1, TO + 1, TO + 1]) });
    let mut rig = Rig::new(tables);
    let mut sides: [HashSet<Vec<u8>>; 2] = Default::default();
    // Twice: in bursts of another size, and with a tag. The tag does not belong to the flow.
    for order in [false, true] {
        for chunk in (0..1024u16).collect::<Vec<_>>().chunks(BURST - usize::from(order)) {
            let frame = |&i: &u16| if order { tagged(flow(i)) } else { flow(i) };
            let ran = rig.run(0, &chunk.iter().map(frame).collect::<Vec<_>>());
            assert_eq!((ran.drops, ran.local), (vec![], 0));
            for (side, out) in sides.iter_mut().zip(ran.out) {
                side.extend(out.into_iter().map(|f| f[if order { 18 } else { 14 }..].to_vec()));
            }
        }
    }
    let [near, far] = sides.each_ref().map(HashSet::len);
    assert_eq!(near + far, 1024, "no flow went both ways");
    assert!((192..320).contains(&near), "a quarter of 1024: {near}");
}

#[test]
fn each_path_of_a_group_does_what_it_says() {
    for (path, want) in [
        (ADJ_LOCAL, RouteOutcome::Deliver),
        (UNRESOLVED, RouteOutcome::Resolve(UNRESOLVED)),
        (7, RouteOutcome::Drop(DropReason::BlackHole)),
    ] {
        let mut tables = routes(&[("198.19.0.0/16", GROUP)]);
        tables.groups.push(Group { paths: Box::new([path]) });
        assert_eq!(outcome(&tables, &good4()), Some(want));
    }
}

#[test]
fn unknown_neighbours_are_resolved_with_the_destination() {
    let glean = udp4([198, 18, 1, 2], [192, 0, 2, 77], 64);
    let glean6 = udp6("2001:2:0:1::2", "2001:db8:1::77", 64);
    let gateway = udp4([198, 18, 1, 2], [203, 0, 113, 5], 64);
    for (frame, hop) in [(&glean, GLEAN), (&glean6, GLEAN), (&gateway, UNRESOLVED)] {
        assert_eq!(outcome(&tables(), frame), Some(RouteOutcome::Resolve(hop)));
    }
    let frames = [good6(), glean, good4(), glean6, gateway];
    assert_eq!(run(0, &frames).local, 3);
    // The destinations that go with them.
    let pool = HeapPool::new(8, 128);
    let burst: Burst<_> = frames.iter().map(|f| pool.frame(f).unwrap()).collect();
    let (mut scratch, tables) = (RouteScratch::default(), tables());
    scratch.input(&burst, &tables.ports[0], &tables.interfaces);
    let got = [1, 3, 4].map(|i| scratch.dst(i));
    assert_eq!(got, ["192.0.2.77", "2001:db8:1::77", "203.0.113.5"].map(|a| a.parse::<IpAddr>().unwrap()));
}

#[test]
fn the_mtu_counts_the_packet_and_neither_header_nor_padding() {
    let [may, with_df] = [0, 0x40].map(|flags| patched(good4(), &[(20, flags)]));
    let refuse = |mtu| Some(RouteOutcome::Refuse(DropReason::Mtu, Fault::TooBig(mtu)));
    for (frame, len, beyond) in [
        (may.clone(), 46, Some(RouteOutcome::Drop(DropReason::Mtu))),
        (tagged(may), 46, Some(RouteOutcome::Drop(DropReason::Mtu))),
        (with_df.clone(), 46, refuse(45)),
        (good6(), 66, refuse(65)),
        (tagged(with_df), 46, refuse(45)),
        (tagged(good6()), 66, refuse(65)),
    ] {
        let padded = [&frame[..], &[0; 20]].concat();
        for (mtu, want) in [(len, None), (len - 1, beyond)] {
            let mut tables = tables();
            tables.adjacencies[TO as usize + 1].mtu = mtu;
            assert_eq!(outcome(&tables, &padded), want, "{frame:02x?} over {mtu}");
        }
    }
    // A long one in the burst costs the others nothing.
    let mut tables = tables();
    tables.adjacencies[TO as usize + 1].mtu = 50;
    let ran = Rig::new(tables).run(0, &[good4(), good6(), with_options(good4())]);
    assert_eq!(ran.out[1], [routed(&good4(), 1), routed(&with_options(good4()), 1)]);
    assert_eq!((ran.drops, ran.local), (vec![(DropReason::Mtu, 1)], 1));
}

/// [`tables`] in which port 1 takes packets behind labels 16 and 17, or 18 alone.
fn pushing(push: u16) -> Tables {
    let mut tables = tables();
    let stacks = vec![
        Stack { entries: [[0, 1, 0, 0], [0, 1, 0x10, 0], [9; 4], [9; 4]], len: 2 },
        Stack { entries: [[0, 1, 0x20, 0]; 4], len: 1 },
    ];
    tables.labels = Arc::new(Labels::new(&[], stacks, &mut |_| 0));
    tables.adjacencies[TO as usize + 1].push = push;
    tables
}

#[test]
fn labels_go_between_the_headers_with_the_packets_ttl_and_precedence() {
    // Traffic class 0xb8 (EF): the upper three bits are 5.
    let ef4 = || patched(good4(), &[(15, 0xb8)]);
    let ef6 = || patched(good6(), &[(14, 0x6b), (15, 0x80)]);
    let two = [0, 1, 0x0a, 63, 0, 1, 0x1b, 63];
    for (push, entries) in [(1, &two[..]), (2, &[0, 1, 0x2b, 63][..])] {
        for frame in [ef4(), ef6(), with_options(ef4())] {
            let mut want = routed(&frame, 1);
            want.splice(12..14, [&[0x88, 0x47], entries].concat());
            let ran = Rig::new(pushing(push)).run(0, &[frame.clone(), tagged(frame)]);
            assert_eq!(ran.out[1], [want.clone(), tagged(want)]);
            assert_eq!(ran.dispatch, Dispatch::All(1));
        }
    }
    let mut tables = pushing(2);
    tables.adjacencies[TO as usize + 1].tag = Tag::Vid(5);
    let mut want = routed(&good4(), 1);
    want.splice(12..14, [0x81, 0, 0, 5, 0x88, 0x47, 0, 1, 0x21, 63]);
    assert_eq!(Rig::new(tables).run(0, &[good4()]).out[1], [want]);
}

#[test]
fn labels_count_for_the_mtu_and_missing_ones_drop() {
    let mut tables = pushing(1);
    tables.adjacencies[TO as usize + 1].mtu = 73;
    assert_eq!(outcome(&tables, &good6()), Some(RouteOutcome::Refuse(DropReason::Mtu, Fault::TooBig(65))));
    tables.adjacencies[TO as usize + 1].mtu = 74;
    assert_eq!(outcome(&tables, &good6()), None);
    assert_eq!(Rig::new(pushing(3)).run(0, &[good6()]).drops, [(DropReason::NoRoute, 1)]);
}

#[test]
fn a_frame_without_headroom_is_dropped_and_the_rest_sent() {
    let tables = pushing(1);
    let pool = HeapPool::new(4, 256);
    for split in [false, true] {
        let mut burst: Burst<_> = [good4(), good4(), good6()].iter().map(|f| pool.frame(f).unwrap()).collect();
        // All headroom used up: the frame stands at the very front of its memory.
        assert!(burst[1].prepend(128));
        let frame = [&good4()[..], &[0; 128]].concat();
        burst[1].data_mut().copy_from_slice(&frame);
        if split {
            burst.push(pool.frame(&udp4([198, 19, 1, 2], [198, 18, 0, 1], 9)).unwrap());
        }
        let (mut scratch, mut out, mut aside) = (RouteScratch::default(), Outputs::new(2), Burst::new());
        scratch.input(&burst, &tables.ports[0], &tables.interfaces);
        scratch.lookup(&burst, &tables);
        let port = scratch.rewrite(&mut burst, &tables, &mut out.drops);
        assert_eq!(port, (!split).then_some(1));
        if split {
            scratch.split(&mut burst, &tables, &mut out, &mut aside);
            assert_eq!((out.ports[0].len(), aside.len()), (1, 0));
        }
        let left = if split { &out.ports[1] } else { &burst };
        assert_eq!(left.len(), 2);
        assert!(left.iter().all(|f| f.data()[12..14] == [0x88, 0x47] && f.data()[17] == 63));
        assert_eq!(out.drops.counters()[DropReason::NoBuffer], 1);
    }
    assert_eq!(pool.in_use(), 0);
}
