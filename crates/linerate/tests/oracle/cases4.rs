//! IPv4 and ARP.
//!
//! Left out, because they are meant to differ: fragmentation (Linerate makes none; one case below says what it does
//! instead), reassembly of fragments for ourselves, TCP to ourselves (nothing answers), frames to other MAC addresses
//! (a raw port is promiscuous), record route, timestamp and source route options (Linerate does not act on options),
//! redirects (switched off in the kernel).

use crate::{
    setup::{station, Case, Cases, HOST9, ROUTER},
    support::frames::*,
};

/// A source behind station 0 that no other case has: the kernel limits some errors by destination.
struct Sources(u8);

impl Sources {
    fn next(&mut self) -> String {
        self.0 += 1;
        format!("198.18.1.{}", self.0)
    }
}

const D: &str = "198.19.0.1";
const OWN: &str = "10.255.0.1";
const OWN1: &str = "10.255.1.1";

fn datagram(src: &str, dst: &str, len: usize) -> Vec<u8> {
    ip4(src, dst, UDP, &udp(src, dst, 7, &bytes(len)))
}

fn echo(src: &str, dst: &str, len: usize) -> Vec<u8> {
    ip4(src, dst, ICMP, &icmp4(8, 0, 0x1234_0001, &bytes(len)))
}

fn ttl(packet: Vec<u8>, ttl: u8) -> Vec<u8> {
    edit4(packet, |p| p[8] = ttl)
}

fn dont_fragment(packet: Vec<u8>) -> Vec<u8> {
    edit4(packet, |p| p[6] |= 0x40)
}

pub fn all() -> Vec<Case> {
    let (mut cases, mut src) = (Cases::default(), Sources(0));
    forwarded(&mut cases, &mut src);
    malformed(&mut cases);
    martians(&mut cases);
    errors(&mut cases, &mut src);
    to_ourselves(&mut cases, &mut src);
    arp_cases(&mut cases);
    cases.0
}

fn forwarded(c: &mut Cases, src: &mut Sources) {
    let s = &src.next();
    for len in [0, 1, 18, 19, 512, 1252] {
        c.packet(&format!("v4 {len} bytes of payload"), 0, &datagram(s, D, len));
    }
    c.packet("v4 1472 bytes the other way", 1, &datagram(D, s, 1252));
    let padded = [datagram(s, D, 1), vec![0xaa; 20]].concat();
    c.packet("v4 with padding", 0, &padded);
    c.packet("v4 longest match: /24 via the second host", 0, &datagram(s, "198.19.9.1", 20));
    c.packet("v4 longest match: /25 via the first", 0, &datagram(s, "198.19.9.129", 20));
    c.packet("v4 longest match: /32 by the other port, back where it came from", 0, &datagram(s, "198.19.9.200", 20));
    c.packet("v4 longest match: /32 from the other port", 1, &datagram(D, "198.19.9.200", 20));
    c.packet("v4 to a neighbour", 0, &datagram(s, "10.255.1.9", 20));
    c.packet("v4 TTL 2", 0, &ttl(datagram(s, D, 20), 2));
    c.packet("v4 TTL 255", 0, &ttl(datagram(s, D, 20), 255));
    c.packet("v4 every bit of the type of service", 0, &edit4(datagram(s, D, 20), |p| p[1] = 0xff));
    c.packet("v4 the reserved flag", 0, &edit4(datagram(s, D, 20), |p| p[6] |= 0x80));
    c.packet("v4 unknown protocol", 0, &ip4(s, D, 253, &bytes(30)));
    c.packet("v4 no payload at all", 0, &ip4(s, D, 253, &[]));
    c.packet("v4 first fragment", 0, &edit4(datagram(s, D, 64), |p| p[6] |= 0x20));
    c.packet("v4 middle fragment", 0, &edit4(datagram(s, D, 64), |p| p[6..8].copy_from_slice(&[0x20, 0x10])));
    c.packet("v4 last fragment", 0, &edit4(datagram(s, D, 64), |p| p[6..8].copy_from_slice(&[0x00, 0x10])));
    for (name, options) in [
        ("no operation", &[1, 1, 1, 1][..]),
        ("end of options", &[0, 0, 0, 0]),
        ("router alert", &[0x94, 4, 0, 0]),
        ("an unknown one", &[0x9e, 4, 7, 7]),
        ("40 bytes of them", &[1; 40]),
    ] {
        let packet = ip4_options(s, D, UDP, options, &udp(s, D, 7, &bytes(20)));
        c.packet(&format!("v4 with options: {name}"), 0, &packet);
    }
    // Checksums whose update carries and folds: each TTL, and an identification that brings the sum to its ends.
    for (id, ttl) in [(0u16, 64), (0xffff, 64), (0x4c52, 128), (1, 3), (0xfffe, 2)] {
        let packet = edit4(datagram(s, D, 20), |p| {
            p[4..6].copy_from_slice(&id.to_be_bytes());
            p[8] = ttl;
        });
        c.packet(&format!("v4 identification {id:#x}, TTL {ttl}"), 0, &packet);
    }
    for want in [0xffff, 0xfeff, 0xfe00, 0x0000, 0x00ff, 0xff00] {
        // The identification that makes the checksum of the header exactly this.
        let blank = edit4(datagram(s, D, 20), |p| p[4..6].fill(0));
        let id = packet::checksum::update(u16::from_be_bytes([blank[10], blank[11]]), 0, 0);
        let id = packet::checksum::fold(u64::from(id) + u64::from(!(want as u16)));
        let packet = edit4(blank, |p| p[4..6].copy_from_slice(&id.to_be_bytes()));
        c.packet(&format!("v4 header checksum about {want:#06x}"), 0, &packet);
    }
    c.packet("v4 black hole", 0, &datagram(s, "203.0.113.5", 20));
    let unicast = datagram(s, D, 20);
    c.same("v4 unicast in a broadcast frame", 0, eth(BROADCAST, station(0), IPV4, &unicast));
    c.same("v4 unicast in a multicast frame", 0, eth([1, 0, 0x5e, 1, 2, 3], station(0), IPV4, &unicast));
    c.same("an unknown EtherType", 0, eth(mac(ROUTER[0]), station(0), 0x88b5, &unicast));
    c.same("an LLC frame", 0, eth(mac(ROUTER[0]), station(0), 40, &bytes(46)));
}

fn malformed(c: &mut Cases) {
    let (s, good) = ("198.18.0.2", datagram("198.18.0.2", D, 30));
    let cut = |len: usize| good[..len].to_vec();
    c.packet("v4 wrong header checksum", 0, &edit(good.clone(), |p| p[10] ^= 1));
    c.packet("v4 header checksum 0 in place of 0xffff", 0, &edit(good.clone(), |p| p[10..12].fill(0)));
    c.packet("v4 version 5", 0, &edit4(good.clone(), |p| p[0] = 0x55));
    c.same(
        "v4 version 6 behind the EtherType of IPv4",
        0,
        eth(mac(ROUTER[0]), station(0), IPV4, &edit4(good.clone(), |p| p[0] = 0x65)),
    );
    for words in [0, 4, 15] {
        c.packet(&format!("v4 header length {words}"), 0, &edit4(good.clone(), |p| p[0] = 0x40 | words));
    }
    for total in [0u16, 19, 59, 1500] {
        let packet = edit4(good.clone(), |p| p[2..4].copy_from_slice(&total.to_be_bytes()));
        c.packet(&format!("v4 total length {total}"), 0, &packet);
    }
    c.packet("v4 total length 20, the rest padding", 0, &edit4(good.clone(), |p| p[2..4].copy_from_slice(&[0, 20])));
    for len in [1, 19, 20, 21, 57] {
        c.packet(&format!("v4 cut to {len} bytes"), 0, &cut(len));
    }
    let options = ip4_options(s, D, UDP, &[1; 8], &[]);
    c.packet("v4 cut within its options", 0, &options[..24]);
}

fn martians(c: &mut Cases) {
    for from in ["0.0.0.0", "127.0.0.1", "127.255.0.1", "224.0.0.1", "239.9.9.9", "255.255.255.255"] {
        c.packet(&format!("v4 from {from}"), 0, &datagram(from, D, 20));
        c.packet(&format!("v4 from {from} with TTL 1"), 0, &ttl(datagram(from, D, 20), 1));
        c.packet(&format!("v4 echo from {from}"), 0, &echo(from, OWN, 20));
    }
    // The kernel drops what claims to come from itself; RFC 1812 5.3.8 leaves source validation to the router, and
    // Linerate does none.
    for from in [OWN, OWN1] {
        c.differs(&format!("v4 from our own {from}"), 0, &datagram(from, D, 20), [0, 0], [0, 1]);
    }
    // The kernel takes the rest of 0.0.0.0/8 for ordinary; RFC 1122 3.2.1.3 (a, b) and RFC 1812 5.3.7 do not.
    c.differs("v4 from 0.0.0.1", 0, &datagram("0.0.0.1", D, 20), [0, 1], [0, 0]);
    c.differs("v4 to 0.0.0.9", 0, &datagram("198.18.0.3", "0.0.0.9", 20), [1, 0], [0, 0]);
    for to in ["0.0.0.0", "127.0.0.1", "224.0.0.5", "239.1.1.1", "255.255.255.255"] {
        c.packet(&format!("v4 to {to}"), 0, &datagram("198.18.0.3", to, 20));
    }
    for (to, group) in
        [("224.0.0.1", [1, 0, 0x5e, 0, 0, 1]), ("255.255.255.255", BROADCAST), ("10.255.0.255", BROADCAST)]
    {
        let frame = |packet: &[u8]| eth(group, station(0), IPV4, packet);
        c.same(&format!("v4 echo to {to}"), 0, frame(&echo("10.255.0.2", to, 20)));
        c.same(&format!("v4 UDP to {to}"), 0, frame(&datagram("10.255.0.2", to, 20)));
    }
    c.packet("v4 directed broadcast from the other link", 1, &echo("198.19.0.7", "10.255.0.255", 20));
    c.packet("v4 a source nobody has a route to", 0, &datagram("192.0.2.1", D, 20));
    c.packet("v4 a source of the other link", 0, &datagram("198.19.0.9", D, 20));
}

fn errors(c: &mut Cases, src: &mut Sources) {
    for ttl_in in [0, 1] {
        for len in [18, 1372] {
            let s = &src.next();
            let packet = ttl(datagram(s, D, len), ttl_in);
            c.packet(&format!("v4 TTL {ttl_in} of {} bytes", packet.len()), 0, &packet);
        }
    }
    let s = &src.next();
    for len in [547, 548, 549] {
        c.packet(
            &format!("v4 TTL 1 of {len} bytes, about as much as is quoted"),
            0,
            &ttl(ip4(s, D, 253, &bytes(len - 20)), 1),
        );
    }
    c.packet("v4 TTL 1 with padding", 0, &[ttl(datagram(s, D, 1), 1), vec![0xaa; 17]].concat());
    c.packet("v4 TTL 1 with a type of service", 0, &edit4(ttl(datagram(s, D, 18), 1), |p| p[1] = 0x5d));
    c.packet("v4 TTL 1 without a way back", 0, &ttl(datagram("192.0.2.1", D, 18), 1));
    // The error has an address of the link by which it leaves (RFC 1812 4.3.2.4).
    c.packet("v4 TTL 1 whose way back is the other port", 0, &ttl(datagram("198.19.0.9", D, 18), 1));
    c.packet("v4 TTL 1 from a neighbour", 1, &ttl(datagram("10.255.1.9", "198.18.0.1", 18), 1));
    c.packet("v4 TTL 1 to a black hole", 0, &ttl(datagram(&src.next(), "203.0.113.5", 18), 1));
    c.packet("v4 TTL 1 without a route", 0, &ttl(datagram(&src.next(), "192.0.2.77", 18), 1));
    c.packet("v4 TTL 1 with options", 0, &ttl(ip4_options(s, D, UDP, &[1; 8], &udp(s, D, 7, &bytes(9))), 1));
    for (name, offset, said) in [("first", [0x20, 0], true), ("last", [0, 0x10], false)] {
        let packet = edit4(ttl(datagram(s, D, 64), 1), |p| p[6..8].copy_from_slice(&offset));
        c.packet(&format!("v4 TTL 1 of the {name} fragment, error: {said}"), 0, &packet);
    }
    for kind in [0, 3, 4, 5, 8, 11, 12, 13, 17, 18, 19, 42, 255] {
        let packet = ttl(ip4(s, D, ICMP, &icmp4(kind, 0, 0, &bytes(28))), 1);
        c.packet(&format!("v4 TTL 1 of ICMP type {kind}"), 0, &packet);
    }
    c.same("v4 TTL 1 in a broadcast frame", 0, eth(BROADCAST, station(0), IPV4, &ttl(datagram(s, D, 18), 1)));
    c.packet("v4 TTL 1 to multicast", 0, &ttl(datagram(s, "239.1.1.1", 18), 1));
    for len in [18, 700] {
        let s = &src.next();
        c.packet(&format!("v4 no route, {len} bytes"), 0, &datagram(s, "192.0.2.77", len));
    }
    c.packet("v4 no route, an ICMP error", 0, &ip4(&src.next(), "192.0.2.77", ICMP, &icmp4(11, 0, 0, &bytes(28))));
    for packet_len in [1280usize, 1281, 1500] {
        let packet = dont_fragment(datagram(&src.next(), D, packet_len - 28));
        c.packet(&format!("v4 {packet_len} bytes, do not fragment, to a link of 1280"), 0, &packet);
    }
    let s = &src.next();
    c.packet("v4 too big and TTL 1", 0, &ttl(dont_fragment(datagram(s, D, 1400)), 1));
    // RFC 1812 5.2.1.1 wants fragmentation; Linerate drops and counts instead.
    c.differs("v4 1400 bytes, may be fragmented, to a link of 1280", 0, &datagram(s, D, 1372), [0, 2], [0, 0]);
    // Class E addresses are routed by the kernel; RFC 1812 5.3.7 says that they must not be.
    c.differs("v4 from class E", 0, &datagram("240.0.0.1", D, 20), [0, 1], [0, 0]);
    c.differs("v4 to class E", 0, &datagram("198.18.0.3", "240.0.0.1", 20), [1, 0], [0, 0]);
}

fn to_ourselves(c: &mut Cases, src: &mut Sources) {
    for len in [0, 1, 7, 8, 33, 56, 548, 549, 1252] {
        c.packet(&format!("v4 echo of {len} bytes"), 0, &echo("10.255.0.2", OWN, len));
    }
    c.packet("v4 echo of 1472 bytes", 0, &echo("10.255.0.2", OWN, 1472));
    c.packet("v4 echo from far", 0, &echo(&src.next(), OWN, 56));
    c.packet("v4 echo to the address of the other link", 0, &echo(&src.next(), OWN1, 56));
    c.packet("v4 echo with TTL 1", 0, &ttl(echo("10.255.0.2", OWN, 56), 1));
    c.packet("v4 echo with padding", 0, &[echo("10.255.0.2", OWN, 3), vec![0xaa; 15]].concat());
    c.packet("v4 echo with a type of service", 0, &edit4(echo("10.255.0.2", OWN, 56), |p| p[1] = 0xb9));
    c.packet("v4 echo, do not fragment", 0, &dont_fragment(echo("10.255.0.2", OWN, 56)));
    // Linerate answers by the way the request came, to the MAC address it came from; the kernel routes the answer.
    c.differs("v4 echo whose way back is the other port", 0, &echo("198.19.0.9", OWN, 56), [0, 1], [1, 0]);
    c.differs("v4 echo without a way back", 0, &echo("192.0.2.1", OWN, 56), [0, 0], [1, 0]);
    let from_host9 = eth(mac(ROUTER[1]), mac(HOST9), IPV4, &echo("10.255.1.9", OWN1, 56));
    c.same("v4 echo from the second host", 1, from_host9);
    let message = icmp4(8, 0, 1, &bytes(21));
    c.packet(
        "v4 echo with a wrong ICMP checksum",
        0,
        &ip4("10.255.0.2", OWN, ICMP, &edit(message.clone(), |m| m[2] ^= 4)),
    );
    c.packet("v4 echo with a code", 0, &ip4("10.255.0.2", OWN, ICMP, &icmp4(8, 1, 1, &bytes(21))));
    c.packet("v4 echo cut short", 0, &ip4("10.255.0.2", OWN, ICMP, &message[..7]));
    for kind in [0, 3, 11, 12, 14, 15, 17, 30] {
        c.packet(
            &format!("v4 ICMP type {kind} to us"),
            0,
            &ip4("10.255.0.2", OWN, ICMP, &icmp4(kind, 0, 0, &bytes(28))),
        );
    }
    for len in [0, 18, 1224] {
        let s = &src.next();
        c.packet(&format!("v4 UDP of {len} bytes to a closed port"), 0, &datagram(s, OWN, len));
    }
    let s = &src.next();
    c.packet("v4 UDP to a closed port of the other link's address", 0, &datagram(s, OWN1, 18));
    c.packet("v4 UDP with TTL 1 to a closed port", 0, &ttl(datagram(s, OWN, 18), 1));
    let datagram = udp(s, OWN, 7, &bytes(18));
    c.packet("v4 UDP without a checksum", 0, &ip4(s, OWN, UDP, &edit(datagram.clone(), |d| d[6..8].fill(0))));
    c.packet("v4 UDP with a wrong checksum", 0, &ip4(s, OWN, UDP, &edit(datagram.clone(), |d| d[6] ^= 1)));
    c.packet("v4 UDP longer than its packet", 0, &ip4(s, OWN, UDP, &edit(datagram.clone(), |d| d[5] += 1)));
    c.packet("v4 UDP shorter than its header", 0, &ip4(s, OWN, UDP, &edit(datagram.clone(), |d| d[5] = 7)));
    c.packet("v4 UDP cut short", 0, &ip4(s, OWN, UDP, &datagram[..7]));
    c.packet("v4 to us with a wrong header checksum", 0, &edit(echo("10.255.0.2", OWN, 20), |p| p[10] ^= 1));
    // Linerate tells nobody of unknown protocols (the kernel: 3/2), and has no timestamps to give (RFC 1812 4.3.3.8).
    c.differs("v4 unknown protocol to us", 0, &ip4(&src.next(), OWN, 253, &bytes(20)), [1, 0], [0, 0]);
    let timestamp = ip4("10.255.0.2", OWN, ICMP, &icmp4(13, 0, 0, &bytes(12)));
    c.differs("v4 timestamp request", 0, &timestamp, [1, 0], [0, 0]);
}

fn arp_cases(c: &mut Cases) {
    let (s, none) = (station(0), [0; 6]);
    let mut ask = |name: &str, port: usize, dst: Mac, message: Vec<u8>| {
        c.same(&format!("ARP {name}"), port, eth(dst, station(port), ARP, &message));
    };
    ask("for our address", 0, BROADCAST, arp(1, (s, "10.255.0.2"), (none, OWN)));
    ask("for our address, padded", 0, BROADCAST, [arp(1, (s, "10.255.0.2"), (none, OWN)), vec![0; 18]].concat());
    ask("for our address, unicast", 0, mac(ROUTER[0]), arp(1, (s, "10.255.0.2"), (none, OWN)));
    ask("for our address on the other link", 0, BROADCAST, arp(1, (s, "10.255.0.2"), (none, OWN1)));
    ask(
        "for our address, from a host not seen before",
        1,
        BROADCAST,
        arp(1, (mac(HOST9), "10.255.1.77"), (none, OWN1)),
    );
    ask("probe for our address", 0, BROADCAST, arp(1, (s, "0.0.0.0"), (none, OWN)));
    ask("for an address of our network", 0, BROADCAST, arp(1, (s, "10.255.0.2"), (none, "10.255.0.99")));
    ask("for an address that we have a route to", 0, BROADCAST, arp(1, (s, "10.255.0.2"), (none, D)));
    ask("gratuitous", 0, BROADCAST, arp(1, (s, "10.255.0.2"), (none, "10.255.0.2")));
    ask("reply nobody asked for", 0, mac(ROUTER[0]), arp(2, (s, "10.255.0.2"), (mac(ROUTER[0]), OWN)));
    ask("with an unknown operation", 0, BROADCAST, arp(3, (s, "10.255.0.2"), (none, OWN)));
    ask("cut short", 0, BROADCAST, arp(1, (s, "10.255.0.2"), (none, OWN))[..27].to_vec());
    ask("for another hardware", 0, BROADCAST, edit(arp(1, (s, "10.255.0.2"), (none, OWN)), |m| m[1] = 15));
    ask("for another protocol", 0, BROADCAST, edit(arp(1, (s, "10.255.0.2"), (none, OWN)), |m| m[2] = 9));
    ask("with other lengths", 0, BROADCAST, edit(arp(1, (s, "10.255.0.2"), (none, OWN)), |m| m[4] = 8));
    ask("from a multicast address", 0, BROADCAST, arp(1, (s, "224.0.0.1"), (none, OWN)));
    ask("from loopback", 0, BROADCAST, arp(1, (s, "127.0.0.1"), (none, OWN)));
}
