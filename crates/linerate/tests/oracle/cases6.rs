//! IPv6 and neighbour discovery.
//!
//! Left out, because they are meant to differ: packets back out of the port they came by (the kernel sends a redirect,
//! and there is no switch for it), fragments for ourselves, TCP to ourselves, link-local destinations of other hosts
//! (the kernel routes them), the subnet-router anycast address (RFC 4291 2.6.1: the kernel answers for it, Linerate asks
//! its link who has it).

use crate::{
    setup::{station, Case, Cases, HOST9, ROUTER},
    support::frames::*,
};

const S: &str = "2001:2:0:1::5";
const D: &str = "2001:2:0:2::7";
const NEAR: &str = "2001:db8:0:a::2";
const OWN: &str = "2001:db8:0:a::1";
const OWN1: &str = "2001:db8:0:b::1";
/// Of the router's MAC address on link 0 (RFC 4291 appendix A).
const LINK_LOCAL: &str = "fe80::4c:52ff:fe00:100";
const STATION_LOCAL: &str = "fe80::2";

fn datagram(src: &str, dst: &str, len: usize) -> Vec<u8> {
    ip6(src, dst, UDP, &udp(src, dst, 7, &bytes(len)))
}

fn echo(src: &str, dst: &str, len: usize) -> Vec<u8> {
    ip6(src, dst, ICMPV6, &icmp6(src, dst, 128, 0, 0x1234_0001, &bytes(len)))
}

fn hops(packet: Vec<u8>, hops: u8) -> Vec<u8> {
    edit(packet, |p| p[7] = hops)
}

pub fn all() -> Vec<Case> {
    let mut cases = Cases::default();
    forwarded(&mut cases);
    extensions(&mut cases);
    malformed(&mut cases);
    martians(&mut cases);
    errors(&mut cases);
    to_ourselves(&mut cases);
    discovery(&mut cases);
    cases.0
}

fn forwarded(c: &mut Cases) {
    for len in [0, 1, 18, 512, 1232] {
        c.packet(&format!("v6 {len} bytes of payload"), 0, &datagram(S, D, len));
    }
    c.packet("v6 the other way", 1, &datagram(D, S, 1000));
    c.packet("v6 with padding", 0, &[datagram(S, D, 1), vec![0xaa; 20]].concat());
    c.packet("v6 longest match: /65 via the second host", 0, &datagram(S, "2001:2:0:2:8000::1", 20));
    c.packet("v6 via a link-local gateway", 0, &datagram(S, "2001:2:0:3::1", 20));
    c.packet("v6 to a neighbour", 0, &datagram(S, "2001:db8:0:b::9", 20));
    c.packet("v6 hop limit 2", 0, &hops(datagram(S, D, 20), 2));
    c.packet("v6 hop limit 255", 0, &hops(datagram(S, D, 20), 255));
    c.packet(
        "v6 traffic class and flow label",
        0,
        &edit(datagram(S, D, 20), |p| p[..4].copy_from_slice(&[0x6f, 0xed, 0xcb, 0xa9])),
    );
    c.packet("v6 unknown next header", 0, &ip6(S, D, 253, &bytes(30)));
    c.packet("v6 no next header, no payload", 0, &ip6(S, D, 59, &[]));
    c.packet("v6 black hole", 0, &datagram(S, "2001:2:0:dead::1", 20));
    c.same("v6 unicast in a broadcast frame", 0, eth(BROADCAST, station(0), IPV6, &datagram(S, D, 20)));
    c.same("v6 unicast in a multicast frame", 0, eth([0x33, 0x33, 0, 0, 0, 1], station(0), IPV6, &datagram(S, D, 20)));
}

/// Behind a header of this kind: the rest of the packet.
fn behind(kind: u8, header: &[u8]) -> Vec<u8> {
    let inner = udp(S, D, 7, &bytes(20));
    ip6(S, D, kind, &[header, &inner].concat())
}

fn extensions(c: &mut Cases) {
    let pad = [UDP, 0, 1, 4, 0, 0, 0, 0];
    c.packet("v6 hop-by-hop options: padding", 0, &behind(0, &pad));
    c.packet("v6 hop-by-hop options: router alert", 0, &behind(0, &[UDP, 0, 5, 2, 0, 0, 1, 0]));
    c.packet("v6 hop-by-hop options: unknown, to be skipped", 0, &behind(0, &[UDP, 0, 0x1e, 4, 0, 0, 0, 0]));
    c.packet("v6 destination options", 0, &behind(60, &pad));
    c.packet(
        "v6 destination options: unknown, to be refused by the destination",
        0,
        &behind(60, &[UDP, 0, 0x9e, 4, 0, 0, 0, 0]),
    );
    c.packet("v6 routing header", 0, &behind(43, &[UDP, 0, 253, 0, 0, 0, 0, 0]));
    c.packet("v6 first fragment", 0, &behind(44, &[UDP, 0, 0, 1, 0, 0, 0, 9]));
    c.packet("v6 last fragment", 0, &behind(44, &[UDP, 0, 0, 0x10, 0, 0, 0, 9]));
    c.packet("v6 authentication header", 0, &behind(51, &[UDP, 1, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1]));
    for (name, packet) in [
        ("hop-by-hop options", behind(0, &pad)),
        ("destination options", behind(60, &pad)),
        ("first fragment", behind(44, &[UDP, 0, 0, 1, 0, 0, 0, 9])),
    ] {
        c.packet(&format!("v6 hop limit 1 with {name}"), 0, &hops(packet, 1));
    }
    // What is behind a later fragment may be an ICMPv6 error, about which there must be no other (RFC 4443 2.4 e):
    // Linerate says nothing.
    let last = hops(behind(44, &[UDP, 0, 0, 0x10, 0, 0, 0, 9]), 1);
    c.differs("v6 hop limit 1 with last fragment", 0, &last, [1, 0], [0, 0]);
}

fn malformed(c: &mut Cases) {
    let good = datagram(S, D, 30);
    c.same(
        "v6 version 4 behind the EtherType of IPv6",
        0,
        eth(mac(ROUTER[0]), station(0), IPV6, &edit(good.clone(), |p| p[0] = 0x45)),
    );
    c.packet("v6 payload length beyond the frame", 0, &edit(good.clone(), |p| p[5] += 1));
    c.packet("v6 payload length 65535", 0, &edit(good.clone(), |p| p[4..6].fill(0xff)));
    c.packet("v6 payload length short, the rest padding", 0, &edit(good.clone(), |p| p[5] = 8));
    for len in [1, 39, 40, 77] {
        c.packet(&format!("v6 cut to {len} bytes"), 0, &good[..len]);
    }
}

fn martians(c: &mut Cases) {
    for from in ["::", "::1", "ff02::1", "ff0e::9"] {
        c.packet(&format!("v6 from {from}"), 0, &datagram(from, D, 20));
        c.packet(&format!("v6 from {from} with hop limit 1"), 0, &hops(datagram(from, D, 20), 1));
        c.packet(&format!("v6 echo from {from}"), 0, &echo(from, OWN, 20));
    }
    c.packet("v6 from our own address", 0, &datagram(OWN, D, 20));
    for to in ["::1", "ff02::5", "ff05::1", "ff0e::1"] {
        c.packet(&format!("v6 to {to}"), 0, &datagram(S, to, 20));
    }
    let all_nodes = [0x33, 0x33, 0, 0, 0, 1];
    c.same("v6 UDP to ff02::1", 0, eth(all_nodes, station(0), IPV6, &datagram(NEAR, "ff02::1", 20)));
    c.packet("v6 a source nobody has a route to", 0, &datagram("2001:db8:77::1", D, 20));
    c.packet("v6 a source of the other link", 0, &datagram("2001:2:0:2::99", D, 20));
    // Not forwarded by either (RFC 4291 2.5.6); the kernel says so (1/2, beyond scope of source address).
    c.differs("v6 a link-local source", 0, &datagram(STATION_LOCAL, D, 20), [1, 0], [0, 0]);
}

fn errors(c: &mut Cases) {
    for limit in [0, 1] {
        for len in [2, 1000, 1352, 1452] {
            let packet = hops(datagram(S, D, len), limit);
            c.packet(&format!("v6 hop limit {limit} of {} bytes", packet.len()), 0, &packet);
        }
    }
    for len in [1191, 1192, 1193] {
        c.packet(
            &format!("v6 hop limit 1, {len} bytes of payload: about as much as is quoted"),
            0,
            &hops(ip6(S, D, 253, &bytes(len)), 1),
        );
    }
    c.packet("v6 hop limit 1 with padding", 0, &[hops(datagram(S, D, 1), 1), vec![0xaa; 17]].concat());
    let coloured = edit(hops(datagram(S, D, 18), 1), |p| p[..4].copy_from_slice(&[0x65, 0xdd, 0xcb, 0xa9]));
    c.packet("v6 hop limit 1 with a traffic class and a flow label", 0, &coloured);
    c.packet("v6 hop limit 1 without a way back", 0, &hops(datagram("2001:db8:77::1", D, 18), 1));
    c.packet("v6 hop limit 1 whose way back is the other port", 0, &hops(datagram("2001:2:0:2::99", D, 18), 1));
    c.packet("v6 hop limit 1 from a neighbour", 0, &hops(datagram(NEAR, D, 18), 1));
    c.packet("v6 hop limit 1 to a black hole", 0, &hops(datagram(S, "2001:2:0:dead::1", 18), 1));
    c.packet("v6 hop limit 1 without a route", 0, &hops(datagram(S, "2001:db8:99::1", 18), 1));
    for kind in [1, 2, 3, 4, 100, 127, 128, 129, 136, 138, 200] {
        let packet = hops(ip6(S, D, ICMPV6, &icmp6(S, D, kind, 0, 0, &bytes(48))), 1);
        c.packet(&format!("v6 hop limit 1 of ICMPv6 type {kind}"), 0, &packet);
    }
    // RFC 4443 2.4 (e.2): never about a redirect. The kernel does.
    let redirect = hops(ip6(S, D, ICMPV6, &icmp6(S, D, 137, 0, 0, &bytes(48))), 1);
    c.differs("v6 hop limit 1 of a redirect", 0, &redirect, [1, 0], [0, 0]);
    c.packet("v6 hop limit 1 to multicast", 0, &hops(datagram(S, "ff0e::1", 18), 1));
    for len in [18, 700, 1300] {
        c.packet(&format!("v6 no route, {len} bytes"), 0, &datagram(S, "2001:db8:99::1", len));
    }
    c.packet(
        "v6 no route, an ICMPv6 error",
        0,
        &ip6(S, "2001:db8:99::1", ICMPV6, &icmp6(S, "2001:db8:99::1", 3, 0, 0, &bytes(48))),
    );
    for len in [1280, 1281, 1500] {
        c.packet(&format!("v6 {len} bytes to a link of 1280"), 0, &datagram(S, D, len - 48));
    }
    c.packet("v6 too big and hop limit 1", 0, &hops(datagram(S, D, 1400), 1));
}

fn to_ourselves(c: &mut Cases) {
    for len in [0, 1, 7, 8, 33, 56, 1192, 1193, 1452] {
        c.packet(&format!("v6 echo of {len} bytes"), 0, &echo(NEAR, OWN, len));
    }
    c.packet("v6 echo from far", 0, &echo(S, OWN, 56));
    c.packet("v6 echo to the address of the other link", 0, &echo(S, OWN1, 56));
    c.packet("v6 echo to the link-local address", 0, &echo(NEAR, LINK_LOCAL, 56));
    c.packet("v6 echo with hop limit 1", 0, &hops(echo(NEAR, OWN, 56), 1));
    c.packet("v6 echo with padding", 0, &[echo(NEAR, OWN, 3), vec![0xaa; 15]].concat());
    let coloured = edit(echo(NEAR, OWN, 56), |p| p[..4].copy_from_slice(&[0x6b, 0x9d, 0xcb, 0xa9]));
    c.packet("v6 echo with a traffic class and a flow label", 0, &coloured);
    // As for IPv4: Linerate answers by the way the request came.
    c.differs("v6 echo whose way back is the other port", 0, &echo("2001:2:0:2::99", OWN, 56), [0, 1], [1, 0]);
    c.differs("v6 echo without a way back", 0, &echo("2001:db8:77::1", OWN, 56), [0, 0], [1, 0]);
    let message = icmp6(NEAR, OWN, 128, 0, 1, &bytes(21));
    c.packet("v6 echo with a wrong checksum", 0, &ip6(NEAR, OWN, ICMPV6, &edit(message.clone(), |m| m[2] ^= 4)));
    c.packet("v6 echo with a code", 0, &ip6(NEAR, OWN, ICMPV6, &icmp6(NEAR, OWN, 128, 3, 1, &bytes(21))));
    c.packet("v6 echo cut short", 0, &ip6(NEAR, OWN, ICMPV6, &message[..7]));
    for kind in [1, 2, 3, 129, 144, 200] {
        c.packet(
            &format!("v6 ICMPv6 type {kind} to us"),
            0,
            &ip6(NEAR, OWN, ICMPV6, &icmp6(NEAR, OWN, kind, 0, 0, &bytes(48))),
        );
    }
    for len in [0, 18, 1232, 1400] {
        c.packet(&format!("v6 UDP of {len} bytes to a closed port"), 0, &datagram(S, OWN, len));
    }
    c.packet("v6 UDP to a closed port of the other link's address", 0, &datagram(S, OWN1, 18));
    let datagram = udp(S, OWN, 7, &bytes(18));
    c.packet("v6 UDP without a checksum", 0, &ip6(S, OWN, UDP, &edit(datagram.clone(), |d| d[6..8].fill(0))));
    c.packet("v6 UDP with a wrong checksum", 0, &ip6(S, OWN, UDP, &edit(datagram.clone(), |d| d[6] ^= 1)));
    c.packet("v6 UDP longer than its packet", 0, &ip6(S, OWN, UDP, &edit(datagram.clone(), |d| d[5] += 1)));
    c.packet("v6 UDP cut short", 0, &ip6(S, OWN, UDP, &datagram[..7]));
    // Linerate tells nobody of unknown headers (the kernel: 4/1).
    c.differs("v6 unknown next header to us", 0, &ip6(S, OWN, 253, &bytes(20)), [1, 0], [0, 0]);
    c.packet("v6 no next header to us", 0, &ip6(S, OWN, 59, &[]));
}

fn discovery(c: &mut Cases) {
    let s = station(0);
    // A unicast solicitation is answered with the link-layer address by Linerate, without by the kernel: RFC 4861 7.2.4
    // allows both.
    for own in [OWN, LINK_LOCAL] {
        for from in [NEAR, STATION_LOCAL] {
            let packet = nd(135, from, own, own, 0, Some(s));
            c.differs(&format!("ND for our {own} from {from}, unicast"), 0, &packet, [1, 0], [1, 0]);
        }
        let bare = nd(135, NEAR, own, own, 0, None);
        c.differs(&format!("ND for our {own}, without a link-layer address"), 0, &bare, [1, 0], [1, 0]);
    }
    let mut ask = |name: &str, dst: Mac, packet: Vec<u8>| {
        c.same(&format!("ND {name}"), 0, eth(dst, s, IPV6, &packet));
    };
    for own in [OWN, LINK_LOCAL] {
        let (group, group_mac) = solicited(own);
        for from in [NEAR, STATION_LOCAL] {
            ask(&format!("for our {own} from {from}"), group_mac, nd(135, from, &group, own, 0, Some(s)));
        }
        ask(&format!("for our {own}, for the first time"), group_mac, nd(135, "::", &group, own, 0, None));
        let named = nd(135, "::", &group, own, 0, Some(s));
        ask(&format!("for our {own}, from nobody but with an address"), group_mac, named);
        let far = edit(nd(135, NEAR, &group, own, 0, Some(s)), |p| p[7] = 254);
        ask(&format!("for our {own}, from another link"), group_mac, far);
        let wrong = edit(nd(135, NEAR, &group, own, 0, Some(s)), |p| p[42] ^= 1);
        ask(&format!("for our {own}, with a wrong checksum"), group_mac, wrong);
    }
    let (group, group_mac) = solicited(OWN1);
    ask("for our address on the other link", group_mac, nd(135, NEAR, &group, OWN1, 0, Some(s)));
    let (group, group_mac) = solicited("2001:db8:0:a::99");
    ask("for an address of our network", group_mac, nd(135, NEAR, &group, "2001:db8:0:a::99", 0, Some(s)));
    let (group, group_mac) = solicited(OWN);
    ask("for a multicast address", group_mac, nd(135, NEAR, &group, "ff02::1", 0, Some(s)));
    ask("cut short", group_mac, {
        let message = icmp6(NEAR, &group, 135, 0, 0, &a6(OWN).octets()[..15]);
        edit(ip6(NEAR, &group, ICMPV6, &message), |p| p[7] = 255)
    });
    ask("with an option of no length", group_mac, {
        let message = icmp6(NEAR, &group, 135, 0, 0, &[&a6(OWN).octets()[..], &[1, 0, 0, 0, 0, 0, 0, 0]].concat());
        edit(ip6(NEAR, &group, ICMPV6, &message), |p| p[7] = 255)
    });
    ask("with an option beyond its end", group_mac, {
        let message = icmp6(NEAR, &group, 135, 0, 0, &[&a6(OWN).octets()[..], &[1, 2, 0, 0, 0, 0, 0, 0]].concat());
        edit(ip6(NEAR, &group, ICMPV6, &message), |p| p[7] = 255)
    });
    ask("with an unknown option", group_mac, {
        let options = [&a6(OWN).octets()[..], &[77, 1, 0, 0, 0, 0, 0, 0, 1, 1], &s].concat();
        edit(ip6(NEAR, &group, ICMPV6, &icmp6(NEAR, &group, 135, 0, 0, &options)), |p| p[7] = 255)
    });
    ask("with a code", group_mac, {
        let message = icmp6(NEAR, &group, 135, 1, 0, &[&a6(OWN).octets()[..], &[1, 1], &s].concat());
        edit(ip6(NEAR, &group, ICMPV6, &message), |p| p[7] = 255)
    });
    ask("advertisement nobody asked for", mac(ROUTER[0]), nd(136, NEAR, OWN, NEAR, 0x20, Some(mac(HOST9))));
    ask("router solicitation", [0x33, 0x33, 0, 0, 0, 2], {
        edit(ip6(STATION_LOCAL, "ff02::2", ICMPV6, &icmp6(STATION_LOCAL, "ff02::2", 133, 0, 0, &[])), |p| p[7] = 255)
    });
}
