//! Frames that are not forwarded, and bytes that are no frames.

use proptest::prelude::*;

use super::*;

#[test]
fn each_fault_moves_its_own_counter_alone() {
    let from = |src: [u8; 4]| udp4(src, [198, 19, 1, 2], 64);
    let to = |dst: [u8; 4]| udp4([198, 18, 1, 2], dst, 64);
    let mut wrong_sum = good4();
    wrong_sum[24] ^= 1;
    let cases = [
        (vec![0; 13], DropReason::Runt),
        (good4()[..33].to_vec(), DropReason::Runt),
        (good6()[..53].to_vec(), DropReason::Runt),
        (tagged(good4())[..17].to_vec(), DropReason::Runt),
        (patched(good4(), &[(0, 0xff)]), DropReason::LinkGroup),
        (patched(good6(), &[(0, 0x33), (1, 0x33)]), DropReason::LinkGroup),
        (patched(good4(), &[(12, 0x88), (13, 0x47)]), DropReason::NotIp),
        (tagged(tagged(good4())), DropReason::VlanUnknown),
        (patched(tagged(good4()), &[(12, 0x88), (13, 0xa8)]), DropReason::VlanUnknown),
        (patched(good4(), &[(14, 0x65)]), DropReason::Ip4Header),
        (patched(good4(), &[(14, 0x44)]), DropReason::Ip4Header),
        (patched(good4(), &[(17, 19)]), DropReason::Ip4Length),
        (patched(good4(), &[(17, 47)]), DropReason::Ip4Length),
        (wrong_sum, DropReason::Ip4Checksum),
        (from([0, 1, 2, 3]), DropReason::MartianSource),
        (from([127, 0, 0, 1]), DropReason::MartianSource),
        (from([224, 0, 0, 1]), DropReason::MartianSource),
        (from([255; 4]), DropReason::MartianSource),
        (to([127, 0, 0, 1]), DropReason::MartianDestination),
        (to([239, 0, 0, 1]), DropReason::MartianDestination),
        (to([255; 4]), DropReason::MartianDestination),
        (to([198, 51, 100, 1]), DropReason::BlackHole),
        (patched(good6(), &[(14, 0x50)]), DropReason::Ip6Header),
        (patched(good6(), &[(19, 27)]), DropReason::Ip6Length),
        (udp6("fe80::2", "2001:2:0:2::2", 64), DropReason::MartianSource),
        (udp6("fe80::2", "2001:2:0:3::2", 64), DropReason::MartianSource),
        (udp6("::", "2001:2:0:2::2", 64), DropReason::MartianSource),
        (udp6("ff02::1", "2001:2:0:2::2", 64), DropReason::MartianSource),
        (udp6("2001:2:0:1::2", "fe80::2", 64), DropReason::MartianDestination),
        (udp6("2001:2:0:1::2", "ff02::1", 64), DropReason::MartianDestination),
    ];
    for (frame, reason) in cases {
        let ran = run(0, &[good4(), frame.clone()]);
        assert_eq!((ran.drops, ran.local), (vec![(reason, 1)], 0), "{frame:02x?}");
        assert_eq!(ran.out[1], [routed(&good4(), 1)]);
    }
    assert_eq!(run(2, &[good4()]).drops, [(DropReason::NoPort, 1)]);
}

#[test]
fn refused_frames_reach_ip_local_with_their_fault_after_the_route() {
    let refuse = |reason, fault| Some(RouteOutcome::Refuse(reason, fault));
    let to = |dst: [u8; 4], ttl| udp4([198, 18, 1, 2], dst, ttl);
    let to6 = |dst: &str, ttl| udp6("2001:2:0:1::2", dst, ttl);
    let tables = tables();
    for (frame, want) in [
        (to([198, 20, 0, 1], 64), refuse(DropReason::NoRoute, Fault::NoRoute)),
        (to([198, 20, 0, 1], 1), refuse(DropReason::NoRoute, Fault::NoRoute)),
        (to6("2001:2:0:3::2", 1), refuse(DropReason::NoRoute, Fault::NoRoute)),
        (to([198, 51, 100, 1], 1), Some(RouteOutcome::Drop(DropReason::BlackHole))),
        (to([198, 19, 1, 2], 1), refuse(DropReason::Ip4Ttl, Fault::TimeExceeded)),
        (tagged(to([198, 19, 1, 2], 0)), refuse(DropReason::Ip4Ttl, Fault::TimeExceeded)),
        (to6("2001:2:0:2::2", 1), refuse(DropReason::Ip6HopLimit, Fault::TimeExceeded)),
        (to6("2001:2:0:2::2", 0), refuse(DropReason::Ip6HopLimit, Fault::TimeExceeded)),
        (to([203, 0, 113, 1], 1), refuse(DropReason::Ip4Ttl, Fault::TimeExceeded)),
        (to([198, 19, 1, 2], 2), None),
    ] {
        assert_eq!(fate(&tables, &frame), want, "{frame:02x?}");
        let ran = run(0, &[good4(), frame]);
        let drops = match want {
            Some(RouteOutcome::Refuse(reason, _) | RouteOutcome::Drop(reason)) => vec![(reason, 1)],
            _ => vec![],
        };
        let local = u64::from(matches!(want, Some(RouteOutcome::Refuse(..))));
        assert_eq!((ran.drops, ran.local, &ran.out[1][0]), (drops, local, &routed(&good4(), 1)));
    }
}

fn every_kind() -> [Vec<u8>; 8] {
    let nd = patched(icmp6("fe80::2", "ff02::1:ff00:1", 135), &[(0, 0x33), (1, 0x33)]);
    [good4(), good6(), tagged(good4()), tagged(good6()), with_options(good4()), arp(), tagged(arp()), nd]
}

#[test]
fn every_truncation_is_handled_and_padding_stays() {
    for frame in every_kind() {
        for len in 0..frame.len() {
            // The books are balanced in there.
            let ran = run(0, &[frame[..len].to_vec()]);
            assert!(ran.out[1].is_empty(), "{len} of {frame:02x?}");
        }
    }
    for frame in every_kind().into_iter().take(5) {
        let padded = [&frame[..], &[0; 9]].concat();
        let want = [&routed(&frame, 1)[..], &[0; 9]].concat();
        assert_eq!(run(0, &[padded]).out[1], [want]);
    }
}

/// Tables in which any route may do anything.
fn busy_tables(tag: Tag, push: u16, mtu: u16, vlans: bool) -> Tables {
    let mut tables = tables();
    let stack = Stack { entries: [[1; 4]; 4], len: 4 };
    tables.labels = Arc::new(Labels::new(&[], vec![stack], &mut |_| 0));
    tables.groups.push(Group { paths: Box::new([TO, TO + 1]) });
    for hop in &mut tables.adjacencies {
        (hop.tag, hop.push, hop.mtu) = (tag, push, mtu);
    }
    let routes = [("0.0.0.0/1", GROUP), ("128.0.0.0/1", TO), ("::/0", GROUP)].map(|(p, h)| (p.parse().unwrap(), h));
    (tables.fib4, tables.fib6) = (Arc::new(Fib4::new(&routes)), Arc::new(Fib6::new(&routes)));
    tables.ports[0].vlans = vlans.then(|| Box::new([0; 4096]));
    tables
}

use crate::{
    local::Fault,
    tables::{Group, Labels, Stack, Tag, GROUP},
};

proptest! {
    #[test]
    fn random_bytes_never_panic_and_are_counted(
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 1..8),
        kind in prop::sample::select(vec![[8u8, 0, 0x45], [8, 0, 0x4f], [0x86, 0xdd, 0x60], [0x81, 0, 0], [8, 6, 0]]),
        mends in prop::collection::vec(any::<bool>(), 8),
        tag in prop::sample::select(vec![Tag::Keep, Tag::None, Tag::Vid(9)]),
        push in 0u16..3, mtu in 0u16..90, vlans: bool,
    ) {
        let frames: Vec<_> = frames
            .into_iter()
            .zip(mends)
            .map(|(mut frame, mend)| {
                if let Some(head) = frame.get_mut(12..15) {
                    head.copy_from_slice(&kind);
                }
                let len = frame.len();
                if mend && len >= 34 && kind[2] == 0x45 {
                    // Good enough to be routed.
                    (frame[0], frame[16], frame[17], frame[26]) = (2, 0, (len - 14) as u8, 10);
                    set_checksum(&mut frame);
                } else if mend && len >= 54 && kind[2] == 0x60 {
                    (frame[0], frame[18], frame[19], frame[22]) = (2, 0, (len - 54) as u8, 0x20);
                }
                frame
            })
            .collect();
        Rig::new(busy_tables(tag, push, mtu, vlans)).run(0, &frames);
    }
}
