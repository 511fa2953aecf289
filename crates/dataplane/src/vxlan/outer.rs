//! The outer headers of a tunnel, prepared once and copied in front of each frame (RFC 7348 5).

use packet::{
    checksum,
    headers::{ethertype, mpls::Mpls, protocol, udp},
    Buffer,
};

use super::flow;
use crate::tables::{Adjacency, Labels, Tag, Template, ETHERNET, TUNNEL_TTL, UDP_VXLAN};

/// Bytes in front of a frame over IPv4, untagged.
const PLAIN: usize = 50;
/// Most bytes in front of a frame: Ethernet, a tag, four labels, IPv6, UDP and VXLAN.
const MAX: usize = 96;
/// [`checksum::sum`] of a long slice, eight bytes at a time.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8);
    let rest = checksum::sum(words.remainder());
    let halves = words.map(|w| w.first_chunk().map_or(0, |w| u64::from_be_bytes(*w)));
    halves.fold(rest, |sum, w| sum + (w >> 32) + (w & 0xffff_ffff))
}

/// All that goes in front of a frame for one tunnel and one adjacency.
#[derive(Debug, Clone)]
pub(super) struct Outer {
    bytes: [u8; MAX],
    len: usize,
    /// Where the IP header begins.
    ip: usize,
    ip6: bool,
    /// The longest frame that fits the link with its outer headers.
    pub max_frame: usize,
    /// Bytes of the outer packet beyond the frame, labels included.
    pub overhead: usize,
    /// Egress port.
    pub port: usize,
    /// Sum of what the checksum covers and never changes: the IPv4 header, or the IPv6 pseudo-header and UDP and VXLAN.
    sum: u64,
}

impl Outer {
    pub(super) const EMPTY: Self =
        Self { bytes: [0; MAX], len: 0, ip: 0, ip6: false, max_frame: 0, overhead: 0, port: 0, sum: 0 };

    /// Puts the headers together. `None` when the adjacency's labels are not there.
    pub(super) fn new(tunnel: &Template, to: &Adjacency, labels: &Labels) -> Option<Self> {
        let mut outer = Self { port: to.port.into(), ..Self::EMPTY };
        let template = tunnel.bytes.get(..tunnel.len)?;
        outer.ip6 = tunnel.len > 36;
        outer.add(&to.macs)?;
        if let Tag::Vid(vid) = to.tag {
            outer.add(&ethertype::VLAN.to_be_bytes())?;
            outer.add(&(vid & 0xfff).to_be_bytes())?;
        }
        let kind = if outer.ip6 { ethertype::IPV6 } else { ethertype::IPV4 };
        let at = outer.len;
        match to.push {
            0 => outer.add(&kind.to_be_bytes())?,
            push => {
                let stack = labels.stacks.get(usize::from(push) - 1)?;
                let entries = stack.entries.get(..usize::from(stack.len))?;
                outer.add(&ethertype::MPLS.to_be_bytes())?;
                for (i, entry) in entries.iter().enumerate() {
                    let (entry, _) = Mpls::parse(entry)?;
                    let mut bytes = [0; 4];
                    let entry = Mpls { bottom: i + 1 == entries.len(), ttl: TUNNEL_TTL, ..entry };
                    entry.write(&mut bytes).then_some(())?;
                    outer.add(&bytes)?;
                }
            }
        }
        outer.ip = outer.len;
        outer.add(template)?;
        outer.overhead = outer.len - at - 2;
        // What a UDP length or an IP length can say is a bound, too.
        let most = usize::from(to.mtu).min(usize::from(u16::MAX));
        outer.max_frame = most.saturating_sub(outer.overhead);
        outer.sum = if outer.ip6 {
            // Version, class and flow label, hop limit and payload length are not covered; next header is.
            let addresses = template.get(8..40)?;
            checksum::sum(addresses) + u64::from(protocol::UDP) + checksum::sum(template.get(40..)?)
        } else {
            checksum::sum(template.get(..20)?)
        };
        Some(outer)
    }

    fn add(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.len + bytes.len();
        self.bytes.get_mut(self.len..end)?.copy_from_slice(bytes);
        self.len = end;
        Some(())
    }

    /// Whether [`Self::write_plain`] will do.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.len == PLAIN && !self.ip6 && self.ip == ETHERNET
    }

    /// Puts the headers in front of a frame over untagged IPv4. `false`, and nothing changed, without headroom.
    #[inline(always)]
    pub(super) fn write_plain<B: Buffer>(&self, frame: &mut B, id: u16) -> bool {
        let len = frame.len();
        let source = flow::source_port(flow::hash(frame.data()));
        if !frame.prepend(PLAIN) {
            return false;
        }
        if let (Some(to), Some(from)) = (frame.data_mut().first_chunk_mut::<PLAIN>(), self.bytes.first_chunk()) {
            *to = *from;
            let total = (len + PLAIN - ETHERNET) as u16;
            let sum = checksum::finish(self.sum + u64::from(total) + u64::from(id));
            to[16..18].copy_from_slice(&total.to_be_bytes());
            to[18..20].copy_from_slice(&id.to_be_bytes());
            to[24..26].copy_from_slice(&sum.to_be_bytes());
            to[34..36].copy_from_slice(&source.to_be_bytes());
            to[38..40].copy_from_slice(&(total - 20).to_be_bytes());
        }
        true
    }

    /// Puts the headers in front of a frame. `false`, and nothing changed, without headroom.
    pub(super) fn write<B: Buffer>(&self, frame: &mut B, id: u16) -> bool {
        let len = frame.len();
        let source = flow::source_port(flow::hash(frame.data()));
        let udp_len = (len + UDP_VXLAN) as u16;
        // Over IPv6 a UDP checksum is due (RFC 8200 8.1); over IPv4 there is none (RFC 7348 5).
        let frame_sum = if self.ip6 { sum(frame.data()) } else { 0 };
        if !frame.prepend(self.len) {
            return false;
        }
        let data = frame.data_mut();
        let (Some(to), Some(from)) = (data.get_mut(..self.len), self.bytes.get(..self.len)) else { return true };
        to.copy_from_slice(from);
        let put = |to: &mut [u8], at: usize, value: u16| {
            if let Some(to) = to.get_mut(at..at + 2) {
                to.copy_from_slice(&value.to_be_bytes());
            }
        };
        let udp = self.len - UDP_VXLAN;
        put(to, udp, source);
        put(to, udp + 4, udp_len);
        if self.ip6 {
            put(to, self.ip + 4, udp_len);
            // The length stands in the pseudo-header and in the header.
            let sum = self.sum + frame_sum + u64::from(source) + 2 * u64::from(udp_len);
            put(to, udp + udp::CHECKSUM, checksum::finish_udp(sum));
        } else {
            let total = udp_len + 20;
            put(to, self.ip + 2, total);
            put(to, self.ip + 4, id);
            put(to, self.ip + 10, checksum::finish(self.sum + u64::from(total) + u64::from(id)));
        }
        true
    }
}
