//! ARP, neighbour discovery and echo: what is answered, with what, and who is learned.

use super::*;

#[test]
fn a_request_for_our_address_is_answered_and_learned_from_once_a_second() {
    let mut rig = Rig::new();
    let reply = arp_frame(2, HOST, (OWN[0], US4), (HOST, HOST4));
    assert_eq!(rig.deliver(&arp_request(HOST4, US4), AT), std::slice::from_ref(&reply));
    assert_eq!(rig.learned(), [(0, HOST4.into(), HOST)]);
    assert_eq!(rig.deliver(&arp_request(HOST4, US4), AT), [reply]);
    assert_eq!(rig.learned(), []);
    rig.now += HZ;
    rig.deliver(&arp_request(HOST4, US4), AT);
    assert_eq!(rig.learned(), [(0, HOST4.into(), HOST)]);
    assert_eq!(rig.counts(), [("arp-requests-answered", 3), ("arp-learned", 2)]);
    assert_eq!((rig.drops(), rig.out.punted), (vec![], 3));
}

#[test]
fn a_tagged_request_is_answered_with_its_tag() {
    let mut rig = Rig::new();
    let (us, host) = ([10, 7, 0, 1], [10, 7, 0, 2]);
    let reply = arp_frame(2, HOST, (OWN[0], us), (HOST, host));
    let got = rig.deliver(&tagged(arp_request(host, us), [0xe0, 7]), TAGGED_AT);
    assert_eq!(got, [tagged(reply, [0xe0, 7])]);
    assert_eq!(rig.learned(), [(2, host.into(), HOST)]);
}

#[test]
fn a_probe_is_answered_and_teaches_nothing() {
    let mut rig = Rig::new();
    let got = rig.deliver(&arp_request([0; 4], US4), AT);
    assert_eq!(got, [arp_frame(2, HOST, (OWN[0], US4), (HOST, [0; 4]))]);
    assert_eq!(rig.learned(), []);
}

#[test]
fn replies_to_us_are_learned_from_and_known_neighbours_may_move() {
    let mut rig = Rig::new();
    let moved = MacAddr([2, 0, 0, 0, 0, 0xaa]);
    let frames = [
        (arp_frame(2, OWN[0], (HOST, [10, 0, 0, 77]), (OWN[0], US4)), [10, 0, 0, 77], HOST),
        (arp_frame(1, MacAddr::BROADCAST, (moved, HOST4), (MacAddr::default(), HOST4)), HOST4, moved),
    ];
    for (frame, addr, mac) in frames {
        assert!(rig.deliver(&frame, AT).is_empty());
        assert_eq!(rig.learned(), [(0, addr.into(), mac)]);
    }
    assert_eq!((rig.drops(), rig.out.punted), (vec![], 2));
}

#[test]
fn arp_that_is_not_for_us_or_lies_is_dropped() {
    let mut rig = Rig::new();
    let zero = MacAddr::default();
    let mut odd = arp_request(HOST4, US4);
    odd[21] = 3;
    for frame in [
        arp_request(HOST4, [10, 0, 0, 3]),
        arp_request([10, 0, 0, 88], [10, 0, 0, 88]),
        arp_frame(2, OWN[0], (HOST, HOST4), (OWN[0], [10, 0, 0, 3])),
        arp_frame(1, MacAddr::BROADCAST, (HOST, US4), (zero, US4)),
        odd,
    ] {
        assert!(rig.deliver(&frame, AT).is_empty());
        assert_eq!(rig.drops(), [(DropReason::Arp, 1)], "{frame:x?}");
    }
    let mut group = arp_request(HOST4, US4);
    group[22] = 3;
    rig.deliver(&group, AT);
    group[22..28].fill(0);
    rig.deliver(&group, AT);
    assert_eq!(rig.drops(), [(DropReason::Arp, 2)]);
    assert_eq!(rig.counts(), [("arp-conflicts", 1)]);
    // Answered, for somebody has asked, but nobody to route to.
    for stranger in [[10, 9, 9, 9], [10, 0, 0, 255], [10, 0, 0, 0]] {
        assert_eq!(rig.deliver(&arp_request(stranger, US4), AT).len(), 1);
    }
    assert_eq!(rig.learned(), []);
}

#[test]
fn a_flood_of_neighbours_does_not_wait_for_the_control_side() {
    let mut rig = Rig::new();
    for host in 2..100 {
        rig.deliver(&arp_request([10, 0, 0, host], US4), AT);
    }
    let counts = [("arp-requests-answered", 98), ("arp-learned", 64), ("neighbour-events-lost", 34)];
    assert_eq!(rig.counts(), counts);
}

#[test]
fn solicitations_are_answered_as_rfc_4861_has_it() {
    let linked = link_local(OWN[0]);
    for target in [us6(), linked] {
        let mut rig = Rig::new();
        for src in [host6(), ip6("fe80::2")] {
            let want = nd_frame((HOST, OWN[0]), (target, src), (136, 0xe0), target, Some((2, OWN[0])));
            assert_eq!(rig.deliver(&solicitation(src, target), AT), [want]);
            assert_eq!(rig.learned(), [(0, src.into(), HOST)]);
        }
        let nobody = Ipv6Addr::UNSPECIFIED;
        let to_all = (ALL_NODES_MAC, OWN[0]);
        let want = nd_frame(to_all, (target, ip6("ff02::1")), (136, 0xa0), target, Some((2, OWN[0])));
        assert_eq!(rig.deliver(&solicitation(nobody, target), AT), [want]);
        assert_eq!(rig.counts(), [("nd-solicitations-answered", 3), ("nd-learned", 2)]);
        // Straight to us, to see whether we are still there, and without an option.
        let straight = nd_frame((OWN[0], HOST), (host6(), target), (135, 0), target, None);
        let want = nd_frame((HOST, OWN[0]), (target, host6()), (136, 0xe0), target, Some((2, OWN[0])));
        assert_eq!(rig.deliver(&tagged(straight, [0, 5]), AT), [tagged(want, [0, 5])]);
        assert_eq!(rig.drops(), []);
    }
}

#[test]
fn advertisements_teach_and_router_solicitations_do_nothing() {
    let mut rig = Rig::new();
    let advert = nd_frame((OWN[0], HOST), (host6(), us6()), (136, 0x60), host6(), Some((2, HOST)));
    assert!(rig.deliver(&advert, AT).is_empty());
    assert_eq!(rig.learned(), [(0, host6().into(), HOST)]);
    let mute = nd_frame((OWN[0], HOST), (host6(), us6()), (136, 0x60), host6(), None);
    rig.deliver(&mute, AT);
    let all_routers = head6(ip6("fe80::2"), ip6("ff02::2"), 255);
    rig.deliver(&bytes!(from6(ALL_NODES_MAC, HOST, all_routers).icmpv6_raw(133, 0, [0; 4]), &[]), AT);
    assert_eq!((rig.learned(), rig.drops(), rig.out.punted), (vec![], vec![], 3));
}

#[test]
fn neighbour_discovery_that_fails_a_check_is_dropped() {
    let good = solicitation(host6(), us6());
    let mut bad = vec![
        solicitation(host6(), ip6("2001:db8::3")),
        // From nobody with an address; not to the group; to all and solicited; a target that is a group; a redirect.
        nd_frame((ALL_NODES_MAC, HOST), (ip6("::"), ip6("ff02::1:ff00:1")), (135, 0), us6(), Some((1, HOST))),
        nd_frame((OWN[0], HOST), (ip6("::"), us6()), (135, 0), us6(), None),
        nd_frame((ALL_NODES_MAC, HOST), (host6(), ip6("ff02::1")), (136, 0x40), host6(), Some((2, HOST))),
        nd_frame((OWN[0], HOST), (host6(), us6()), (136, 0), ip6("ff02::5"), Some((2, HOST))),
        nd_frame((OWN[0], HOST), (host6(), us6()), (137, 0), us6(), None),
        // To somebody else.
        nd_frame((OWN[0], HOST), (host6(), ip6("2001:db8::3")), (135, 0), us6(), None),
    ];
    // Hop limit, code, checksum, length of the option.
    for at in [21, 55, 57, 79] {
        let mut frame = good.clone();
        frame[at] ^= 1;
        bad.push(frame);
    }
    let mut rig = Rig::new();
    for frame in bad {
        assert!(rig.deliver(&frame, AT).is_empty());
        assert_eq!(rig.drops(), [(DropReason::Nd, 1)], "{frame:x?}");
    }
    for stranger in [ip6("2001:db8:9::1"), us6()] {
        rig.deliver(&nd_frame((OWN[0], HOST), (host6(), us6()), (136, 0), stranger, Some((2, HOST))), AT);
    }
    assert_eq!(rig.learned(), []);
}

#[test]
fn echo_comes_back_with_the_addresses_exchanged() {
    let mut rig = Rig::new();
    // Of either interface, and padded or not.
    for own in [US4, [10, 1, 0, 1]] {
        let want = bytes!(from4(HOST, OWN[0], head4(own, HOST4, 64)).icmpv4_echo_reply(7, 9), &[0xab; 33]);
        assert_eq!(rig.deliver(&echo4(HOST4, own), AT), std::slice::from_ref(&want));
        let long = [echo4(HOST4, own), vec![0xee; 20]].concat();
        assert_eq!(rig.deliver(&long, AT), std::slice::from_ref(&want));
        assert_eq!(rig.deliver(&tagged(long, [0xa0, 42]), AT), [tagged(want, [0xa0, 42])]);
    }
    let short = bytes!(from4(OWN[0], HOST, head4(HOST4, US4, 255)).icmpv4_echo_request(0, 0), &[0; 4]);
    let padded = [short, vec![0; 14]].concat();
    let want = bytes!(from4(HOST, OWN[0], head4(US4, HOST4, 64)).icmpv4_echo_reply(0, 0), &[0; 4]);
    assert_eq!(rig.deliver(&padded, AT), [[want, vec![0; 14]].concat()]);
    for own in [us6(), ip6("2001:db8:1::1"), link_local(OWN[0])] {
        for host in [host6(), ip6("fe80::2")] {
            let want = bytes!(from6(HOST, OWN[0], head6(own, host, 64)).icmpv6_echo_reply(7, 9), &[0xab; 33]);
            assert_eq!(rig.deliver(&echo6(host, own), AT), [want]);
        }
    }
    assert_eq!(rig.counts(), [("echo-replies", 13)]);
    assert_eq!((rig.drops(), rig.out.punted, rig.out.originated), (vec![], 13, 13));
}

#[test]
fn what_is_not_an_echo_request_to_us_has_its_reason() {
    let mut rig = Rig::new();
    let mut drop = |frame: &[u8], reason| {
        assert!(rig.deliver(frame, AT).is_empty());
        assert_eq!(rig.drops(), [(reason, 1)], "{frame:x?}");
    };
    let flip = |mut frame: Vec<u8>, at: usize| {
        frame[at] ^= 1;
        frame
    };
    drop(&flip(echo4(HOST4, US4), 60), DropReason::Icmp);
    drop(&flip(echo6(host6(), us6()), 60), DropReason::Icmp);
    drop(&flip(echo4(HOST4, US4), 24), DropReason::Ip4Checksum);
    drop(&flip(echo4(HOST4, US4), 0), DropReason::LinkGroup);
    drop(&flip(echo6(host6(), us6()), 0), DropReason::LinkGroup);
    drop(&flip(echo4(HOST4, US4), 6), DropReason::BridgeSource);
    drop(&echo4(HOST4, [10, 0, 0, 9]), DropReason::NotListening);
    drop(&echo4([127, 0, 0, 1], US4), DropReason::MartianSource);
    drop(&echo4([10, 0, 0, 255], US4), DropReason::MartianSource);
    drop(&echo4(US4, US4), DropReason::MartianSource);
    drop(&echo6(us6(), us6()), DropReason::MartianSource);
    drop(&echo6(ip6("::"), us6()), DropReason::MartianSource);
    drop(&echo6(ip6("ff02::1"), us6()), DropReason::MartianSource);
    drop(&echo6(host6(), ip6("ff02::1")), DropReason::LinkGroup);
    drop(&echo6(host6(), ip6("fe80::99")), DropReason::MartianDestination);
    drop(&echo6(ip6("fe80::99"), ip6("2001:db8::99")), DropReason::MartianSource);
    drop(&bytes!(from4(OWN[0], HOST, head4(HOST4, US4, 9)).icmpv4_echo_reply(7, 9), &[]), DropReason::Icmp);
    drop(&bytes!(from6(OWN[0], HOST, head6(host6(), us6(), 9)).icmpv6_echo_reply(7, 9), &[]), DropReason::Icmp);
    drop(&bytes!(from4(OWN[0], HOST, head4(HOST4, US4, 9)).tcp(1, 2, 3, 4), &[]), DropReason::NotListening);
    let mut fragment = head4(HOST4, US4, 9);
    fragment.more_fragments = true;
    drop(&bytes!(from4(OWN[0], HOST, fragment).icmpv4_echo_request(7, 9), &[]), DropReason::NotListening);
    let mut options = head4(HOST4, US4, 9);
    options.options = [0x94, 4, 0, 0].into();
    drop(&bytes!(from4(OWN[0], HOST, options).icmpv4_echo_request(7, 9), &[]), DropReason::NotListening);
    let mut other = echo4(HOST4, US4);
    other[12..14].copy_from_slice(&[0x88, 0x47]);
    drop(&other, DropReason::NotIp);
    assert!(rig.deliver(&echo4(HOST4, US4), Ingress { port: 0, interface: 77 }).is_empty());
    assert_eq!((rig.drops(), rig.counts()), (vec![(DropReason::VlanUnknown, 1)], vec![]));
}
