//! What the tests of this crate share.
#![allow(dead_code)]

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use packet::{
    frame::{HeaderSpec, IpSpec, L4Spec, NO_TRANSPORT},
    headers::{eth, mpls, vlan},
    MacAddr,
};

/// IPv4 and UDP, as RFC 2544 C.2.6.4 has it.
pub fn v4_udp() -> HeaderSpec {
    HeaderSpec {
        dst_mac: MacAddr([2, 0, 0, 0, 0, 2]),
        src_mac: MacAddr([2, 0, 0, 0, 0, 1]),
        vlans: vec![],
        mpls: vec![],
        ip: IpSpec::V4 { src: [198, 18, 1, 2].into(), dst: [198, 19, 1, 2].into(), ttl: 64, dscp: 0 },
        l4: L4Spec::Udp { src: 0xc020, dst: 7 },
    }
}

/// The same with IPv6.
pub fn v6_udp() -> HeaderSpec {
    let ip = IpSpec::V6 {
        src: "2001:2::1".parse().unwrap(),
        dst: "2001:2:0:8000::1".parse().unwrap(),
        hop_limit: 64,
        dscp: 0,
        flow_label: 0,
    };
    HeaderSpec { ip, ..v4_udp() }
}

/// Where the IP header of frames with these headers begins.
pub fn l3(spec: &HeaderSpec) -> usize {
    eth::LEN + vlan::LEN * spec.vlans.len() + mpls::LEN * spec.mpls.len()
}

/// Checks lengths and checksums from the IP header on with etherparse, which knows no MPLS.
pub fn verify(ip_bytes: &[u8]) {
    let packet = SlicedPacket::from_ip(ip_bytes).unwrap();
    let Some(transport) = packet.transport else {
        return verify_bare(packet.net.unwrap(), ip_bytes.len());
    };
    let (found, want) = match (packet.net.unwrap(), transport) {
        (NetSlice::Ipv4(ip), transport) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert_eq!(usize::from(header.total_len), ip_bytes.len());
            match transport {
                TransportSlice::Udp(udp) => {
                    (udp.checksum(), udp.to_header().calc_checksum_ipv4(&header, udp.payload()))
                }
                TransportSlice::Tcp(tcp) => {
                    (tcp.checksum(), tcp.to_header().calc_checksum_ipv4(&header, tcp.payload()))
                }
                other => panic!("{other:?}"),
            }
        }
        (NetSlice::Ipv6(ip), transport) => {
            let header = ip.header().to_header();
            assert_eq!(usize::from(header.payload_length), ip_bytes.len() - 40);
            match transport {
                TransportSlice::Udp(udp) => {
                    (udp.checksum(), udp.to_header().calc_checksum_ipv6(&header, udp.payload()))
                }
                TransportSlice::Tcp(tcp) => {
                    (tcp.checksum(), tcp.to_header().calc_checksum_ipv6(&header, tcp.payload()))
                }
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(found, want.unwrap());
}

/// Checks an IP header with nothing but payload behind it.
fn verify_bare(net: NetSlice<'_>, len: usize) {
    match net {
        NetSlice::Ipv4(ip) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert_eq!((usize::from(header.total_len), header.protocol.0), (len, NO_TRANSPORT));
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header().to_header();
            assert_eq!((usize::from(header.payload_length), header.next_header.0), (len - 40, NO_TRANSPORT));
        }
    }
}

/// The 5-tuple of a frame as bytes: addresses, ports, protocol.
pub fn five_tuple(ip_bytes: &[u8]) -> Vec<u8> {
    match ip_bytes[0] >> 4 {
        4 => [&ip_bytes[12..24], &ip_bytes[9..10]].concat(),
        _ => [&ip_bytes[8..44], &ip_bytes[6..7]].concat(),
    }
}
