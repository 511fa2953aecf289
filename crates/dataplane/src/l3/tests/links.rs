//! VLANs, groups, and what is for the router itself.

use super::*;
use crate::tables::{Tag, NO_INTERFACE};

/// As [`tables`], with this tag on what leaves by port 1, and VLAN 42 of port 0 as interface 2, if `vlans`.
fn vlan_tables(tag: Tag, vlans: bool) -> Tables {
    let mut tables = tables();
    tables.adjacencies[TO as usize + 1].tag = tag;
    if vlans {
        let mut table = Box::new([NO_INTERFACE; 4096]);
        table[42] = 2;
        tables.ports[0].vlans = Some(table);
        let mut interface = tables.interfaces[0].clone();
        (interface.vlan, interface.ip6[0].0) = (Some(42), "fe80::2a".parse().unwrap());
        tables.interfaces.push(interface);
    }
    tables
}

#[test]
fn tags_are_kept_removed_set_and_put_in() {
    for vlans in [false, true] {
        for good in [good4(), good6(), with_options(good4())] {
            let plain = routed(&good, 1);
            for (tag, from_plain, from_tagged) in [
                (Tag::Keep, plain.clone(), tagged(plain.clone())),
                (Tag::None, plain.clone(), plain.clone()),
                (Tag::Vid(7), with_tci(plain.clone(), 7), with_tci(plain.clone(), 0xa007)),
                (Tag::Vid(4094), with_tci(plain.clone(), 0xffe), with_tci(plain.clone(), 0xaffe)),
            ] {
                let mut rig = Rig::new(vlan_tables(tag, vlans));
                let ran = rig.run(0, &[good.clone(), tagged(good.clone())]);
                assert_eq!(ran.out[1], [from_plain, from_tagged], "{tag:?}");
                assert_eq!((ran.dispatch, ran.drops), (Dispatch::All(1), vec![]));
            }
        }
    }
}

#[test]
fn a_vid_needs_an_interface_and_vid_0_is_none() {
    let mut rig = Rig::new(vlan_tables(Tag::None, true));
    let unknown = with_tci(good4(), 43);
    let ran = rig.run(0, &[with_tci(good4(), 0xe000), unknown.clone(), with_tci(arp(), 43), tagged(tagged(good4()))]);
    assert_eq!((&ran.out[1][..], ran.drops), (&[routed(&good4(), 1)][..], vec![(DropReason::VlanUnknown, 3)]));
    // The other port has no VLANs of its own and takes any.
    assert_eq!(rig.run(1, &[unknown]).out[1], [routed(&good4(), 1)]);
}

#[test]
fn the_interface_of_a_frame_is_its_vlans() {
    let tables = vlan_tables(Tag::Keep, true);
    let pool = HeapPool::new(1, 128);
    for (frame, want) in [(good4(), 0), (tagged(good4()), 2), (with_tci(good4(), 0), 0), (vec![1; 3], 0)] {
        assert_eq!(scratch::interface(&pool.frame(&frame).unwrap(), 0, &tables), want);
    }
}

#[test]
fn what_is_for_the_router_is_delivered_whatever_its_ttl() {
    let group = |frame| patched(frame, &[(0, 0x33), (1, 0x33)]);
    let tables = vlan_tables(Tag::None, true);
    for frame in [
        arp(),
        tagged(arp()),
        patched(arp(), &[(0, 0xff)]),
        udp4([198, 18, 1, 2], [192, 0, 2, 1], 64),
        udp4([198, 18, 1, 2], [192, 0, 2, 1], 0),
        udp6("2001:2:0:1::2", "2001:db8::1", 1),
        udp6("fe80::2", "2001:db8::1", 64),
        udp6("fe80::2", "fe80::1", 64),
        tagged(udp6("fe80::2", "fe80::2a", 64)),
        icmp6("fe80::2", "fe80::1", 136),
        icmp6("2001:2:0:1::2", "2001:db8::1", 135),
        icmp6("2001:2:0:1::2", "ff02::1:ff00:1", 135),
        group(icmp6("::", "ff02::1:ff12:3456", 135)),
        group(icmp6("fe80::2", "ff02::1", 136)),
        tagged(group(icmp6("fe80::2", "ff02::1", 136))),
    ] {
        assert_eq!(fate(&tables, &frame), Some(RouteOutcome::Deliver), "{frame:02x?}");
    }
    for (frame, reason) in [
        (group(icmp6("fe80::2", "ff02::1", 128)), DropReason::LinkGroup),
        (group(icmp6("fe80::2", "ff02::2", 133)), DropReason::LinkGroup),
        (group(icmp6("fe80::2", "ff02::1:fe00:1", 135)), DropReason::LinkGroup),
        (group(icmp6("fe80::2", "fe80::1", 135)), DropReason::LinkGroup),
        (group(icmp6("fe80::2", "ff02::1", 136))[..54].to_vec(), DropReason::LinkGroup),
        (tagged(udp6("fe80::2", "fe80::1", 64)), DropReason::MartianDestination),
    ] {
        assert_eq!(fate(&tables, &frame), Some(RouteOutcome::Drop(reason)), "{frame:02x?}");
    }
}

#[test]
fn a_frame_for_the_router_leaves_the_others_alone() {
    let to_us = udp4([198, 18, 1, 2], [192, 0, 2, 1], 64);
    let ran = run(0, &[good4(), to_us, good6(), arp(), tagged(good4())]);
    assert_eq!(ran.out[1], [good4(), good6(), tagged(good4())].map(|f| routed(&f, 1)));
    assert_eq!((ran.dispatch, ran.local), (Dispatch::Split, 2));
}
