//! Frames, built by `etherparse` where it knows them and by hand where not.

use etherparse::{PacketBuilder, TcpHeader};

use crate::{decode::*, Addresses, Distinguish, Facts, Key};

pub const A4: [u8; 4] = [198, 18, 0, 1];
pub const B4: [u8; 4] = [198, 19, 3, 9];
pub const A6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
pub const B6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// An Ethernet frame of any type.
pub fn ether(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &kind.to_be_bytes(), payload].concat()
}

pub fn ip4(from: [u8; 4], to: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0x2e, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0];
    packet.extend([from, to].concat());
    packet.extend(payload);
    let len = packet.len() as u16;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet
}

pub fn ip6(from: [u8; 16], to: [u8; 16], next: u8, payload: &[u8]) -> Vec<u8> {
    let len = payload.len() as u16;
    [&[0x62, 0xe1, 2, 3][..], &len.to_be_bytes(), &[next, 64], &from, &to, payload].concat()
}

pub fn tcp(sport: u16, dport: u16, flags: u8) -> Vec<u8> {
    let mut header = TcpHeader::new(sport, dport, 7, 1000).to_bytes().to_vec();
    header[13] = flags;
    header
}

pub fn udp(sport: u16, dport: u16, payload: &[u8]) -> Vec<u8> {
    let len = 8 + payload.len() as u16;
    [&sport.to_be_bytes(), &dport.to_be_bytes(), &len.to_be_bytes(), &[0, 0][..], payload].concat()
}

pub fn vxlan(vni: u32, inner: &[u8]) -> Vec<u8> {
    udp(50_000, 4789, &[&[8, 0, 0, 0], &(vni << 8).to_be_bytes(), inner].concat())
}

/// Label stack entries and what is below them.
pub fn mpls(labels: &[u32], payload: &[u8]) -> Vec<u8> {
    let last = labels.len() - 1;
    let entries = labels.iter().enumerate().flat_map(|(i, l)| (l << 12 | u32::from(i == last) << 8 | 64).to_be_bytes());
    entries.chain(payload.iter().copied()).collect()
}

/// With VLAN tags, outermost first.
pub fn tagged(frame: &[u8], tags: &[(u16, u16)]) -> Vec<u8> {
    let tags: Vec<u8> = tags.iter().flat_map(|(kind, tci)| [kind.to_be_bytes(), tci.to_be_bytes()].concat()).collect();
    [&frame[..12], &tags, &frame[12..]].concat()
}

pub fn plain() -> Vec<u8> {
    let mut frame = Vec::new();
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(A4, B4, 64).udp(1234, 53);
    builder.write(&mut frame, &[0; 18]).unwrap();
    frame
}

pub fn plain6() -> Vec<u8> {
    let mut frame = Vec::new();
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv6(A6, B6, 64).tcp(1234, 53, 0, 0).syn();
    builder.write(&mut frame, &[0; 18]).unwrap();
    frame
}

/// One of every kind that there is to look into.
pub fn kinds() -> Vec<(&'static str, Vec<u8>)> {
    let (four, six) = (ip4(A4, B4, 6, &tcp(1, 2, 0x12)), ip6(A6, B6, 17, &udp(3, 4, &[0; 9])));
    let options = [0, 0, 1, 4, 0, 0, 0, 0];
    let chain =
        [&[43][..], &options[1..], &[44], &options[1..], &[17, 0, 0, 1, 0, 0, 0, 1], &udp(3, 4, &[0; 9])].concat();
    let mut with_options = ip4(A4, B4, 6, &[&options[..], &tcp(1, 2, 0x12)].concat());
    with_options[0] = 0x47;
    let mut first = ip4(A4, B4, 17, &udp(7, 8, &[0; 40]));
    first[6] = 0x20;
    let mut behind = first.clone();
    behind[7] = 5;
    vec![
        ("udp", plain()),
        ("tcp", ether(0x800, &four)),
        ("tcp6", plain6()),
        ("udp6", ether(0x86dd, &six)),
        ("options", ether(0x800, &with_options)),
        ("first fragment", ether(0x800, &first)),
        ("later fragment", ether(0x800, &behind)),
        ("icmp", ether(0x800, &ip4(A4, B4, 1, &[8, 0, 0, 0, 0, 1, 0, 1]))),
        ("icmp6", ether(0x86dd, &ip6(A6, B6, 58, &[129, 0, 0, 0, 0, 1, 0, 1]))),
        ("sctp", ether(0x800, &ip4(A4, B4, 132, &udp(9, 10, &[])))),
        ("extensions", ether(0x86dd, &ip6(A6, B6, 0, &chain))),
        ("vlan", tagged(&plain(), &[(0x8100, 100)])),
        ("qinq", tagged(&plain6(), &[(0x88a8, 100), (0x8100, 200)])),
        ("mpls", ether(0x8847, &mpls(&[16, 17], &four))),
        ("mpls6", ether(0x8848, &mpls(&[16], &six))),
        ("pseudowire", ether(0x8847, &mpls(&[16], &[&[0, 0, 0, 9][..], &plain()].concat()))),
        ("pseudowire, no control word", ether(0x8847, &mpls(&[16], &plain6()))),
        ("vxlan", ether(0x800, &ip4(B4, A4, 17, &vxlan(5000, &plain())))),
        ("vxlan6", ether(0x86dd, &ip6(B6, A6, 17, &vxlan(5000, &tagged(&plain(), &[(0x8100, 7)]))))),
        ("gre", ether(0x800, &ip4(B4, A4, 47, &[&[0, 0, 8, 0][..], &ip4(A4, B4, 17, &udp(7, 8, &[]))].concat()))),
        (
            "gre with a frame",
            ether(0x86dd, &ip6(B6, A6, 47, &[&[0x20, 0, 0x65, 0x58, 0, 0, 0, 9][..], &plain()].concat())),
        ),
        ("ip in ip", ether(0x800, &ip4(B4, A4, 41, &six))),
        ("gtp-u", ether(0x800, &ip4(B4, A4, 17, &gtpu(&[], &four)))),
        ("gtp-u, extended", ether(0x86dd, &ip6(B6, A6, 17, &gtpu(&[0, 1, 0, 0x85, 1, 0, 9, 0], &six)))),
        ("pppoe", ether(0x8864, &pppoe(0x21, &four))),
        ("pppoe6", tagged(&ether(0x8864, &pppoe(0x57, &six)), &[(0x9100, 3), (0x8100, 4)])),
        ("pppoe, short", ether(0x8864, &[&[0x11, 0, 0, 7, 0, 1, 0x21][..], &four].concat())),
        ("lcp", ether(0x8864, &pppoe(0xc021, &[1, 1, 0, 4]))),
        ("arp", ether(0x806, &[0; 46])),
        ("llc", ether(38, &[0x42; 46])),
    ]
}

/// A user's packet in UDP; the optional fields, with extension headers, are given.
pub fn gtpu(optional: &[u8], packet: &[u8]) -> Vec<u8> {
    let length = (optional.len() + packet.len()) as u16;
    let first = if optional.is_empty() { 0x30 } else { 0x34 };
    let header = [&[first, 255][..], &length.to_be_bytes(), &[0, 0, 0, 77], optional, packet].concat();
    udp(50_000, 2152, &header)
}

pub fn pppoe(protocol: u16, packet: &[u8]) -> Vec<u8> {
    let length = packet.len() as u16 + 2;
    [&[0x11, 0, 0, 1][..], &length.to_be_bytes(), &protocol.to_be_bytes(), packet].concat()
}

pub fn decoders() -> Vec<Decoder> {
    let mut all = Vec::new();
    for biflow in [false, true] {
        for layer in [Layer::Outer, Layer::Inner] {
            for distinguish in [Distinguish::None, Distinguish::Vlan, Distinguish::Vni, Distinguish::Label] {
                let tunnels = if layer == Layer::Inner { inner() } else { DecodeSpec::default() };
                all.push(Decoder::new(DecodeSpec { mpls: layer, distinguish, biflow, ..tunnels }));
            }
        }
    }
    all
}

pub fn inner() -> DecodeSpec {
    let inner = Layer::Inner;
    DecodeSpec { vxlan: inner, gre: inner, ipip: inner, gtpu: inner, ..DecodeSpec::default() }
}

/// The same of both versions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ip {
    pub key: Key,
    pub tos: u8,
    pub tcp_flags: u16,
    pub reversed: bool,
    pub bytes: u32,
    pub ip_bytes: u32,
}

pub fn ip(decoded: Decoded) -> Option<Ip> {
    match decoded {
        Decoded::Ip4(Packet4 { key, facts }) => Some(of(key.into(), facts.into())),
        Decoded::Ip6(Packet6 { key, facts }) => Some(of(key.into(), facts.into())),
        Decoded::NotIp(_) | Decoded::Malformed => None,
    }
}

fn of(key: Key, facts: Facts) -> Ip {
    let Facts { frame_bytes: bytes, ip_bytes, tos, tcp_flags, reversed } = facts;
    Ip { key, tos, tcp_flags, reversed, bytes, ip_bytes }
}

pub fn key4(sport: u16, dport: u16, protocol: u8) -> Key {
    let addresses = Addresses::V4 { src: A4.into(), dst: B4.into() };
    Key { addresses, sport, dport, protocol, port: 0, scope: None, bottom: false }
}

pub fn key6(sport: u16, dport: u16, protocol: u8) -> Key {
    Key { addresses: Addresses::V6 { src: A6.into(), dst: B6.into() }, ..key4(sport, dport, protocol) }
}
