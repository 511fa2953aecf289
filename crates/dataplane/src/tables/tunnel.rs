//! The outer headers of a tunnel that do not depend on the frame or on the way to the other end.

use std::net::IpAddr;

use packet::headers::{ipv4::Ipv4, ipv6::Ipv6, protocol, udp};

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;
/// Bytes of the UDP and VXLAN headers.
pub(crate) const UDP_VXLAN: usize = 16;
/// The first byte of a VXLAN header: the I flag.
pub(crate) const I_FLAG: u8 = 0x08;
/// TTL of the outer packet, as the kernel sends it.
pub(crate) const TUNNEL_TTL: u8 = 64;

/// IP, UDP and VXLAN headers of a tunnel, with lengths, checksums, source port and identification zero.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) bytes: [u8; 56],
    /// Bytes that count.
    pub(crate) len: usize,
}

impl Template {
    /// `None` when the addresses are of two families.
    pub(crate) fn new(local: IpAddr, remote: IpAddr, udp_port: u16, vni: u32) -> Option<Self> {
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
                    ttl: TUNNEL_TTL,
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
                    hop_limit: TUNNEL_TTL,
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
