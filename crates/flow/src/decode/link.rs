//! From the wire to the IP packet: Ethernet, VLAN tags, PPPoE, MPLS, pseudowires.

use packet::headers::ethertype;

use super::{
    decoded::{Decoded, NotIp},
    decoder::Decoder,
    seen::Seen,
    spec::Layer,
};
use crate::{packed::BOTTOM, Distinguish};

/// MPLS with a label given by the upstream router (RFC 5332).
pub(crate) const MPLS_MULTICAST: u16 = 0x8848;
/// The outer tag of switches from before IEEE 802.1ad.
pub(crate) const OLD_QINQ: u16 = 0x9100;
/// PPPoE (RFC 2516 4): discovery, session.
const PPPOE_DISCOVERY: u16 = 0x8863;
pub(crate) const PPPOE_SESSION: u16 = 0x8864;
const ARP: u16 = 0x0806;
const SLOW: u16 = 0x8809;
const LLDP: u16 = 0x88cc;
/// Below this, the field is a length (IEEE 802.3 3.2.6).
const TYPES: u16 = 0x600;
/// Protocols of PPP ("Point-to-Point Protocol Field Assignments").
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
pub(crate) const PPP_MPLS: u16 = 0x0281;
/// Most VLAN tags, and most MPLS labels, in a row.
const TAGS: usize = 4;
const LABELS: usize = 16;

impl Decoder {
    /// From the Ethernet header on.
    pub(super) fn layered(&self, mut frame: &[u8], mut seen: Seen<'_>) -> Decoded {
        for _ in 0..=TAGS {
            let Some((&[.., k0, k1], packet)) = frame.split_first_chunk::<14>() else {
                return Decoded::NotIp(NotIp::Short);
            };
            let kind = match u16::from_be_bytes([k0, k1]) {
                ethertype::IPV4 => {
                    seen.found(packet);
                    return self.plain4(frame, seen).map_or_else(|| self.ip4(packet, seen), Decoded::Ip4);
                }
                ethertype::IPV6 => {
                    seen.found(packet);
                    return self.plain6(frame, seen).map_or_else(|| self.ip6(packet, seen), Decoded::Ip6);
                }
                ethertype::MPLS | MPLS_MULTICAST => return self.mpls(packet, seen),
                PPPOE_SESSION => return self.pppoe(packet, seen),
                ethertype::VLAN | ethertype::QINQ | OLD_QINQ => None,
                ARP => Some(NotIp::Arp),
                LLDP => Some(NotIp::Lldp),
                SLOW => Some(NotIp::Slow),
                PPPOE_DISCOVERY => Some(NotIp::Ppp),
                ..TYPES => Some(NotIp::Llc),
                _ => Some(NotIp::Other),
            };
            if let Some(kind) = kind {
                return Decoded::NotIp(kind);
            }
            let Some(&[c0, c1]) = packet.first_chunk() else { return Decoded::NotIp(NotIp::Short) };
            seen.set_scope(self.spec.distinguish == Distinguish::Vlan, (u32::from(c0) << 8 | u32::from(c1)) & 0xfff);
            // Without the first four bytes, the rest is like an untagged frame except for its addresses.
            frame = frame.get(4..).unwrap_or_default();
        }
        Decoded::NotIp(NotIp::Tags)
    }

    /// The EtherType of a frame behind its VLAN tags: what a frame of kind [`NotIp::Other`] is.
    pub fn ether_type(frame: &[u8]) -> Option<u16> {
        let mut rest = frame.get(12..)?;
        for _ in 0..=TAGS {
            match u16::from_be_bytes(*rest.first_chunk()?) {
                ethertype::VLAN | ethertype::QINQ | OLD_QINQ => rest = rest.get(4..)?,
                kind => return Some(kind),
            }
        }
        None
    }

    /// A session of PPPoE (RFC 2516 6): version and type, code, session, length, and the protocol of PPP, in one byte if that
    /// is odd (RFC 1661 2 and 6.5).
    fn pppoe(&self, session: &[u8], seen: Seen<'_>) -> Decoded {
        let (protocol, packet) = match session {
            [0x11, 0, _, _, _, _, short, packet @ ..] if short & 1 == 1 => (u16::from(*short), packet),
            [0x11, 0, _, _, _, _, p0, p1, packet @ ..] => (u16::from_be_bytes([*p0, *p1]), packet),
            _ => return Decoded::NotIp(NotIp::Ppp),
        };
        match protocol {
            PPP_IPV4 => self.ip4(packet, seen),
            PPP_IPV6 => self.ip6(packet, seen),
            PPP_MPLS => self.mpls(packet, seen),
            _ => Decoded::NotIp(NotIp::Ppp),
        }
    }

    pub(super) fn mpls(&self, mut stack: &[u8], mut seen: Seen<'_>) -> Decoded {
        if self.spec.mpls == Layer::Outer {
            return Decoded::NotIp(NotIp::Mpls);
        }
        for depth in 0..LABELS {
            let Some((entry, rest)) = stack.split_first_chunk() else { break };
            let entry = u32::from_be_bytes(*entry);
            let is_last = entry & 0x100 != 0;
            let bottom = if is_last { BOTTOM } else { 0 };
            seen.set_scope(self.spec.distinguish == Distinguish::Label && depth == 0, entry >> 12 | bottom);
            if !is_last {
                stack = rest;
                continue;
            }
            return match rest.first().map(|first| first >> 4) {
                Some(4) => self.ip4(rest, seen),
                Some(6) => self.ip6(rest, seen),
                // A control word begins like many MAC addresses. This order misreads few frames. The reverse order would
                // read a frame with a VLAN tag as a control word and an untagged frame.
                Some(0) => match self.pseudowire(Some(rest), seen) {
                    Decoded::NotIp(_) => self.pseudowire(rest.get(4..), seen),
                    ip => ip,
                },
                _ => self.pseudowire(Some(rest), seen),
            };
        }
        Decoded::NotIp(NotIp::Mpls)
    }

    /// Reads bytes that may be a frame: they are a frame if they contain an IP packet.
    fn pseudowire(&self, frame: Option<&[u8]>, seen: Seen<'_>) -> Decoded {
        match frame.zip(seen.inside()).map(|(frame, seen)| self.layered(frame, seen)) {
            Some(ip @ (Decoded::Ip4(_) | Decoded::Ip6(_))) => ip,
            _ => Decoded::NotIp(NotIp::Mpls),
        }
    }
}
