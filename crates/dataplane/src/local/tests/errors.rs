//! ICMP errors: their bytes, when none may be sent, and how many.

use super::*;
use crate::tables::{Labels, Stack};

/// Type, code and the word after the checksum.
type Message = (u8, u8, u32);

/// With the message of each family.
const FAULTS: [(Fault, Message, Message); 4] = [
    (Fault::TimeExceeded, (11, 0, 0), (3, 0, 0)),
    (Fault::NoRoute, (3, 0, 0), (1, 0, 0)),
    (Fault::TooBig(1400), (3, 4, 1400), (2, 0, 1400)),
    (Fault::TooBig(1000), (3, 4, 1000), (2, 0, 1280)),
];

/// The error as etherparse makes it, about these bytes.
fn error4(macs: (MacAddr, MacAddr), src: [u8; 4], id: u16, message: Message, quote: &[u8]) -> Vec<u8> {
    let mut header = head4(src, HOST4, 64);
    (header.dscp, header.identification) = (48.try_into().unwrap(), id);
    bytes!(from4(macs.0, macs.1, header).icmpv4_raw(message.0, message.1, message.2.to_be_bytes()), quote)
}

fn error6(src: Ipv6Addr, message: Message, quote: &[u8]) -> Vec<u8> {
    let header = head6(src, host6(), 64);
    bytes!(from6(HOST, OWN[0], header).icmpv6_raw(message.0, message.1, message.2.to_be_bytes()), quote)
}

fn dont_fragment(mut frame: Vec<u8>) -> Vec<u8> {
    frame[20] |= 0x40;
    frame
}

/// Our address on the link the error leaves by (RFC 1812 4.3.2.4).
const BEYOND4: [u8; 4] = [10, 1, 0, 1];

#[test]
fn each_fault_has_its_message_and_quotes_as_much_as_is_allowed() {
    let mut rig = Rig::new();
    let mut id = 0;
    for (fault, message4, message6) in FAULTS {
        for payload in [0, 18, 520, 521, 1400] {
            id += 1;
            let frame = dont_fragment(udp4(HOST4, FAR4, payload));
            let quote = &frame[14..frame.len().min(14 + 548)];
            let want = error4((HOST, OWN[0]), US4, id, message4, quote);
            assert!(want.len() <= 14 + 576);
            assert_eq!(rig.refuse(&frame, fault), [want], "{fault:?} {payload}");
            id += 1;
            let want = error4((HOST, OWN[0]), US4, id, message4, quote);
            assert_eq!(rig.refuse(&tagged(frame, [0x60, 3]), fault), [tagged(want, [0x60, 3])]);
        }
        for payload in [0, 1184, 1185, 1400] {
            id += 1;
            let frame = udp6(host6(), ip6("2001:db8:1::5"), payload);
            let want = error6(us6(), message6, &frame[14..frame.len().min(14 + 1232)]);
            assert!(want.len() <= 14 + 1280);
            assert_eq!(rig.refuse(&frame, fault), [want], "{fault:?} {payload}");
        }
    }
    assert_eq!(rig.drops(), [(DropReason::Policed, id.into())]);
    assert_eq!(rig.counts(), [("icmp-errors-sent", id.into())]);
}

#[test]
fn padding_is_not_quoted_and_a_missing_neighbour_was_forwarded_to_already() {
    let mut rig = Rig::new();
    let frame = udp4(HOST4, FAR4, 0);
    let mut aged = head4(HOST4, FAR4, 63);
    aged.dont_fragment = false;
    let aged = bytes!(from4(OWN[0], HOST, aged).udp(33000, 33434), &[]);
    let want = error4((HOST, OWN[0]), US4, 1, (3, 1, 0), &aged[14..]);
    assert_eq!(rig.refuse(&[frame, vec![0; 18]].concat(), Fault::HostUnreachable), [want]);
    let aged = bytes!(from6(OWN[0], HOST, head6(host6(), ip6("2001:db8:1::5"), 63)).udp(33000, 33434), &[]);
    let got = rig.refuse(&udp6(host6(), ip6("2001:db8:1::5"), 0), Fault::HostUnreachable);
    assert_eq!(got, [error6(us6(), (1, 3, 0), &aged[14..])]);
}

#[test]
fn a_closed_port_is_told_of_from_the_address_that_was_tried() {
    let mut rig = Rig::new();
    for own in [US4, [10, 1, 0, 1]] {
        let frame = udp4(HOST4, own, 12);
        let id = rig.counts().first().map_or(1, |count| count.1 as u16 + 1);
        assert_eq!(rig.deliver(&frame, AT), [error4((HOST, OWN[0]), own, id, (3, 3, 0), &frame[14..])]);
    }
    for own in [us6(), ip6("2001:db8:1::1")] {
        let frame = udp6(host6(), own, 12);
        assert_eq!(rig.deliver(&frame, AT), [error6(own, (1, 4, 0), &frame[14..])]);
    }
    assert_eq!(rig.drops(), [(DropReason::NotListening, 4)]);
    // A datagram that is not whole is nothing.
    for (frame, at) in [(udp4(HOST4, US4, 12), 45), (udp6(host6(), us6(), 12), 65), (udp4(HOST4, US4, 12), 38)] {
        let mut frame = frame;
        frame[at] ^= 1;
        assert!(rig.deliver(&frame, AT).is_empty());
    }
    // Without a checksum it is whole in IPv4 and not in IPv6.
    let (mut frame4, mut frame6) = (udp4(HOST4, US4, 12), udp6(host6(), us6(), 12));
    frame4[40..42].fill(0);
    frame6[60..62].fill(0);
    assert_eq!((rig.deliver(&frame4, AT).len(), rig.deliver(&frame6, AT).len()), (1, 0));
    assert_eq!(rig.drops(), [(DropReason::NotListening, 5)]);
}

#[test]
fn the_way_back_decides_the_link_layer() {
    let mut rig = Rig::new();
    let gateway = MacAddr([2, 0, 0, 0, 0, 0x66]);
    let frame = udp4([10, 66, 1, 2], FAR4, 4);
    let sent = rig.frame(&frame);
    rig.local.refuse(sent, DropReason::Ip4Ttl, Fault::TimeExceeded, AT, &rig.tables, &mut rig.out, 9);
    let want = |quote: &[u8]| {
        let mut header = head4(BEYOND4, [10, 66, 1, 2], 64);
        (header.dscp, header.identification) = (48.try_into().unwrap(), 1);
        bytes!(from4(gateway, OWN[1], header).icmpv4_raw(11, 0, [0; 4]), quote)
    };
    assert_eq!(rig.collect(1), [tagged(want(&frame[14..]), [0, 9])]);
    // With labels to push.
    let stack = Stack { entries: [[0, 1, 0, 0], [0, 1, 0x10, 0], [9; 4], [9; 4]], len: 2 };
    rig.tables.labels = Arc::new(Labels::new(&[], vec![stack], &mut |_| 0));
    (rig.tables.adjacencies[GATEWAY as usize].push, rig.tables.adjacencies[GATEWAY as usize].tag) = (1, Tag::None);
    let sent = rig.frame(&frame);
    rig.local.refuse(sent, DropReason::Ip4Ttl, Fault::TimeExceeded, AT, &rig.tables, &mut rig.out, 9);
    let got = rig.collect(1).remove(0);
    assert_eq!(got[12..22], [0x88, 0x47, 0, 1, 0, 64, 0, 1, 0x11, 64]);
    assert_eq!(got[22..][12..][..8], [BEYOND4, [10, 66, 1, 2]].concat());
    assert_eq!(rig.drops(), [(DropReason::Ip4Ttl, 2)]);
}

#[test]
fn a_link_local_source_hears_of_it_where_it_came_from() {
    let mut rig = Rig::new();
    let frame = udp6(ip6("fe80::2"), link_local(OWN[0]), 3);
    let want = |header| bytes!(from6(HOST, OWN[0], header).icmpv6_raw(1, 4, [0; 4]), &frame[14..]);
    assert_eq!(rig.deliver(&frame, AT), [want(head6(link_local(OWN[0]), ip6("fe80::2"), 64))]);
}

#[test]
fn an_error_whose_way_back_is_not_resolved_waits_and_leaves_with_its_ttl() {
    let mut rig = Rig::new();
    let frame = udp4(FAR4, [10, 66, 0, 1], 4);
    let sent = rig.frame(&frame);
    rig.local.refuse(sent, DropReason::Ip4Ttl, Fault::TimeExceeded, AT, &rig.tables, &mut rig.out, 9);
    let asked = rig.collect(1);
    assert_eq!((asked.len(), rig.local.held(), rig.out.originated), (1, 1, 2));
    rig.tables.adjacencies[GLEAN as usize].next = Next::Forward;
    let (port, frames) = rig.poll().unwrap();
    let mut header = head4(BEYOND4, FAR4, 65);
    (header.dscp, header.identification) = (48.try_into().unwrap(), 1);
    let want = bytes!(from4(OWN[0], OWN[0], header).icmpv4_raw(11, 0, [0; 4]), &frame[14..]);
    assert_eq!((port, frames), (0, vec![want]));
    rig.balance();
}

#[test]
fn about_some_frames_nothing_is_said() {
    let mut rig = Rig::new();
    let mut none = |frame: &[u8]| {
        for (fault, ..) in FAULTS {
            assert!(rig.refuse(frame, fault).is_empty(), "{fault:?} {frame:x?}");
            assert_eq!(rig.drops(), [(DropReason::Policed, 1)]);
        }
    };
    for kind in [3, 4, 5, 11, 12, 19, 255] {
        none(&dont_fragment(bytes!(from4(OWN[0], HOST, head4(HOST4, FAR4, 1)).icmpv4_raw(kind, 0, [0; 4]), &[])));
    }
    for kind in [1, 2, 3, 4, 127, 137] {
        let head = head6(host6(), ip6("2001:db8:66::1"), 1);
        none(&bytes!(from6(OWN[0], HOST, head).icmpv6_raw(kind, 0, [0; 4]), &[]));
    }
    let mut later = head4(HOST4, FAR4, 1);
    (later.dont_fragment, later.fragment_offset) = (true, 1.try_into().unwrap());
    none(&bytes!(from4(OWN[0], HOST, later).udp(1, 2), &[]));
    let mut group = dont_fragment(udp4(HOST4, FAR4, 4));
    group[0] |= 1;
    none(&group);
    for (src, dst) in [
        (HOST4, [224, 0, 0, 5]),
        (HOST4, [255; 4]),
        (HOST4, [10, 0, 0, 255]),
        ([0; 4], FAR4),
        ([127, 0, 0, 1], FAR4),
        ([10, 0, 0, 255], FAR4),
        ([240, 0, 0, 1], FAR4),
        (US4, FAR4),
        ([192, 0, 2, 1], FAR4),
    ] {
        none(&dont_fragment(udp4(src, dst, 4)));
    }
    for (src, dst) in [("::", "2001:db8:1::2"), ("ff02::1", "2001:db8:1::2"), ("2001:db8::2", "ff05::1")] {
        none(&udp6(ip6(src), ip6(dst), 4));
    }
    // What may be split is not too big to its source.
    assert!(rig.refuse(&udp4(HOST4, FAR4, 4), Fault::TooBig(1000)).is_empty());
    assert_eq!(rig.counts(), []);
    // Nobody speaks for an interface without an address.
    rig.tables.interfaces[0].ip4.clear();
    rig.tables.interfaces[0].ip6.clear();
    for frame in [udp4(HOST4, FAR4, 4), udp6(host6(), ip6("2001:db8:1::2"), 4)] {
        assert!(rig.refuse(&frame, Fault::TimeExceeded).is_empty());
    }
}

#[test]
fn what_is_behind_ipv6_extension_headers_counts() {
    let mut rig = Rig::new();
    let mut answered = |next: u8, payload: &[u8]| {
        let mut frame = udp6(host6(), ip6("2001:db8:1::2"), 0);
        frame.truncate(54);
        frame.extend(payload);
        (frame[19], frame[20]) = (payload.len() as u8, next);
        rig.refuse(&frame, Fault::TimeExceeded).len() == 1
    };
    let hop_by_hop = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
    let fragment = |next: u8, offset: u8| [next, 0, 0, offset, 0, 0, 0, 7];
    let (ping, error) = ([128, 0, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]);
    assert!(answered(0, &[hop_by_hop(58), ping].concat()));
    assert!(!answered(0, &[hop_by_hop(58), error].concat()));
    assert!(answered(44, &[fragment(58, 1), ping].concat()));
    assert!(!answered(44, &[fragment(58, 1), error].concat()));
    assert!(!answered(44, &[fragment(17, 8), ping].concat()));
    assert!(!answered(51, &[[58, 4, 0, 0, 0, 0, 0, 0], ping].concat()), "its end is out of sight");
    assert!(answered(51, &[[58, 0, 0, 0, 0, 0, 0, 0], ping].concat()));
    assert!(answered(60, &[hop_by_hop(43), hop_by_hop(17)].concat()));
    assert!(!answered(0, &[hop_by_hop(0); 9].concat()));
    assert!(!answered(58, &[]));
    assert!(answered(59, &[]));
}

#[test]
fn without_headroom_the_frame_is_only_dropped() {
    let mut rig = Rig::new();
    for bytes in [udp4(HOST4, FAR4, 130), udp6(host6(), ip6("2001:db8:66::1"), 110)] {
        let mut frame = rig.frame(&bytes[116..]);
        assert!(frame.prepend(116));
        frame.data_mut().copy_from_slice(&bytes);
        rig.local.refuse(frame, DropReason::NoRoute, Fault::NoRoute, AT, &rig.tables, &mut rig.out, 9);
        assert!(rig.collect(0).is_empty());
    }
    assert_eq!((rig.drops(), rig.counts()), (vec![(DropReason::NoRoute, 2)], vec![]));
}

#[test]
fn errors_are_limited_to_the_rate_of_the_tables() {
    let mut rig = Rig::new();
    rig.tables.icmp_errors_per_second = 200;
    let frame = udp4(HOST4, [10, 66, 0, 1], 4);
    let sent = (0..60).filter(|_| !rig.refuse(&frame, Fault::NoRoute).is_empty()).count();
    rig.now += HZ / 20;
    let later = (0..60).filter(|_| !rig.refuse(&frame, Fault::NoRoute).is_empty()).count();
    assert_eq!((sent, later), (20, 10));
    assert_eq!(rig.counts(), [("icmp-errors-sent", 30), ("icmp-errors-withheld", 90)]);
    assert_eq!(rig.drops(), [(DropReason::Policed, 120)]);
}
