//! Frames written by hand, right or wrong on purpose.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use packet::checksum;

pub type Mac = [u8; 6];

pub const ETH: usize = 14;
pub const IPV4: u16 = 0x0800;
pub const ARP: u16 = 0x0806;
pub const IPV6: u16 = 0x86dd;
pub const ICMP: u8 = 1;
pub const UDP: u8 = 17;
pub const ICMPV6: u8 = 58;
pub const BROADCAST: Mac = [0xff; 6];

/// `02:4c:52:00:00:00` and so on, as text, to bytes.
#[track_caller]
pub fn mac(text: &str) -> Mac {
    let bytes: Vec<u8> = text.split(':').map(|b| u8::from_str_radix(b, 16).expect("a MAC address")).collect();
    bytes.try_into().expect("a MAC address")
}

#[track_caller]
pub fn a4(text: &str) -> Ipv4Addr {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[track_caller]
pub fn a6(text: &str) -> Ipv6Addr {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

pub fn hex(frame: &[u8]) -> String {
    let words = frame.chunks(2).map(|w| w.iter().map(|b| format!("{b:02x}")).collect::<String>());
    format!("{}: {}", frame.len(), words.collect::<Vec<_>>().join(" "))
}

/// So many bytes, none like its neighbour.
pub fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 256) as u8).collect()
}

pub fn eth(dst: Mac, src: Mac, ethertype: u16, body: &[u8]) -> Vec<u8> {
    [&dst[..], &src, &ethertype.to_be_bytes(), body].concat()
}

/// An IPv4 packet with TTL 64 and identification 0x4c52.
pub fn ip4(src: &str, dst: &str, protocol: u8, body: &[u8]) -> Vec<u8> {
    ip4_options(src, dst, protocol, &[], body)
}

/// The same with options, which must fill whole words.
pub fn ip4_options(src: &str, dst: &str, protocol: u8, options: &[u8], body: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let mut packet = vec![0x40 | (header / 4) as u8, 0];
    packet.extend(((header + body.len()) as u16).to_be_bytes());
    packet.extend([0x4c, 0x52, 0, 0, 64, protocol, 0, 0]);
    packet.extend(a4(src).octets());
    packet.extend(a4(dst).octets());
    packet.extend(options);
    packet.extend(body);
    edit4(packet, |_| ())
}

/// Changes an IPv4 packet and puts the header checksum right again.
pub fn edit4(mut packet: Vec<u8>, edit: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    edit(&mut packet);
    let len = (usize::from(packet[0] & 0xf) * 4).clamp(20, packet.len());
    packet[10..12].fill(0);
    let sum = checksum::finish(checksum::sum(&packet[..len]));
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// An IPv6 packet with hop limit 64.
pub fn ip6(src: &str, dst: &str, next: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((body.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    packet.extend(a6(src).octets());
    packet.extend(a6(dst).octets());
    packet.extend(body);
    packet
}

pub fn edit(mut packet: Vec<u8>, edit: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    edit(&mut packet);
    packet
}

fn pseudo(src: &str, dst: &str, protocol: u8, len: usize) -> u64 {
    match (src.parse().expect("an address"), dst.parse().expect("an address")) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => checksum::pseudo_v4(src, dst, protocol, len as u16),
        (IpAddr::V6(src), IpAddr::V6(dst)) => checksum::pseudo_v6(src, dst, protocol, len as u32),
        _ => panic!("{src} and {dst}"),
    }
}

/// A UDP datagram from port 1000 to `port`.
pub fn udp(src: &str, dst: &str, port: u16, payload: &[u8]) -> Vec<u8> {
    let len = 8 + payload.len();
    let mut datagram = 1000u16.to_be_bytes().to_vec();
    datagram.extend(port.to_be_bytes());
    datagram.extend((len as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    let sum = checksum::finish_udp(pseudo(src, dst, UDP, len) + checksum::sum(&datagram));
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    datagram
}

/// An ICMP message: type, code, the word behind the checksum, and what follows.
pub fn icmp4(kind: u8, code: u8, rest: u32, payload: &[u8]) -> Vec<u8> {
    icmp(kind, code, rest, payload, 0)
}

pub fn icmp6(src: &str, dst: &str, kind: u8, code: u8, rest: u32, payload: &[u8]) -> Vec<u8> {
    icmp(kind, code, rest, payload, pseudo(src, dst, ICMPV6, 8 + payload.len()))
}

fn icmp(kind: u8, code: u8, rest: u32, payload: &[u8], pseudo: u64) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0];
    message.extend(rest.to_be_bytes());
    message.extend(payload);
    let sum = checksum::finish(pseudo + checksum::sum(&message));
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// ARP for Ethernet and IPv4: 1 asks, 2 answers.
pub fn arp(op: u16, sender: (Mac, &str), target: (Mac, &str)) -> Vec<u8> {
    let mut message = vec![0, 1, 8, 0, 6, 4];
    message.extend(op.to_be_bytes());
    for (mac, addr) in [sender, target] {
        message.extend(mac);
        message.extend(a4(addr).octets());
    }
    message
}

/// A neighbour solicitation (135) or advertisement (136), hop limit 255, with a link-layer address option if there is
/// one. `flags` are the top bits of an advertisement.
pub fn nd(kind: u8, src: &str, dst: &str, target: &str, flags: u8, link: Option<Mac>) -> Vec<u8> {
    let mut body = a6(target).octets().to_vec();
    if let Some(link) = link {
        body.extend([if kind == 135 { 1 } else { 2 }, 1]);
        body.extend(link);
    }
    let message = icmp6(src, dst, kind, 0, u32::from(flags) << 24, &body);
    edit(ip6(src, dst, ICMPV6, &message), |p| p[7] = 255)
}

/// The solicited-node multicast address of a unicast address, and the MAC address it goes to (RFC 4291 2.7.1).
pub fn solicited(addr: &str) -> (String, Mac) {
    let o = a6(addr).octets();
    let group = Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, o[13], o[14], o[15]]);
    (group.to_string(), [0x33, 0x33, 0xff, o[13], o[14], o[15]])
}

/// The Ethernet type of a frame; 0 for one too short.
pub fn ethertype(frame: &[u8]) -> u16 {
    frame.get(12..14).map_or(0, |t| u16::from_be_bytes([t[0], t[1]]))
}
