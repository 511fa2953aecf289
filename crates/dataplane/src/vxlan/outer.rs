//! The outer headers of a tunnel, prepared once and copied in front of each frame (RFC 7348 5).

use std::net::IpAddr;

use packet::{
    checksum,
    headers::{ethertype, ipv4::Ipv4, ipv6::Ipv6, mpls::Mpls, protocol, udp},
    Buffer,
};

use super::flow;
use crate::{
    mpls::Labels,
    tables::{Adjacency, Tag},
};

/// Bytes of an Ethernet header.
pub(super) const ETHERNET: usize = 14;
/// Bytes of the UDP and VXLAN headers.
pub(super) const UDP_VXLAN: usize = 16;
/// The first byte of a VXLAN header: the I flag.
pub(super) const I_FLAG: u8 = 0x08;
/// Bytes in front of a frame over IPv4, untagged.
const PLAIN: usize = 50;
/// Most bytes in front of a frame: Ethernet, a tag, four labels, IPv6, UDP and VXLAN.
const MAX: usize = 96;
/// As the kernel sends them.
const TTL: u8 = 64;

/// [`checksum::sum`] of a long slice, eight bytes at a time.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8);
    let rest = checksum::sum(words.remainder());
    let halves = words.map(|w| w.first_chunk().map_or(0, |w| u64::from_be_bytes(*w)));
    halves.fold(rest, |sum, w| sum + (w >> 32) + (w & 0xffff_ffff))
}

/// IP, UDP and VXLAN headers of a tunnel, with lengths, checksums, source port and identification zero.
#[derive(Debug)]
pub(super) struct Template {
    bytes: [u8; 56],
    len: usize,
}

impl Template {
    /// `None` when the addresses are of two families.
    pub(super) fn new(local: IpAddr, remote: IpAddr, udp_port: u16, vni: u32) -> Option<Self> {
        let mut bytes = [0; 56];
        let len = match (local, remote) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                // May be fragmented on the way, as the kernel's may; here it never is (RFC 7348 4.3).
                let ip = Ipv4 {
                    dscp: 0,
                    ecn: 0,
                    total_len: 0,
                    id: 0,
                    dont_fragment: false,
                    more_fragments: false,
                    fragment_offset: 0,
                    ttl: TTL,
                    protocol: protocol::UDP,
                    checksum: 0,
                    src,
                    dst,
                };
                ip.write(&mut bytes).then_some(36)?
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let ip = Ipv6 {
                    traffic_class: 0,
                    flow_label: 0,
                    payload_len: 0,
                    next_header: protocol::UDP,
                    hop_limit: TTL,
                    src,
                    dst,
                };
                ip.write(&mut bytes).then_some(56)?
            }
            _ => return None,
        };
        let udp = udp::Udp { src_port: 0, dst_port: udp_port, len: 0, checksum: 0 };
        let tail = bytes.get_mut(len - UDP_VXLAN..len)?;
        let [v0, v1, v2, v3] = (vni << 8).to_be_bytes();
        tail[udp::LEN..].copy_from_slice(&[I_FLAG, 0, 0, 0, v0, v1, v2, v3]);
        udp.write(tail).then_some(Self { bytes, len })
    }
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
                    let entry = Mpls { bottom: i + 1 == entries.len(), ttl: TTL, ..entry };
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
