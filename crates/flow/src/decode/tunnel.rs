//! From an IP packet to the packet in its tunnel: VXLAN, GTP-U, GRE, IP in IP.

use packet::headers::ethertype;

use super::{
    decoded::{Decoded, NotIp},
    decoder::Decoder,
    ip::Upper,
    link::MPLS_MULTICAST,
    seen::Seen,
    spec::Layer,
};
use crate::Distinguish;

/// IP protocol numbers of IPv4 (RFC 2003), IPv6 (RFC 2473) and GRE (RFC 2784) inside IP.
const IPV4_INSIDE: u32 = 4 << 24;
const IPV6_INSIDE: u32 = 41 << 24;
const GRE: u32 = 47 << 24;
/// Flag of a VXLAN header with a VNI (RFC 7348 5).
const VNI_VALID: u8 = 0x08;
/// GRE flags (RFC 2784, RFC 2890): checksum, routing (RFC 1701, not decoded), key, sequence number; the version.
const CHECKSUM: u16 = 0x8000;
const ROUTING: u16 = 0x4000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
const VERSION: u16 = 7;
/// Protocols inside GRE: Ethernet (RFC 7637), and mirrored Ethernet: ERSPAN type I without and type II with a header.
const ETHERNET: u16 = 0x6558;
const ERSPAN: u16 = 0x88be;
const ERSPAN_HEADER: usize = 8;
/// The first byte of GTP-U (3GPP TS 29.281 5.1): version 1 and protocol type GTP; flags of the optional fields.
const GTP: u8 = 0x30;
const GTP_MASK: u8 = 0xf0;
const GTP_OPTIONAL: u8 = 0x07;
const GTP_EXTENDED: u8 = 0x04;
/// A message that carries a user's packet.
const G_PDU: u8 = 255;
/// Most extension headers that are skipped.
const EXTENSIONS: usize = 8;

impl Decoder {
    /// The content of the tunnel, if the packet is a tunnel to decode. A fragment after the first has no tunnel header.
    #[inline(always)]
    pub(super) fn tunnel(&self, upper: &Upper, payload: &[u8], seen: &mut Seen<'_>, fragment: bool) -> Option<Decoded> {
        let to = upper.protocol | upper.ports & 0xffff;
        if to == self.vxlan {
            return self.vxlan(payload, seen);
        }
        if to == self.gtpu {
            return self.gtpu(payload, *seen);
        }
        if fragment {
            return None;
        }
        match upper.protocol {
            IPV4_INSIDE | IPV6_INSIDE if self.spec.ipip == Layer::Inner => self.inside(payload, *seen),
            GRE if self.spec.gre == Layer::Inner => self.gre(payload, *seen),
            _ => None,
        }
    }

    /// The content of a UDP datagram, if it is VXLAN to decode; stores the VNI.
    #[inline(never)]
    fn vxlan(&self, datagram: &[u8], seen: &mut Seen<'_>) -> Option<Decoded> {
        let (&[_, _, _, _, _, _, _, _, flags, _, _, _, v0, v1, v2, _], frame) = datagram.split_first_chunk()?;
        if flags & VNI_VALID == 0 {
            return None;
        }
        seen.set_scope(self.spec.distinguish == Distinguish::Vni, u32::from_be_bytes([0, v0, v1, v2]));
        let inside = seen.inside().filter(|_| self.spec.vxlan == Layer::Inner)?;
        Some(self.frame_inside(frame, inside))
    }

    /// The content of a UDP datagram, if it is a user's packet of GTP-U.
    #[inline(never)]
    fn gtpu(&self, datagram: &[u8], seen: Seen<'_>) -> Option<Decoded> {
        let (&[_, _, _, _, _, _, _, _, first, message, ..], mut rest) = datagram.split_first_chunk::<16>()?;
        if first & GTP_MASK != GTP {
            return None;
        }
        if message != G_PDU {
            return Some(Decoded::NotIp(NotIp::Tunnel));
        }
        if first & GTP_OPTIONAL != 0 {
            let (&[_, _, _, next], after) = rest.split_first_chunk()?;
            let mut next = if first & GTP_EXTENDED != 0 { next } else { 0 };
            rest = after;
            for _ in 0..EXTENSIONS {
                if next == 0 {
                    break;
                }
                // Its length in units of four bytes; the last byte is the type of the next one.
                let length = usize::from(*rest.first()?) * 4;
                next = *rest.get(length.checked_sub(1)?)?;
                rest = rest.get(length..)?;
            }
            if next != 0 {
                return Some(Decoded::NotIp(NotIp::Tunnel));
            }
        }
        self.inside(rest, seen)
    }

    /// The content of GRE.
    #[inline(never)]
    fn gre(&self, packet: &[u8], seen: Seen<'_>) -> Option<Decoded> {
        let (&[f0, f1, p0, p1], rest) = packet.split_first_chunk()?;
        let flags = u16::from_be_bytes([f0, f1]);
        let optional = [CHECKSUM, KEY, SEQUENCE].into_iter().filter(|flag| flags & flag != 0).count() * 4;
        let none = Some(Decoded::NotIp(NotIp::Tunnel));
        if flags & (ROUTING | VERSION) != 0 {
            return none;
        }
        let content = rest.get(optional..)?;
        let inside = seen.inside()?;
        match u16::from_be_bytes([p0, p1]) {
            ethertype::IPV4 => Some(self.ip4(content, inside)),
            ethertype::IPV6 => Some(self.ip6(content, inside)),
            ethertype::MPLS | MPLS_MULTICAST => Some(self.mpls(content, inside)),
            ETHERNET => Some(self.frame_inside(content, inside)),
            ERSPAN if flags & SEQUENCE != 0 => Some(self.frame_inside(content.get(ERSPAN_HEADER..)?, inside)),
            ERSPAN => Some(self.frame_inside(content, inside)),
            _ => none,
        }
    }

    /// An IP packet without a type in front of it.
    fn inside(&self, packet: &[u8], seen: Seen<'_>) -> Option<Decoded> {
        let inside = seen.inside()?;
        Some(match packet.first()? >> 4 {
            4 => self.ip4(packet, inside),
            6 => self.ip6(packet, inside),
            _ => Decoded::NotIp(NotIp::Tunnel),
        })
    }

    /// A frame in a tunnel. Whatever else than IP it holds is counted as the tunnel's.
    fn frame_inside(&self, frame: &[u8], seen: Seen<'_>) -> Decoded {
        match self.layered(frame, seen) {
            Decoded::NotIp(_) => Decoded::NotIp(NotIp::Tunnel),
            ip => ip,
        }
    }
}
