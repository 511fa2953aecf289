//! From the IP packet to the key.

use packet::headers::protocol::{IPV6_FRAGMENT, TCP, UDP};

use super::{
    decoded::{Decoded, Packet4, Packet6},
    decoder::Decoder,
    seen::Seen,
};
use crate::{
    packed::{ICMP, ICMPV6},
    Facts,
};

/// Other protocols with ports at the same place as TCP and UDP (RFC 4340, 9260, 3828).
const DCCP: u8 = 33;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;
/// Extension headers (RFC 8200 4, RFC 4302), and how many of them are skipped.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const EXTENSIONS: usize = 8;

/// Fields of the header above IP that go into the key.
pub(super) struct Upper {
    /// In the top byte.
    pub(super) protocol: u32,
    /// Source port (high half) and destination port, or their replacement.
    pub(super) ports: u32,
    /// Whether they are ports that change places with the direction.
    ported: bool,
    flags: u16,
}

impl Decoder {
    pub(super) fn ip4(&self, packet: &[u8], mut seen: Seen<'_>) -> Decoded {
        let Some(fixed) = packet.first_chunk::<20>() else { return Decoded::Malformed };
        let [first, tos, t0, t1, _, _, f0, f1, _, protocol, _, _, addresses @ ..] = *fixed;
        let header = usize::from(first & 0xf) * 4;
        let total = usize::from(u16::from_be_bytes([t0, t1]));
        // A length of zero: the kernel of the sender captured the packet before its NIC cut it into segments.
        let left = seen.left(packet, 0);
        let ip_bytes = if total == 0 { left } else { left.min(u32::from(u16::from_be_bytes([t0, t1]))) };
        let total = if total == 0 { packet.len() } else { total };
        if first >> 4 != 4 || header < 20 || total < header {
            return Decoded::Malformed;
        }
        let behind = u16::from_be_bytes([f0, f1]) & 0x1fff != 0;
        let payload = if behind { None } else { packet.get(header..total.min(packet.len())) }.unwrap_or_default();
        let upper = self.upper(protocol, payload, ICMP);
        if let Some(inner) = self.tunnel(&upper, payload, &mut seen, behind) {
            return inner;
        }
        seen.found(packet);
        let addresses = u64::from_be_bytes(addresses);
        let (key, reversed) = self.key4(addresses, upper.ports, upper.ported, upper.protocol, seen);
        let facts = Facts { frame_bytes: seen.bytes, ip_bytes, tos, tcp_flags: upper.flags, reversed };
        Decoded::Ip4(Packet4 { key, facts: facts.into() })
    }

    pub(super) fn ip6(&self, packet: &[u8], mut seen: Seen<'_>) -> Decoded {
        let Some((fixed, rest)) = packet.split_first_chunk::<40>() else { return Decoded::Malformed };
        let [c0, c1, _, _, l0, l1, next, _, addresses @ ..] = fixed;
        let (Some(src), Some(dst)) = (addresses.first_chunk(), addresses.last_chunk()) else {
            return Decoded::Malformed;
        };
        if c0 >> 4 != 6 {
            return Decoded::Malformed;
        }
        let len = usize::from(u16::from_be_bytes([*l0, *l1]));
        // A jumbogram has its length in an option (RFC 2675 3): use the length of the frame.
        let jumbo = len == 0 && *next == HOP_BY_HOP;
        let left = seen.left(packet, 0);
        let ip_bytes = if jumbo { left } else { left.min(len as u32 + 40) };
        let (protocol, payload) = extensions(*next, if jumbo { rest } else { rest.get(..len).unwrap_or(rest) });
        let upper = self.upper(protocol, payload, ICMPV6);
        if let Some(inner) = self.tunnel(&upper, payload, &mut seen, false) {
            return inner;
        }
        seen.found(packet);
        let (src, dst) = (u128::from_be_bytes(*src), u128::from_be_bytes(*dst));
        let (key, reversed) = self.key6(src, dst, upper.ports, upper.ported, upper.protocol, seen);
        let tos = c0 << 4 | c1 >> 4;
        let facts = Facts { frame_bytes: seen.bytes, ip_bytes, tos, tcp_flags: upper.flags, reversed };
        Decoded::Ip6(Packet6 { key, facts: facts.into() })
    }

    /// Reads the present part of the header above IP. `icmp` is the protocol number of ICMP for the IP version.
    #[inline(always)]
    fn upper(&self, protocol: u8, payload: &[u8], icmp: u8) -> Upper {
        let (mut ports, mut flags) = (0, 0);
        if matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE) {
            ports = payload.first_chunk().map_or(0, |ports| u32::from_be_bytes(*ports));
            if protocol == TCP {
                let bytes = payload.get(12..14).and_then(|bytes| bytes.first_chunk());
                flags = bytes.map_or(0, |bytes| u16::from_be_bytes(*bytes));
            }
        } else if protocol == icmp {
            ports = payload.first_chunk().map_or(0, |&[kind, code]| {
                let kind = if self.spec.biflow { request(kind, icmp) } else { kind };
                u16::from_be_bytes([kind, code]).into()
            });
        }
        Upper { protocol: u32::from(protocol) << 24, ports, ported: protocol != icmp, flags }
    }
}

/// The type of the request that an ICMP type answers; any other type unchanged.
fn request(kind: u8, icmp: u8) -> u8 {
    match (icmp, kind) {
        (ICMP, 0) => 8,
        (ICMP, 14 | 16 | 18) | (ICMPV6, 129) => kind - 1,
        _ => kind,
    }
}

/// The protocol after the extension headers, and its bytes: empty in a fragment after the first, and in a packet that
/// ends before.
fn extensions(mut next: u8, mut rest: &[u8]) -> (u8, &[u8]) {
    for passed in 0.. {
        let header = |len: u8, unit, more| (usize::from(len) + more) * unit;
        let (after, len, behind) = match (next, rest) {
            (HOP_BY_HOP | ROUTING | DESTINATION, &[after, len, ..]) => (after, header(len, 8, 1), false),
            (AUTHENTICATION, &[after, len, ..]) => (after, header(len, 4, 2), false),
            // An offset in units of 8 bytes, above the flags.
            (IPV6_FRAGMENT, &[after, _, o0, o1, ..]) => (after, 8, u16::from_be_bytes([o0, o1]) >= 8),
            (IPV6_FRAGMENT, &[after, ..]) => (after, 8, true),
            (HOP_BY_HOP | ROUTING | DESTINATION | AUTHENTICATION | IPV6_FRAGMENT, _) => break,
            _ => return (next, rest),
        };
        if passed == EXTENSIONS {
            break;
        }
        next = after;
        if behind {
            break;
        }
        rest = rest.get(len..).unwrap_or_default();
    }
    (next, &[])
}
