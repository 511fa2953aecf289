use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;

use super::*;

fn v4_udp() -> HeaderSpec {
    HeaderSpec {
        dst_mac: MacAddr([2, 0, 0, 0, 0, 2]),
        src_mac: MacAddr([2, 0, 0, 0, 0, 1]),
        vlans: vec![],
        mpls: vec![],
        ip: IpSpec::V4 { src: [198, 18, 1, 2].into(), dst: [198, 19, 1, 2].into(), ttl: 10, dscp: 0 },
        l4: L4Spec::Udp { src: 0xc020, dst: 7 },
    }
}

#[test]
fn a_64_byte_udp_frame_is_the_one_of_rfc_2544() {
    let template = Template::new(&v4_udp(), FrameSize::MIN).unwrap();
    let bytes = template.bytes();
    let head = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 0x2e, 0, 0, 0, 0, 0x0a, 0x11];
    assert_eq!(bytes[..24], head);
    assert_eq!(bytes[26..40], [198, 18, 1, 2, 198, 19, 1, 2, 0xc0, 0x20, 0, 7, 0, 0x1a]);
    assert_eq!(bytes.len(), 60);
    assert!(bytes[42..].iter().all(|&b| b == 0));
    let at = template.offsets();
    assert_eq!((at.l3, at.l4, at.l4_checksum, at.payload, at.stamp), (14, 34, Some(40), 42, 42));
}

#[test]
fn without_a_transport_header_a_64_byte_frame_holds_an_mpls_label() {
    let label = MplsLabel { label: 16, tc: 0, ttl: 64 };
    let spec = HeaderSpec { mpls: vec![label], l4: L4Spec::None, ..v4_udp() };
    let template = Template::new(&spec, FrameSize::MIN).unwrap();
    let bytes = template.bytes();
    let head = [0x88, 0x47, 0, 1, 1, 64, 0x45, 0, 0, 0x2a, 0, 0, 0, 0, 10, 253];
    assert_eq!(bytes[12..28], head);
    assert_eq!(bytes[30..42], [198, 18, 1, 2, 198, 19, 1, 2, 0, 1, 2, 3]);
    assert_eq!(checksum::finish(checksum::sum(&bytes[18..38])), 0);
    assert!(bytes.len() == 60 && bytes[42..].iter().all(|&b| b == 0));
    let at = template.offsets();
    assert_eq!((at.l3, at.l4, at.l4_checksum, at.payload, at.stamp), (18, 38, None, 38, 42));
    // One label more fits exactly, another does not, and with UDP not even the first.
    let labels = |n, l4| Template::new(&HeaderSpec { mpls: vec![label; n], l4, ..v4_udp() }, FrameSize::MIN);
    assert_eq!(labels(2, L4Spec::None).unwrap().offsets().payload, 42);
    let headers = "Ethernet/MPLS/MPLS/MPLS/IPv4".to_owned();
    assert_eq!(labels(3, L4Spec::None).unwrap_err(), FrameError::TooSmall { headers, least: 68, asked: 64 });
    assert!(labels(1, v4_udp().l4).is_err());
}

#[test]
fn the_payload_counts_up_and_repeats() {
    let template = Template::new(&v4_udp(), FrameSize::new(512).unwrap()).unwrap();
    let at = template.offsets();
    for (i, byte) in template.bytes()[at.payload..at.stamp].iter().enumerate() {
        assert_eq!(*byte, i as u8);
    }
}

#[test]
fn too_small_a_size_names_headers_and_least_size() {
    let mut spec = v4_udp();
    spec.vlans = vec![VlanTag { tpid: ethertype::VLAN, vid: 5, pcp: 0 }];
    spec.mpls = vec![MplsLabel { label: 16, tc: 0, ttl: 64 }; 2];
    let err = Template::new(&spec, FrameSize::MIN).unwrap_err();
    let headers = "Ethernet/VLAN/MPLS/MPLS/IPv4/UDP".to_owned();
    assert_eq!(err, FrameError::TooSmall { headers, least: 76, asked: 64 });
    insta::assert_snapshot!("too_small", err);
    let least = Template::min_frame_size(&spec);
    assert_eq!(least.bytes(), 76);
    assert!(Template::new(&spec, least).is_ok());
    assert_eq!(Template::min_frame_size(&v4_udp()), FrameSize::MIN);
}

#[test]
fn values_beyond_their_field_are_refused() {
    let broken: [fn(&mut HeaderSpec); 7] = [
        |s| s.vlans = vec![VlanTag { tpid: 0x8100, vid: 4095, pcp: 0 }],
        |s| s.vlans = vec![VlanTag { tpid: 0x8100, vid: 1, pcp: 8 }],
        |s| s.vlans = vec![VlanTag { tpid: 0x0800, vid: 1, pcp: 0 }],
        |s| s.vlans = vec![VlanTag { tpid: 0x8100, vid: 1, pcp: 0 }; 3],
        |s| s.mpls = vec![MplsLabel { label: 1 << 20, tc: 0, ttl: 1 }],
        |s| s.mpls = vec![MplsLabel { label: 1, tc: 0, ttl: 1 }; 5],
        |s| s.ip = IpSpec::V4 { src: [0; 4].into(), dst: [0; 4].into(), ttl: 1, dscp: 64 },
    ];
    let mut shown = String::new();
    for change in broken {
        let mut spec = v4_udp();
        change(&mut spec);
        let err = Template::new(&spec, FrameSize::new(512).unwrap()).unwrap_err();
        assert!(matches!(err, FrameError::Field { .. }), "{err}");
        shown += &format!("{err}\n");
    }
    insta::assert_snapshot!("values_beyond_their_field", shown);
}

fn any_spec() -> impl Strategy<Value = HeaderSpec> {
    let vlan = (prop_oneof![Just(ethertype::VLAN), Just(ethertype::QINQ)], 0..=vlan::MAX_VID, 0u8..8)
        .prop_map(|(tpid, vid, pcp)| VlanTag { tpid, vid, pcp });
    let label = (0..=mpls::MAX_LABEL, 0u8..8, any::<u8>()).prop_map(|(label, tc, ttl)| MplsLabel { label, tc, ttl });
    let ip = prop_oneof![
        (any::<u32>(), any::<u32>(), any::<u8>(), 0u8..64).prop_map(|(src, dst, ttl, dscp)| IpSpec::V4 {
            src: src.into(),
            dst: dst.into(),
            ttl,
            dscp
        }),
        (any::<u128>(), any::<u128>(), any::<u8>(), 0u8..64, 0u32..1 << 20).prop_map(
            |(src, dst, hop_limit, dscp, flow_label)| {
                IpSpec::V6 { src: src.into(), dst: dst.into(), hop_limit, dscp, flow_label }
            }
        ),
    ];
    let l4 = prop_oneof![
        (any::<u16>(), any::<u16>()).prop_map(|(src, dst)| L4Spec::Udp { src, dst }),
        (any::<u16>(), any::<u16>(), any::<u8>()).prop_map(|(src, dst, flags)| L4Spec::Tcp { src, dst, flags }),
        Just(L4Spec::None),
    ];
    let stack = (proptest::collection::vec(vlan, 0..=2), proptest::collection::vec(label, 0..=4));
    (any::<[u8; 6]>(), any::<[u8; 6]>(), stack, ip, l4).prop_map(|(dst, src, (vlans, mpls), ip, l4)| HeaderSpec {
        dst_mac: MacAddr(dst),
        src_mac: MacAddr(src),
        vlans,
        mpls,
        ip,
        l4,
    })
}

/// Checks lengths and checksums from the IP header on with etherparse.
fn verify(ip_bytes: &[u8]) {
    let packet = SlicedPacket::from_ip(ip_bytes).unwrap();
    let Some(transport) = packet.transport else {
        return verify_bare(packet.net.unwrap(), ip_bytes.len());
    };
    let sum = match (packet.net.unwrap(), &transport) {
        (NetSlice::Ipv4(ip), t) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert_eq!(usize::from(header.total_len), ip_bytes.len());
            match t {
                TransportSlice::Udp(udp) => {
                    let want = udp.to_header().calc_checksum_ipv4(&header, udp.payload()).unwrap();
                    (udp.checksum(), want)
                }
                TransportSlice::Tcp(tcp) => {
                    (tcp.checksum(), tcp.to_header().calc_checksum_ipv4(&header, tcp.payload()).unwrap())
                }
                other => panic!("{other:?}"),
            }
        }
        (NetSlice::Ipv6(ip), t) => {
            let header = ip.header().to_header();
            assert_eq!(usize::from(header.payload_length), ip_bytes.len() - 40);
            match t {
                TransportSlice::Udp(udp) => {
                    (udp.checksum(), udp.to_header().calc_checksum_ipv6(&header, udp.payload()).unwrap())
                }
                TransportSlice::Tcp(tcp) => {
                    (tcp.checksum(), tcp.to_header().calc_checksum_ipv6(&header, tcp.payload()).unwrap())
                }
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(sum.0, sum.1);
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

proptest! {
    #[test]
    fn etherparse_agrees(spec in any_spec(), extra in 0u32..1400) {
        let size = FrameSize::new(Template::min_frame_size(&spec).bytes() + extra).unwrap();
        let template = Template::new(&spec, size).unwrap();
        let (bytes, at) = (template.bytes(), template.offsets());
        prop_assert_eq!(bytes.len(), size.without_fcs());
        prop_assert_eq!(at.payload, spec.len());
        verify(&bytes[at.l3..]);

        // Layer 2 by our own readers, which the byte vectors have checked.
        let (eth, mut rest) = Eth::parse(bytes).unwrap();
        prop_assert_eq!((eth.dst, eth.src), (spec.dst_mac, spec.src_mac));
        let mut ether_type = eth.ether_type;
        for tag in &spec.vlans {
            prop_assert_eq!(ether_type, tag.tpid);
            let (vlan, behind) = Vlan::parse(rest).unwrap();
            prop_assert_eq!((vlan.vid, vlan.pcp), (tag.vid, tag.pcp));
            (ether_type, rest) = (vlan.ether_type, behind);
        }
        for (i, entry) in spec.mpls.iter().enumerate() {
            prop_assert_eq!(ether_type, ethertype::MPLS);
            let (mpls, behind) = Mpls::parse(rest).unwrap();
            prop_assert_eq!((mpls.label, mpls.tc, mpls.ttl), (entry.label, entry.tc, entry.ttl));
            prop_assert_eq!(mpls.bottom, i + 1 == spec.mpls.len());
            rest = behind;
        }
        prop_assert_eq!(rest.len(), bytes.len() - at.l3);
        match (spec.ip, spec.l4) {
            (IpSpec::V4 { src, dst, ttl, dscp }, _) => {
                let (ip, _) = Ipv4::parse(rest).unwrap();
                prop_assert_eq!((ip.src, ip.dst, ip.ttl, ip.dscp), (src, dst, ttl, dscp));
            }
            (IpSpec::V6 { src, dst, hop_limit, dscp, flow_label }, _) => {
                let (ip, _) = Ipv6::parse(rest).unwrap();
                prop_assert_eq!((ip.src, ip.dst, ip.hop_limit), (src, dst, hop_limit));
                prop_assert_eq!((ip.traffic_class >> 2, ip.flow_label), (dscp, flow_label));
            }
        }
    }
}
