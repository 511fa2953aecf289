//! From the wire to the IP packet: Ethernet, VLAN tags, MPLS, pseudowires, VXLAN.

use packet::headers::ethertype;

use super::{decoded::Decoded, decoder::Decoder, seen::Seen, spec::Layer};
use crate::Distinguish;

/// MPLS with a label given by the upstream router (RFC 5332).
const MPLS_MULTICAST: u16 = 0x8848;
/// Most VLAN tags, and most MPLS labels, in a row.
const TAGS: usize = 3;
const LABELS: usize = 16;
/// Flag of a VXLAN header with a VNI (RFC 7348 5).
const VNI_VALID: u8 = 0x08;

impl Decoder {
    /// From the Ethernet header on.
    pub(super) fn layered(&self, mut frame: &[u8], mut seen: Seen) -> Decoded {
        for _ in 0..=TAGS {
            let Some((&[.., k0, k1], packet)) = frame.split_first_chunk::<14>() else { break };
            match u16::from_be_bytes([k0, k1]) {
                ethertype::IPV4 => {
                    return self.plain4(frame, seen).map_or_else(|| self.ip4(packet, seen), Decoded::Ip4);
                }
                ethertype::IPV6 => {
                    return self.plain6(frame, seen).map_or_else(|| self.ip6(packet, seen), Decoded::Ip6);
                }
                ethertype::MPLS | MPLS_MULTICAST => return self.mpls(packet, seen),
                ethertype::VLAN | ethertype::QINQ => {}
                _ => break,
            }
            let Some(&[c0, c1]) = packet.first_chunk() else { break };
            seen.set_scope(self.spec.distinguish == Distinguish::Vlan, (u32::from(c0) << 8 | u32::from(c1)) & 0xfff);
            // Without the first four bytes, the rest is like an untagged frame except for its addresses.
            frame = frame.get(4..).unwrap_or_default();
        }
        Decoded::NotIp
    }

    fn mpls(&self, mut stack: &[u8], mut seen: Seen) -> Decoded {
        if self.spec.mpls == Layer::Outer {
            return Decoded::NotIp;
        }
        for depth in 0..LABELS {
            let Some((entry, rest)) = stack.split_first_chunk() else { break };
            let entry = u32::from_be_bytes(*entry);
            seen.set_scope(self.spec.distinguish == Distinguish::Label && depth == 0, entry >> 12);
            if entry & 0x100 == 0 {
                stack = rest;
                continue;
            }
            return match rest.first().map(|first| first >> 4) {
                Some(4) => self.ip4(rest, seen),
                Some(6) => self.ip6(rest, seen),
                // A control word begins like many MAC addresses. This order misreads few frames. The reverse order would
                // read a frame with a VLAN tag as a control word and an untagged frame.
                Some(0) => match self.pseudowire(Some(rest), seen) {
                    Decoded::NotIp => self.pseudowire(rest.get(4..), seen),
                    ip => ip,
                },
                _ => self.pseudowire(Some(rest), seen),
            };
        }
        Decoded::NotIp
    }

    /// Reads bytes that may be a frame: they are a frame if they contain an IP packet.
    fn pseudowire(&self, frame: Option<&[u8]>, seen: Seen) -> Decoded {
        match frame.zip(seen.inside()).map(|(frame, seen)| self.layered(frame, seen)) {
            Some(ip @ (Decoded::Ip4(_) | Decoded::Ip6(_))) => ip,
            _ => Decoded::NotIp,
        }
    }

    /// The content of a UDP datagram, if it is VXLAN to decode; stores the VNI.
    #[inline(never)]
    pub(super) fn vxlan(&self, datagram: &[u8], seen: &mut Seen) -> Option<Decoded> {
        let (&[_, _, _, _, _, _, _, _, flags, _, _, _, v0, v1, v2, _], frame) = datagram.split_first_chunk()?;
        if flags & VNI_VALID == 0 {
            return None;
        }
        seen.set_scope(self.spec.distinguish == Distinguish::Vni, u32::from_be_bytes([0, v0, v1, v2]));
        let inside = seen.inside().filter(|_| self.spec.vxlan == Layer::Inner)?;
        Some(self.layered(frame, inside))
    }
}
