//! The decoder: plain frames at once, all others layer by layer.

use std::cell::Cell;

use packet::headers::protocol;

use super::{
    decoded::{Decoded, Packet4, Packet6},
    seen::Seen,
    spec::{DecodeSpec, Layer, GTPU_PORT},
};
use crate::{
    packed::{halves, Key4, Key6},
    Distinguish, Facts, PackedFacts,
};

/// Bytes of a plain frame that [`Decoder::decode`] looks at: Ethernet, IPv4, and TCP up to its flags.
const PLAIN: usize = 14 + 20 + 14;

/// Reads frames as a [`DecodeSpec`] says. A decoder has no state, so any number of lcores can share it.
#[derive(Debug, Clone, Copy)]
pub struct Decoder {
    /// Protocol (high byte) and destination port (low half) of the packets of each UDP tunnel to decode; a value that no
    /// packet has, when the tunnel is not decoded.
    pub(super) vxlan: u32,
    pub(super) gtpu: u32,
    /// Mask of the port number that goes into the key.
    port_mask: u8,
    pub(super) spec: DecodeSpec,
}

impl Decoder {
    /// A decoder for this spec.
    pub fn new(spec: DecodeSpec) -> Self {
        let udp = |looks, port: u16| if looks { u32::from(protocol::UDP) << 24 | u32::from(port) } else { u32::MAX };
        Self {
            vxlan: udp(spec.vxlan == Layer::Inner || spec.distinguish == Distinguish::Vni, spec.vxlan_port),
            gtpu: udp(spec.gtpu == Layer::Inner, GTPU_PORT),
            port_mask: if spec.biflow && !spec.ports_apart { !1 } else { !0 },
            spec,
        }
    }

    /// The spec of the decoder.
    pub fn spec(&self) -> &DecodeSpec {
        &self.spec
    }

    /// The flow of a frame that arrived on `port`, and the other fields that are counted.
    ///
    /// The key has the port's own number, or for a biflow the lower of its pair (0 and 1, 2 and 3, ...) if it has one.
    #[inline(always)]
    pub fn decode(&self, frame: &[u8], port: u8) -> Decoded {
        self.decode_cut(frame, frame.len() as u32, port)
    }

    /// [`Self::decode`] of the begin of a frame that had `on_wire` bytes without FCS, as captures hold it.
    #[inline(always)]
    pub fn decode_cut(&self, frame: &[u8], on_wire: u32, port: u8) -> Decoded {
        match self.decode_plain(frame, on_wire, port) {
            Some(packet) => Decoded::Ip4(packet),
            None => self.decode_other(frame, on_wire, port),
        }
    }

    /// The most frequent frames only: untagged IPv4 packets of TCP or UDP without options, fragments and tunnels. All others
    /// are for [`Self::decode_other`]. A loop that calls this and the other out of line keeps what it needs in registers.
    #[inline(always)]
    pub fn decode_plain(&self, frame: &[u8], on_wire: u32, port: u8) -> Option<Packet4> {
        self.plain4(frame, Seen::new(frame, on_wire, port))
    }

    /// Every kind of frame.
    #[inline]
    pub fn decode_other(&self, frame: &[u8], on_wire: u32, port: u8) -> Decoded {
        let seen = Seen::new(frame, on_wire, port);
        match self.plain6(frame, seen) {
            Some(packet) => Decoded::Ip6(packet),
            None => self.layered(frame, seen),
        }
    }

    /// Every kind of frame, and the packet whose flow it is, from its IP header on; empty where there is none.
    pub fn decode_with_packet<'a>(&self, frame: &'a [u8], on_wire: u32, port: u8) -> (Decoded, &'a [u8]) {
        let packet = Cell::new(usize::MAX);
        let decoded = self.layered(frame, Seen::new(frame, on_wire, port).with_packet(&packet));
        let from = packet.get().wrapping_sub(frame.as_ptr() as usize);
        (decoded, frame.get(from..).unwrap_or_default())
    }

    /// Bytes without FCS of a frame that may be only the beginning of a longer one, by the length in its first IP header.
    /// `None` when that says no more than what is here, and when it says nothing.
    pub fn claimed_length(frame: &[u8]) -> Option<u32> {
        const LONGEST: u32 = 1 << 17;
        let outermost = Self::new(DecodeSpec::default());
        let (decoded, packet) = outermost.decode_with_packet(frame, frame.len() as u32 + LONGEST, 0);
        let facts = match decoded {
            Decoded::Ip4(packet) => Facts::from(packet.facts),
            Decoded::Ip6(packet) => Facts::from(packet.facts),
            Decoded::NotIp(_) | Decoded::Malformed => return None,
        };
        let claimed = (frame.len() - packet.len()) as u32 + facts.ip_bytes;
        // Without a length (larger segments than a header can tell), the packet would go to the end of the longest frame.
        (claimed > frame.len() as u32 && facts.ip_bytes < LONGEST).then_some(claimed)
    }

    /// Reads an untagged IPv4 packet of TCP or UDP without options, fragments and tunnels. After `None`, use
    /// [`Decoder::layered`], which reads every kind.
    #[inline(always)]
    pub(super) fn plain4(&self, frame: &[u8], seen: Seen<'_>) -> Option<Packet4> {
        const TCP: u32 = (protocol::TCP as u32) << 24;
        const UDP: u32 = (protocol::UDP as u32) << 24;
        let head: &[u8; PLAIN] = frame.first_chunk()?;
        // EtherType, version and header length, ToS, total length, identification.
        let x = u64::from_le_bytes(*head[12..].first_chunk()?);
        // Fragment flags and offset, TTL, protocol. Masks out TTL, DF and the reserved bit.
        let y = u32::from_le_bytes(*head[20..].first_chunk()?) & 0xff00_ff3f;
        // The TCP flags must be inside the packet. The few shorter UDP packets take the general path.
        let ip_bytes = u32::from(((x >> 32) as u16).swap_bytes());
        // And the packet in the frame: two comparisons in one, as a frame of 48 bytes has 34 of its packet.
        let whole = ip_bytes.wrapping_sub(PLAIN as u32 - 14) <= seen.left(frame, 0).wrapping_sub(PLAIN as u32);
        // TCP or UDP without a branch, which mixed traffic would mispredict: a product below 2^64 that is zero.
        let [not_tcp, not_udp] = [TCP, UDP].map(|protocol| u64::from(y).wrapping_sub(protocol.into()));
        if x & 0xff_ffff != 0x45_0008 || !whole || not_tcp.wrapping_mul(not_udp) != 0 {
            return None;
        }
        let addresses = u64::from_be_bytes(*head[26..].first_chunk()?);
        let ports = u32::from_be_bytes(*head[34..].first_chunk()?);
        let to = y | ports & 0xffff;
        if to == self.vxlan || to == self.gtpu {
            return None;
        }
        let (key, reversed) = self.key4(addresses, ports, true, y, seen);
        // The flags are the lowest nine of these bits.
        let last = u64::from_be_bytes(*head[PLAIN - 8..].first_chunk()?);
        let flags = if y < UDP { last } else { 0 };
        Some(Packet4 { key, facts: PackedFacts::plain(seen.bytes, ip_bytes, x as u32, flags, reversed) })
    }

    /// The same for IPv6, without extension headers.
    #[inline(always)]
    pub(super) fn plain6(&self, frame: &[u8], seen: Seen<'_>) -> Option<Packet6> {
        let head: &[u8; PLAIN + 20] = frame.first_chunk()?;
        // EtherType, version, traffic class, flow label, payload length.
        let x = u64::from_be_bytes(*head[12..].first_chunk()?);
        if x >> 44 != 0x8_6dd6 {
            return None;
        }
        let (protocol, len) = (head[20], u16::from_be_bytes([head[18], head[19]]));
        let ports = u32::from_be_bytes(*head[54..].first_chunk()?);
        let kind = u32::from(protocol) << 24;
        let ours = (protocol == protocol::TCP) | (protocol == protocol::UDP);
        let to = kind | ports & 0xffff;
        if !ours || usize::from(len) < PLAIN - 34 || to == self.vxlan || to == self.gtpu {
            return None;
        }
        let (src, dst) = (head[22..].first_chunk()?, head[38..].first_chunk()?);
        let (src, dst) = (u128::from_be_bytes(*src), u128::from_be_bytes(*dst));
        let (key, reversed) = self.key6(src, dst, ports, true, kind, seen);
        let flags = u16::from_be_bytes([head[PLAIN + 18], head[PLAIN + 19]]);
        let tcp_flags = if protocol == protocol::TCP { flags } else { 0 };
        let (frame_bytes, ip_bytes) = (seen.bytes, (u32::from(len) + 40).min(seen.left(frame, 14)));
        let facts = Facts { frame_bytes, ip_bytes, tos: (x >> 36) as u8, tcp_flags, reversed };
        Some(Packet6 { key, facts: facts.into() })
    }

    /// The key of a packet, and whether the packet goes against it; `protocol` is in the top byte. Without `ported`, the
    /// place of the ports does not change with the direction.
    #[inline(always)]
    pub(super) fn key4(&self, addresses: u64, ports: u32, ported: bool, protocol: u32, seen: Seen<'_>) -> (Key4, bool) {
        let low = self.low(protocol, seen);
        let key = |addresses, ports| Key4([addresses, u64::from(ports) << 32 | low, seen.scope.into()]);
        if !self.spec.biflow {
            return (key(addresses, ports), false);
        }
        // Reversed, the greater source is in the lower half: the smaller number has the right order.
        let (turned, ports_turned) = (addresses.rotate_left(32), turned(ports, ported));
        let wide = |addresses, ports| u128::from(addresses) << 64 | u128::from(ports);
        let reversed = wide(addresses, ports) > wide(turned, ports_turned);
        (key(addresses.min(turned), if reversed { ports_turned } else { ports }), reversed)
    }

    /// The same for IPv6.
    #[inline(always)]
    pub(super) fn key6(
        &self,
        src: u128,
        dst: u128,
        ports: u32,
        ported: bool,
        protocol: u32,
        seen: Seen<'_>,
    ) -> (Key6, bool) {
        let low = self.low(protocol, seen);
        let ports_turned = turned(ports, ported);
        let reversed = self.spec.biflow && (src, ports) > (dst, ports_turned);
        let (src, dst, ports) = if reversed { (dst, src, ports_turned) } else { (src, dst, ports) };
        let ([s0, s1], [d0, d1]) = (halves(src), halves(dst));
        (Key6([s0, s1, d0, d1, u64::from(ports) << 32 | low, seen.scope.into()]), reversed)
    }

    /// The bits below the ports in their word.
    #[inline(always)]
    fn low(&self, protocol: u32, seen: Seen<'_>) -> u64 {
        u64::from(protocol) | u64::from(seen.port & self.port_mask) << 16
    }
}

/// The ports of the other direction.
#[inline(always)]
fn turned(ports: u32, ported: bool) -> u32 {
    if ported {
        ports.rotate_left(16)
    } else {
        ports
    }
}
