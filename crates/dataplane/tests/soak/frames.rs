//! Good frames of every kind, from and to addresses of the planes in `plans`. Lengths are right; checksums are left to
//! `repair`.

use std::net::{Ipv4Addr, Ipv6Addr};

use dataplane::local::link_local;
use packet::MacAddr;

use super::{dice::Dice, repair::repair};

/// The MAC address of a port.
pub fn port_mac(port: usize) -> MacAddr {
    MacAddr([2, 0xff, 0, 0, 0, port as u8])
}

/// Networks in which the planes have addresses, neighbours and routes, as the first octets.
const NETS4: [[u8; 3]; 12] = [
    [10, 0, 0],
    [10, 0, 1],
    [10, 0, 2],
    [10, 1, 0],
    [10, 2, 0],
    [198, 18, 7],
    [198, 19, 7],
    [198, 20, 7],
    [198, 21, 7],
    [198, 22, 7],
    [198, 23, 7],
    [192, 0, 2],
];
/// The same in IPv6: 2001:db8:N::.
const NETS6: [u16; 10] = [0, 1, 2, 0x100, 0x200, 0x18, 0x19, 0x20, 0x21, 0x22];
/// Hosts in them: 1 is the router, 2 to 5 have neighbour entries.
const HOSTS: [u8; 10] = [1, 1, 2, 3, 4, 5, 9, 77, 0, 255];
const ODD4: [[u8; 4]; 9] = [
    [0, 0, 0, 0],
    [127, 0, 0, 1],
    [224, 0, 0, 1],
    [240, 0, 0, 1],
    [255, 255, 255, 255],
    [169, 254, 0, 1],
    [0, 1, 2, 3],
    [8, 8, 8, 8],
    [10, 0, 0, 1],
];

/// A frame for a port, nested no deeper than `depth`.
pub fn frame(dice: &mut Dice, port: usize, depth: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(256);
    frame.extend(to_mac(dice, port));
    frame.extend(from_mac(dice));
    match dice.below(8) {
        0..=4 => {}
        5..=6 => tag(dice, &mut frame, 0x8100),
        _ => {
            let outer = dice.pick(&[0x88a8, 0x8100]);
            tag(dice, &mut frame, outer);
            tag(dice, &mut frame, 0x8100);
        }
    }
    let (kind, payload): (u16, _) = match dice.below(20) {
        0 => (0x0806, arp(dice, port)),
        1 => (0x86dd, discovery(dice, port)),
        2..=5 => (0x8847, labelled(dice, depth)),
        6 => (dice.pick(&[0x88cc, 0x0600, 0x0004, 0x8848, 0x9000]), dice.bytes(40)),
        7..=11 => (0x86dd, ip6(dice, depth)),
        _ => (0x0800, ip4(dice, depth)),
    };
    frame.extend(kind.to_be_bytes());
    frame.extend(payload);
    if dice.one_in(2) && frame.len() < 60 {
        frame.resize(60, 0);
    }
    repair(&mut frame);
    frame
}

/// Mostly the port's own, or a station's.
fn to_mac(dice: &mut Dice, port: usize) -> [u8; 6] {
    match dice.below(16) {
        0 => [0xff; 6],
        1 => [1, 0, 0x5e, 0, 0, 1],
        2 => [0x33, 0x33, 0, 0, 0, 1],
        3 => [1, 0x80, 0xc2, 0, 0, dice.byte() & 0x1f],
        4..=6 => station(dice),
        _ => port_mac(port).0,
    }
}

fn from_mac(dice: &mut Dice) -> [u8; 6] {
    match dice.below(24) {
        0 => [dice.byte(), 0, 1, 2, 3, 4],
        1 => [2, 1, 0, dice.byte(), dice.byte(), dice.byte()],
        2 => [0; 6],
        _ => station(dice),
    }
}

pub fn station(dice: &mut Dice) -> [u8; 6] {
    [2, 0, 0, 0, dice.below(3) as u8, dice.below(6) as u8]
}

fn tag(dice: &mut Dice, frame: &mut Vec<u8>, tpid: u16) {
    let vid = dice.pick(&[0u16, 100, 100, 200, 200, 30, 31, 31, 4094, 4095, 7]);
    frame.extend(tpid.to_be_bytes());
    frame.extend((vid | u16::from(dice.byte()) << 12).to_be_bytes());
}

fn addr4(dice: &mut Dice) -> Ipv4Addr {
    if dice.one_in(16) {
        return dice.pick(&ODD4).into();
    }
    let [a, b, c] = dice.pick(&NETS4);
    Ipv4Addr::new(a, b, c, dice.pick(&HOSTS))
}

fn addr6(dice: &mut Dice) -> Ipv6Addr {
    match dice.below(20) {
        0 => Ipv6Addr::UNSPECIFIED,
        1 => Ipv6Addr::LOCALHOST,
        2 => link_local(port_mac(dice.below(3))),
        3 => link_local(MacAddr(station(dice))),
        4 => Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
        _ => Ipv6Addr::new(0x2001, 0xdb8, dice.pick(&NETS6), 0, 0, 0, 0, dice.pick(&HOSTS).into()),
    }
}

/// An address of the link that a port is on.
fn near4(dice: &mut Dice, port: usize) -> [u8; 4] {
    match dice.below(4) {
        0 => addr4(dice).octets(),
        1 => [10, port as u8, 0, dice.pick(&HOSTS)],
        _ => [10, 0, port as u8, dice.pick(&HOSTS)],
    }
}

fn near6(dice: &mut Dice, port: usize) -> Ipv6Addr {
    match dice.below(4) {
        0 => addr6(dice),
        _ => Ipv6Addr::new(0x2001, 0xdb8, port as u16, 0, 0, 0, 0, dice.pick(&HOSTS).into()),
    }
}

fn arp(dice: &mut Dice, port: usize) -> Vec<u8> {
    let sender = near4(dice, port);
    let target = if dice.one_in(6) { sender } else { near4(dice, port) };
    let op = dice.pick(&[1, 1, 1, 2, 2, 3]);
    [&[0, 1, 8, 0, 6, 4, 0, op][..], &station(dice), &sender, &station(dice), &target].concat()
}

/// Neighbour and router discovery.
fn discovery(dice: &mut Dice, port: usize) -> Vec<u8> {
    let (src, target) = (near6(dice, port), near6(dice, port));
    let [.., x, y, z] = target.octets();
    let group = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, x, y, z];
    let kind = dice.pick(&[135, 135, 135, 136, 136, 133, 134, 137]);
    let dst = match dice.below(3) {
        0 => near6(dice, port),
        1 => Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
        _ => group.into(),
    };
    let mut body = vec![kind, 0, 0, 0, dice.byte() & 0xe0, 0, 0, 0];
    body.extend(target.octets());
    if dice.below(4) > 0 {
        body.extend([if kind == 135 { 1 } else { 2 }, 1]);
        body.extend(station(dice));
    }
    let hops = if dice.one_in(8) { 64 } else { 255 };
    head6(src, dst, 58, hops, body)
}

/// One to seven labels over a packet.
fn labelled(dice: &mut Dice, depth: usize) -> Vec<u8> {
    let n = 1 + dice.below(3) + if dice.one_in(8) { dice.below(20) } else { 0 };
    let mut bytes = Vec::new();
    for i in 0..n {
        let label: u32 = dice.pick(&[16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 16, 17, 18, 0, 2, 3, 7, 1000, 0xf_ffff]);
        let bottom = u32::from(i + 1 == n) << 8;
        let ttl = if dice.one_in(8) { dice.pick(&[0, 1, 2]) } else { 64 };
        bytes.extend((label << 12 | u32::from(dice.byte() & 7) << 9 | bottom | ttl).to_be_bytes());
    }
    bytes.extend(match dice.below(6) {
        0 => dice.bytes(30),
        1 | 2 => ip6(dice, depth),
        _ => ip4(dice, depth),
    });
    bytes
}

fn payload_len(dice: &mut Dice) -> usize {
    match dice.below(16) {
        0..=9 => dice.below(40),
        10..=13 => dice.below(500),
        14 => 1400 + dice.below(110),
        _ => dice.below(1900),
    }
}

/// The protocol and what it carries.
fn upper(dice: &mut Dice, v6: bool, depth: usize) -> (u8, Vec<u8>) {
    let (src, n) = ((dice.next() as u16).to_be_bytes(), payload_len(dice));
    match dice.below(10) {
        0 | 1 => {
            // Echo requests mostly, and errors about something.
            let kind = match v6 {
                false => dice.pick(&[8, 8, 8, 0, 3, 5, 11, 13]),
                true => dice.pick(&[128, 128, 128, 129, 1, 2, 3, 143]),
            };
            let mut body = vec![kind, 0, 0, 0, src[0], src[1], 0, 1];
            body.extend(dice.bytes(n));
            (if v6 { 58 } else { 1 }, body)
        }
        2 => {
            let mut body = [&src[..], &[0, 80], &dice.bytes(8), &[0x50, 0x18, 0x40, 0, 0, 0, 0, 0]].concat();
            body.extend(dice.bytes(n));
            (6, body)
        }
        3..=6 if depth > 0 => {
            let vni: u32 = dice.pick(&[10, 10, 20, 20, 30, 40, 0, 0xff_ffff]);
            let flags = if dice.one_in(12) { dice.byte() } else { 8 };
            let mut body = vec![flags, 0, 0, 0];
            body.extend((vni << 8).to_be_bytes());
            let port = dice.below(3);
            body.extend(frame(dice, port, depth - 1));
            let to = if dice.one_in(4) { 8472 } else { 4789 };
            (17, udp(dice, src, to, body))
        }
        7 => (dice.pick(&[2, 4, 41, 47, 50, 89, 132, 255]), dice.bytes(n)),
        _ => {
            let (to, body) = (dice.pick(&[7, 53, 33434, 4789, 3784]), dice.bytes(n));
            (17, udp(dice, src, to, body))
        }
    }
}

fn udp(dice: &mut Dice, src: [u8; 2], to: u16, body: Vec<u8>) -> Vec<u8> {
    // A checksum of zero says that there is none, and stays.
    let sum = u8::from(!dice.one_in(4));
    let mut bytes = src.to_vec();
    bytes.extend(to.to_be_bytes());
    bytes.extend((body.len() as u16 + 8).to_be_bytes());
    bytes.extend([0, sum]);
    bytes.extend(body);
    bytes
}

fn ip4(dice: &mut Dice, depth: usize) -> Vec<u8> {
    let (protocol, body) = upper(dice, false, depth);
    let options = match dice.below(8) {
        0 => dice.below(11),
        _ => 0,
    };
    let (mut src, mut dst) = (addr4(dice), addr4(dice));
    if protocol == 17 && body.get(2..4).is_some_and(|port| matches!(port, [0x12, 0xb5] | [0x21, 0x18])) {
        // Mostly between two tunnel ends.
        if dice.below(4) > 0 {
            (src, dst) =
                ([10, 0, dice.below(3) as u8, dice.pick(&HOSTS)].into(), [10, 0, dice.below(3) as u8, 1].into());
        }
    }
    let total = (20 + options * 4 + body.len()) as u16;
    let flags = match dice.below(8) {
        0 => 0x20 | dice.byte() & 0x1f,
        1 => dice.byte() & 0x1f,
        2..=4 => 0x40,
        _ => 0,
    };
    let ttl = if dice.one_in(8) { dice.pick(&[0, 1, 2]) } else { 64 };
    let mut bytes = vec![0x45 + options as u8, dice.byte(), (total >> 8) as u8, total as u8];
    bytes.extend([dice.byte(), dice.byte(), flags, 0, ttl, protocol, 0, 0]);
    bytes.extend(src.octets());
    bytes.extend(dst.octets());
    for _ in 0..options {
        bytes.extend(dice.pick(&[[1, 1, 1, 1], [7, 4, 4, 0], [0x94, 4, 0, 0], [0x83, 3, 4, 0], [0, 0, 0, 0]]));
    }
    bytes.extend(body);
    bytes
}

fn ip6(dice: &mut Dice, depth: usize) -> Vec<u8> {
    let (protocol, mut body) = upper(dice, true, depth);
    let mut next = protocol;
    for _ in 0..if dice.one_in(6) { 1 + dice.below(3) } else { 0 } {
        let (kind, mut header) = match dice.below(4) {
            0 => (0, vec![next, 0, 5, 2, 0, 0, 1, 0]),
            1 => (43, vec![next, 0, 0, 0, 0, 0, 0, 0]),
            2 => (44, vec![next, 0, 0, dice.byte() & 0xf9, 1, 2, 3, 4]),
            _ => (60, vec![next, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        };
        header.extend(body);
        (next, body) = (kind, header);
    }
    let (mut src, mut dst) = (addr6(dice), addr6(dice));
    if protocol == 17 && dice.one_in(2) {
        let end = |net: usize, host| Ipv6Addr::new(0x2001, 0xdb8, net as u16, 0, 0, 0, 0, host);
        (src, dst) = (end(dice.below(3), dice.pick(&HOSTS).into()), end(dice.below(3), 1));
    }
    let hops = if dice.one_in(8) { dice.pick(&[0, 1, 2, 255]) } else { 64 };
    head6(src, dst, next, hops, body)
}

fn head6(src: Ipv6Addr, dst: Ipv6Addr, next: u8, hops: u8, body: Vec<u8>) -> Vec<u8> {
    let len = (body.len() as u16).to_be_bytes();
    let mut bytes = vec![0x60, 0, 0, 0, len[0], len[1], next, hops];
    bytes.extend(src.octets());
    bytes.extend(dst.octets());
    bytes.extend(body);
    bytes
}
