//! Headers as plain values: `parse` takes one off the front of a slice, `write` puts one there.
//!
//! `parse` returns `None` when the bytes are too few or are no such header, and otherwise the value and the bytes
//! behind it; it never panics. `write` returns `false`, and writes nothing, when the slice is too short. Values hold
//! what the wire holds: checksums and lengths are the caller's ([`crate::checksum`], [`crate::frame`]).

pub mod arp;
pub mod eth;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod mpls;
pub mod tcp;
pub mod udp;
pub mod vlan;

/// EtherTypes (IEEE 802 numbers).
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// IEEE 802.1Q customer tag.
    pub const VLAN: u16 = 0x8100;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// MPLS unicast (RFC 3032).
    pub const MPLS: u16 = 0x8847;
    /// IEEE 802.1ad service tag.
    pub const QINQ: u16 = 0x88a8;
}

/// IP protocol numbers.
pub mod protocol {
    /// ICMP (RFC 792).
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// IPv6 fragment header (RFC 8200 4.5).
    pub const IPV6_FRAGMENT: u8 = 44;
    /// ICMPv6 (RFC 4443).
    pub const ICMPV6: u8 = 58;
}

/// Puts bytes at the front of a slice; `false`, and nothing written, when it is too short.
fn write_front<const N: usize>(to: &mut [u8], bytes: [u8; N]) -> bool {
    match to.first_chunk_mut() {
        Some(front) => {
            *front = bytes;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A header's bytes as the RFC lays them out, and the checks every header must pass.
    macro_rules! both_ways {
        ($value:expr, $bytes:expr, $kind:ty) => {{
            let (value, bytes) = ($value, $bytes);
            let mut with_tail = bytes.to_vec();
            with_tail.extend([0xaa, 0xbb]);
            let (read, rest) = <$kind>::parse(&with_tail).unwrap();
            assert_eq!((read, rest), (value, &[0xaa, 0xbb][..]));
            let mut out = [0xee; 64];
            assert!(value.write(&mut out));
            assert_eq!(out[..bytes.len()], bytes);
            assert!(out[bytes.len()..].iter().all(|&b| b == 0xee));
            for len in 0..bytes.len() {
                assert!(<$kind>::parse(&bytes[..len]).is_none());
                let mut short = vec![0xee; len];
                assert!(!value.write(&mut short));
                assert!(short.iter().all(|&b| b == 0xee));
            }
        }};
    }

    #[test]
    fn ethernet() {
        let value = eth::Eth {
            dst: crate::MacAddr([1, 2, 3, 4, 5, 6]),
            src: crate::MacAddr([7, 8, 9, 10, 11, 12]),
            ether_type: 0x0800,
        };
        both_ways!(value, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0], eth::Eth);
    }

    #[test]
    fn arp_packet() {
        let value = arp::Arp {
            op: arp::REPLY,
            sender_mac: crate::MacAddr([1, 2, 3, 4, 5, 6]),
            sender: [10, 0, 0, 1].into(),
            target_mac: crate::MacAddr([7, 8, 9, 10, 11, 12]),
            target: [10, 0, 0, 2].into(),
        };
        let bytes = [0, 1, 8, 0, 6, 4, 0, 2, 1, 2, 3, 4, 5, 6, 10, 0, 0, 1, 7, 8, 9, 10, 11, 12, 10, 0, 0, 2];
        both_ways!(value, bytes, arp::Arp);
        for at in 0..6 {
            let mut other = bytes;
            other[at] ^= 0x10;
            assert!(arp::Arp::parse(&other).is_none(), "{at}");
        }
    }

    #[test]
    fn icmp_header() {
        let value = icmp::Icmp { kind: 3, code: 4, checksum: 0xabcd, rest: 1280 };
        both_ways!(value, [3, 4, 0xab, 0xcd, 0, 0, 5, 0], icmp::Icmp);
    }

    #[test]
    fn vlan_tag() {
        both_ways!(
            vlan::Vlan { pcp: 5, dei: true, vid: 0xabc, ether_type: 0x86dd },
            [0b1011_1010, 0xbc, 0x86, 0xdd],
            vlan::Vlan
        );
    }

    #[test]
    fn mpls_entry() {
        both_ways!(
            mpls::Mpls { label: 0xabcde, tc: 5, bottom: true, ttl: 64 },
            [0xab, 0xcd, 0b1110_1011, 64],
            mpls::Mpls
        );
    }

    #[test]
    fn ipv4_header() {
        let value = ipv4::Ipv4 {
            dscp: 46,
            ecn: 1,
            total_len: 0x2e,
            id: 0x1234,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0x123,
            ttl: 10,
            protocol: 17,
            checksum: 0xabcd,
            src: [198, 18, 1, 2].into(),
            dst: [198, 19, 1, 2].into(),
        };
        let bytes = [0x45, 0xb9, 0, 0x2e, 0x12, 0x34, 0x41, 0x23, 10, 17, 0xab, 0xcd, 198, 18, 1, 2, 198, 19, 1, 2];
        both_ways!(value, bytes, ipv4::Ipv4);
    }

    #[test]
    fn ipv4_options_are_skipped_and_lies_refused() {
        let mut bytes = [0; 28];
        bytes[0] = 0x46;
        bytes[24] = 7;
        assert_eq!(ipv4::Ipv4::parse(&bytes).unwrap().1, [7, 0, 0, 0]);
        for lie in [0x44, 0x55, 0x48, 0x40, 0x4f] {
            bytes[0] = lie;
            assert!(ipv4::Ipv4::parse(&bytes).is_none(), "{lie:x}");
        }
    }

    #[test]
    fn ipv6_header() {
        let value = ipv6::Ipv6 {
            traffic_class: 0xab,
            flow_label: 0xcdef0,
            payload_len: 0x0102,
            next_header: 17,
            hop_limit: 64,
            src: "2001:2::1".parse().unwrap(),
            dst: "2001:2:0:1::2".parse().unwrap(),
        };
        let mut bytes = [0; 40];
        bytes[..8].copy_from_slice(&[0x6a, 0xbc, 0xde, 0xf0, 1, 2, 17, 64]);
        bytes[8..12].copy_from_slice(&[0x20, 1, 0, 2]);
        bytes[23] = 1;
        bytes[24..32].copy_from_slice(&[0x20, 1, 0, 2, 0, 0, 0, 1]);
        bytes[39] = 2;
        both_ways!(value, bytes, ipv6::Ipv6);
        bytes[0] = 0x4a;
        assert!(ipv6::Ipv6::parse(&bytes).is_none());
    }

    #[test]
    fn udp_header() {
        both_ways!(
            udp::Udp { src_port: 0xc020, dst_port: 7, len: 0x1a, checksum: 0x0102 },
            [0xc0, 0x20, 0, 7, 0, 0x1a, 1, 2],
            udp::Udp
        );
    }

    #[test]
    fn tcp_header() {
        let value = tcp::Tcp {
            src_port: 0x1234,
            dst_port: 80,
            seq: 0x0102_0304,
            ack: 0x0506_0708,
            flags: tcp::SYN | tcp::ACK,
            window: 0x4000,
            checksum: 0xaabb,
            urgent: 0x0c0d,
        };
        let bytes = [0x12, 0x34, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x12, 0x40, 0, 0xaa, 0xbb, 0x0c, 0x0d];
        both_ways!(value, bytes, tcp::Tcp);
        let mut with_options = [0; 26];
        with_options[12] = 0x60;
        assert_eq!(tcp::Tcp::parse(&with_options).unwrap().1.len(), 2);
        with_options[12] = 0x40;
        assert!(tcp::Tcp::parse(&with_options).is_none());
        with_options[12] = 0x70;
        assert!(tcp::Tcp::parse(&with_options).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (eth::Eth::parse(&bytes), vlan::Vlan::parse(&bytes), mpls::Mpls::parse(&bytes));
            let _ = (ipv4::Ipv4::parse(&bytes), ipv6::Ipv6::parse(&bytes));
            let _ = (udp::Udp::parse(&bytes), tcp::Tcp::parse(&bytes));
            let _ = (arp::Arp::parse(&bytes), icmp::Icmp::parse(&bytes));
        }
    }
}
