//! The flow hash of an inner frame: what routers of the underlay balance tunnels by (RFC 7348 5, UDP source port).

use packet::headers::{ethertype, protocol};

/// Least UDP source port of a tunnel: the dynamic range of RFC 6335, as RFC 7348 5 recommends.
const FIRST_PORT: u16 = 49152;

/// VLAN tags looked behind.
const MAX_TAGS: usize = 2;

/// The UDP source port for a flow with this hash.
#[inline(always)]
pub(super) fn source_port(hash: u32) -> u16 {
    FIRST_PORT | (hash & 0x3fff) as u16
}

/// The bits of a flow's hash that choose among equal-cost paths; they are not those of its source port.
#[inline(always)]
pub(super) fn path_bits(hash: u32) -> u32 {
    hash >> 16
}

/// Equal for the frames of one flow: the 5-tuple of IPv4 and IPv6 (the 3-tuple of fragments, so that all of a packet go
/// one way), the MAC addresses and EtherType of anything else.
#[inline(always)]
pub(super) fn hash(frame: &[u8]) -> u32 {
    if let Some(head) = frame.first_chunk::<38>() {
        if head[12..15] == [8, 0, 0x45] {
            // Neither first, middle nor last fragment: more-fragments and the offset are zero.
            let whole = (head[20] & 0x3f) | head[21] == 0;
            let (protocol, [.., a, b, c, d, e, f, g, h, p, q, r, s]) = (head[23], *head);
            let ports = u32::from_le_bytes([p, q, r, s]) & u32::from(has_ports(protocol) & whole).wrapping_neg();
            return mix(u64::from_le_bytes([a, b, c, d, e, f, g, h]), u64::from(protocol) << 32 | u64::from(ports));
        }
    }
    other(frame)
}

#[inline(always)]
fn has_ports(next: u8) -> bool {
    (next == protocol::UDP) | (next == protocol::TCP)
}

/// One wide multiplication, folded: every bit of both words reaches every bit of the result.
#[inline(always)]
fn mix(a: u64, b: u64) -> u32 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xc2b2_ae3d_27d4_eb4f);
    let folded = (product >> 64) as u64 ^ product as u64;
    (folded >> 32) as u32 ^ folded as u32
}

#[inline(never)]
fn other(frame: &[u8]) -> u32 {
    let Some((&[d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1], mut packet)) = frame.split_first_chunk::<14>()
    else {
        return 0;
    };
    let mut kind = u16::from_be_bytes([t0, t1]);
    for _ in 0..MAX_TAGS {
        if !matches!(kind, ethertype::VLAN | ethertype::QINQ) {
            break;
        }
        let Some((&[_, _, t0, t1], rest)) = packet.split_first_chunk::<4>() else { break };
        (kind, packet) = (u16::from_be_bytes([t0, t1]), rest);
    }
    let ip = match kind {
        ethertype::IPV4 => ip4(packet),
        ethertype::IPV6 => ip6(packet),
        _ => None,
    };
    let [k0, k1] = kind.to_be_bytes();
    ip.unwrap_or_else(|| {
        mix(u64::from_le_bytes([d0, d1, d2, d3, d4, d5, k0, k1]), u64::from_le_bytes([s0, s1, s2, s3, s4, s5, 0, 0]))
    })
}

fn ip4(packet: &[u8]) -> Option<u32> {
    let &[version, _, _, _, _, _, f0, f1, _, protocol, _, _, a, b, c, d, e, f, g, h] = packet.first_chunk::<20>()?;
    let header = usize::from(version & 0xf) * 4;
    let whole = (f0 & 0x3f) | f1 == 0;
    let ports = ports(protocol, packet.get(header..).filter(|_| whole));
    Some(mix(u64::from_le_bytes([a, b, c, d, e, f, g, h]), u64::from(protocol) << 32 | u64::from(ports)))
}

fn ip6(packet: &[u8]) -> Option<u32> {
    let (&[_, _, _, _, _, _, next, _], rest) = packet.split_first_chunk::<8>()?;
    let (addresses, rest) = rest.split_first_chunk::<32>()?;
    let mut words = addresses.chunks_exact(8).map(|w| w.first_chunk().map_or(0, |w| u64::from_le_bytes(*w)));
    let mut pair = || mix(words.next().unwrap_or(0), words.next().unwrap_or(0));
    let (src, dst) = (pair(), pair());
    let rest = u64::from(next) << 32 | u64::from(ports(next, Some(rest)));
    Some(mix(u64::from(src) << 32 | u64::from(dst), rest))
}

fn ports(next: u8, packet: Option<&[u8]>) -> u32 {
    match packet.and_then(|packet| packet.first_chunk()) {
        Some(ports) if has_ports(next) => u32::from_le_bytes(*ports),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use etherparse::PacketBuilder;

    use super::*;

    fn udp(ip6: bool, tag: bool, ports: (u16, u16), payload: u8) -> Vec<u8> {
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]);
        let mut frame = Vec::new();
        if ip6 {
            builder.ipv6([1; 16], [2; 16], 9).udp(ports.0, ports.1).write(&mut frame, &[payload; 20]).unwrap();
        } else {
            builder
                .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9)
                .udp(ports.0, ports.1)
                .write(&mut frame, &[payload; 20])
                .unwrap();
        }
        if tag {
            frame.splice(12..12, [0x81, 0, 0, 5]);
        }
        frame
    }

    #[test]
    fn a_flow_is_its_ports_and_addresses_and_nothing_else() {
        for ip6 in [false, true] {
            let hashes: HashSet<_> = (0..1000).map(|p| hash(&udp(ip6, false, (p, 7), 0))).collect();
            assert!(hashes.len() > 990, "{ip6} {}", hashes.len());
            let ports: HashSet<_> = hashes.iter().map(|h| source_port(*h)).collect();
            assert!(ports.len() > 900 && ports.iter().all(|p| *p >= 49152));
            assert_eq!(hash(&udp(ip6, false, (1, 7), 1)), hash(&udp(ip6, false, (1, 7), 2)));
            assert_eq!(hash(&udp(ip6, true, (1, 7), 1)), hash(&udp(ip6, false, (1, 7), 1)), "behind a tag, too");
        }
    }

    #[test]
    fn fragments_go_with_each_other() {
        let mut first = udp(false, false, (1, 7), 0);
        first[20] = 0x20;
        let mut next = udp(false, false, (900, 80), 0);
        next[21] = 9;
        assert_eq!(hash(&first), hash(&next));
    }

    #[test]
    fn other_frames_hash_by_their_addresses() {
        let frame =
            |src| [[2; 6], [src; 6]].concat().into_iter().chain([0x08, 0x06]).chain([src; 40]).collect::<Vec<_>>();
        assert_eq!(hash(&frame(1)), hash(&frame(1)[..14]));
        assert_ne!(hash(&frame(1)), hash(&frame(2)));
        let whole = udp(true, true, (1, 2), 3);
        for len in 0..whole.len() {
            hash(&whole[..len]);
        }
    }
}
