//! What every kind of frame is read as.

use etherparse::{Ipv4Options, NetSlice, PacketBuilder, SlicedPacket, TransportSlice};

use super::build::*;
use crate::{decode::*, Distinguish, Key};

fn read(spec: DecodeSpec, frame: &[u8]) -> Ip {
    let decoded = Decoder::new(spec).decode(frame, 0);
    ip(decoded).unwrap_or_else(|| panic!("{decoded:?}: {frame:x?}"))
}

fn key(spec: DecodeSpec, frame: &[u8]) -> Key {
    read(spec, frame).key
}

#[test]
fn every_kind_has_its_key() {
    for (name, frame) in kinds() {
        let want = match name {
            "udp" | "vlan" | "pseudowire" | "vxlan" | "vxlan6" | "gre with a frame" => key4(1234, 53, 17),
            "tcp6" | "qinq" | "pseudowire, no control word" => key6(1234, 53, 6),
            "tcp" | "mpls" | "options" | "gtp-u" | "pppoe" | "pppoe, short" => key4(1, 2, 6),
            "udp6" | "mpls6" | "extensions" | "ip in ip" | "gtp-u, extended" | "pppoe6" => key6(3, 4, 17),
            "first fragment" | "gre" => key4(7, 8, 17),
            "later fragment" => key4(0, 0, 17),
            "icmp" => key4(0, 8 << 8, 1),
            "icmp6" => key6(0, 129 << 8, 58),
            "sctp" => key4(9, 10, 132),
            _ => {
                let kind = [("arp", NotIp::Arp), ("llc", NotIp::Llc), ("lcp", NotIp::Ppp)];
                let kind = kind.into_iter().find(|(other, _)| *other == name).map(|(_, kind)| Decoded::NotIp(kind));
                assert_eq!(Some(Decoder::new(inner()).decode(&frame, 0)), kind, "{name}");
                continue;
            }
        };
        let read = read(inner(), &frame);
        assert_eq!((read.key, read.bytes, read.reversed), (want, frame.len() as u32, false), "{name}");
    }
}

#[test]
fn frequent_frames_are_plain_and_are_read_alike_either_way() {
    let decoder = Decoder::new(inner());
    for (name, frame) in kinds() {
        let length = frame.len() as u32;
        let plain = decoder.decode_plain(&frame, length, 3);
        assert_eq!(plain.is_some(), matches!(name, "udp" | "tcp"), "{name}");
        if let Some(plain) = plain {
            assert_eq!(Decoded::Ip4(plain), decoder.decode_other(&frame, length, 3), "{name}");
        }
    }
}

#[test]
fn agrees_with_etherparse() {
    let options = Ipv4Options::try_from(&[1, 1, 1, 0][..]).unwrap();
    for (name, frame) in kinds() {
        let (Some(ours), Ok(theirs)) =
            (ip(Decoder::new(DecodeSpec::default()).decode(&frame, 0)), SlicedPacket::from_ethernet(&frame))
        else {
            continue;
        };
        let (src, dst) = match theirs.net {
            Some(NetSlice::Ipv4(ip)) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
            Some(NetSlice::Ipv6(ip)) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
            None => continue,
        };
        assert_eq!((ours.key.addresses.src(), ours.key.addresses.dst()), (src, dst), "{name}");
        match theirs.transport {
            Some(TransportSlice::Udp(udp)) => {
                assert_eq!((ours.key.sport, ours.key.dport), (udp.source_port(), udp.destination_port()), "{name}");
            }
            Some(TransportSlice::Tcp(tcp)) => {
                assert_eq!((ours.key.sport, ours.key.dport), (tcp.source_port(), tcp.destination_port()), "{name}");
                assert_eq!((tcp.syn(), tcp.ack()), (ours.tcp_flags & 2 != 0, ours.tcp_flags & 16 != 0), "{name}");
            }
            _ => {}
        }
    }
    // And with what it builds with options.
    let mut header = etherparse::Ipv4Header::new(20, 9, etherparse::IpNumber::TCP, A4, B4).unwrap();
    header.options = options;
    let mut frame = Vec::new();
    let headers = etherparse::IpHeaders::Ipv4(header, Default::default());
    PacketBuilder::ethernet2([2; 6], [4; 6]).ip(headers).tcp(7, 9, 0, 0).fin().write(&mut frame, &[]).unwrap();
    assert_eq!((key(inner(), &frame), read(inner(), &frame).tcp_flags), (key4(7, 9, 6), 1));
}

#[test]
fn tos_and_flags() {
    for (frame, tos, flags) in [
        (ether(0x800, &ip4(A4, B4, 6, &tcp(1, 2, 0xa5))), 0x2e, 0xa5),
        (ether(0x86dd, &ip6(A6, B6, 6, &tcp(1, 2, 0xa5))), 0x2e, 0xa5),
        (ether(0x800, &ip4(A4, B4, 17, &udp(1, 2, &[0xff; 20]))), 0x2e, 0),
        (ether(0x86dd, &ip6(A6, B6, 17, &udp(1, 2, &[0xff; 20]))), 0x2e, 0),
        // Not all of the header is there, and what is behind the packet is not looked at.
        (ether(0x800, &[ip4(A4, B4, 6, &tcp(1, 2, 0xff)[..13]), vec![0xff; 30]].concat()), 0x2e, 0),
        (ether(0x86dd, &[ip6(A6, B6, 6, &tcp(1, 2, 0xff)[..13]), vec![0xff; 30]].concat()), 0x2e, 0),
    ] {
        for frame in [frame.clone(), tagged(&frame, &[(0x8100, 1)])] {
            let read = read(inner(), &frame);
            assert_eq!((read.tos, read.tcp_flags), (tos, flags), "{frame:x?}");
            assert_eq!((read.key.sport, read.key.dport), (1, 2), "{frame:x?}");
        }
    }
}

#[test]
fn bytes_of_the_packet_and_of_the_frame() {
    let bytes = |frame: &[u8]| {
        let read = read(inner(), frame);
        (read.ip_bytes, read.bytes as usize)
    };
    for (packet, kind, len) in
        [(ip4(A4, B4, 17, &udp(1, 2, &[])), 0x800, 28), (ip6(A6, B6, 6, &tcp(1, 2, 0)), 0x86dd, 60)]
    {
        for padding in [0, 1, 60] {
            let frame = ether(kind, &[&packet[..], &vec![0; padding]].concat());
            assert_eq!(bytes(&frame), (len, frame.len()));
            let tagged = tagged(&frame, &[(0x9100, 1), (0x88a8, 2), (0x8100, 3), (0x8100, 4)]);
            assert_eq!(bytes(&tagged), (len, tagged.len()));
            // In a tunnel it is the inner packet, and the whole frame.
            let tunnel = ether(0x800, &ip4(B4, A4, 17, &vxlan(5000, &frame)));
            assert_eq!(bytes(&tunnel), (len, tunnel.len()));
            // A capture that holds less of it says how long it was.
            let cut = ip(Decoder::new(inner()).decode_cut(&frame[..len as usize + 14], frame.len() as u32 + 1000, 0))
                .unwrap();
            assert_eq!((cut.ip_bytes, cut.bytes as usize), (len, frame.len() + 1000));
        }
        // A length field beyond the frame counts as far as the frame goes.
        let mut long = ether(kind, &packet);
        long[if kind == 0x800 { 16 } else { 18 }] = 0x7f;
        assert_eq!(bytes(&long), (packet.len() as u32, long.len()));
    }
    // The kernel of the sender captured it before its NIC cut it into segments: the length is not in it yet.
    let mut large = ether(0x800, &ip4(A4, B4, 6, &[tcp(1, 2, 16), vec![7; 5000]].concat()));
    large[16..18].fill(0);
    assert_eq!((bytes(&large), key(inner(), &large)), ((5040, 5054), key4(1, 2, 6)));
}

#[test]
fn the_ninth_flag() {
    for frame in [ether(0x800, &ip4(A4, B4, 6, &tcp(1, 2, 0xc2))), ether(0x86dd, &ip6(A6, B6, 6, &tcp(1, 2, 0xc2)))] {
        let at = frame.len() - 20 + 12;
        let flags = |byte: u8, tags: &[(u16, u16)]| {
            let mut frame = frame.clone();
            frame[at] = byte;
            read(inner(), &tagged(&frame, tags)).tcp_flags
        };
        // The three bits above it have no meaning.
        for tags in [&[][..], &[(0x8100, 1)]] {
            assert_eq!([0x50, 0x51, 0x5f, 0x5e].map(|byte| flags(byte, tags)), [0xc2, 0x1c2, 0x1c2, 0xc2]);
        }
    }
}

#[test]
fn padding_is_no_packet() {
    // Three bytes of UDP, and what looks like ports behind them.
    for packet in [ip4(A4, B4, 17, &[1, 2, 3]), ip6(A6, B6, 17, &[1, 2, 3])] {
        let kind = if packet[0] >> 4 == 4 { 0x800 } else { 0x86dd };
        let frame = ether(kind, &[packet, vec![9; 40]].concat());
        let read = read(inner(), &frame);
        assert_eq!((read.key.sport, read.key.dport, read.bytes), (0, 0, frame.len() as u32));
    }
    // A jumbogram has its length elsewhere, and all others have none.
    let mut frame = ether(0x86dd, &ip6(A6, B6, 0, &[&[17, 0, 0xc2, 4, 0, 1, 0, 0][..], &udp(3, 4, &[])].concat()));
    frame[18..20].fill(0);
    assert_eq!(key(inner(), &frame), key6(3, 4, 17));
    frame[20] = 17;
    assert_eq!(key(inner(), &frame), key6(0, 0, 17));
}

#[test]
fn what_tells_flows_apart() {
    let scope = |distinguish, layer, frame: &[u8]| {
        key(DecodeSpec { distinguish, vxlan: layer, ..DecodeSpec::default() }, frame).scope
    };
    let tags = [(0x8100, 0xe000), (0x88a8, 0xb123), (0x8100, 5)];
    let tunnel = tagged(&ether(0x800, &ip4(B4, A4, 17, &vxlan(5000, &tagged(&plain(), &[(0x8100, 9)])))), &tags[1..]);
    let labels = ether(0x8847, &mpls(&[0xabcde, 17, 18], &tagged(&plain(), &[(0x8100, 6)])));
    for layer in [Layer::Outer, Layer::Inner] {
        // The first that is one: a priority tag is none.
        assert_eq!(scope(Distinguish::Vlan, layer, &tagged(&plain(), &tags)), Some(0x123));
        assert_eq!(scope(Distinguish::Vlan, layer, &tagged(&plain6(), &tags)), Some(0x123));
        assert_eq!(scope(Distinguish::Vlan, layer, &tunnel), Some(0x123));
        assert_eq!(scope(Distinguish::Vni, layer, &tunnel), Some(5000));
        assert_eq!(scope(Distinguish::Label, layer, &labels), Some(0xabcde));
        assert_eq!(scope(Distinguish::Vlan, layer, &labels), Some(6));
        assert_eq!(scope(Distinguish::None, layer, &tunnel), None);
        assert_eq!(scope(Distinguish::Vni, layer, &plain()), None);
        let stack = |labels: &[u32]| {
            let frame = ether(0x8847, &mpls(labels, &tagged(&plain(), &[(0x8100, 6)])));
            key(DecodeSpec { distinguish: Distinguish::Label, vxlan: layer, ..DecodeSpec::default() }, &frame)
        };
        assert_eq!(
            [stack(&[7, 8]), stack(&[7])].map(|key| (key.scope, key.bottom)),
            [(Some(7), false), (Some(7), true)]
        );
        // A priority tag alone is VLAN 0, which is not the same as no tag.
        assert_eq!(scope(Distinguish::Vlan, layer, &tagged(&plain(), &tags[..1])), Some(0));
        assert_eq!(scope(Distinguish::Vlan, layer, &plain()), None);
    }
}

#[test]
fn tunnels_by_choice() {
    let outer = DecodeSpec { mpls: Layer::Outer, ..DecodeSpec::default() };
    let frame = ether(0x800, &ip4(A4, B4, 17, &vxlan(1, &plain6())));
    assert_eq!(key(outer, &frame), key4(50_000, 4789, 17));
    assert_eq!(key(inner(), &frame), key6(1234, 53, 6));
    assert_eq!(key(DecodeSpec { vxlan_port: 8472, ..inner() }, &frame), key4(50_000, 4789, 17));
    // Without the flag the packet is not VXLAN. A VXLAN packet that carries no IP is not IP.
    let mut other = frame.clone();
    other[42] = 0;
    assert_eq!(key(inner(), &other), key4(50_000, 4789, 17));
    let arp = ether(0x800, &ip4(A4, B4, 17, &vxlan(1, &ether(0x806, &[0; 28]))));
    assert_eq!(Decoder::new(inner()).decode(&arp, 0), Decoded::NotIp(NotIp::Tunnel));
    let labels = ether(0x8847, &mpls(&[3], &ip4(A4, B4, 17, &udp(1, 2, &[]))));
    assert_eq!(Decoder::new(outer).decode(&labels, 0), Decoded::NotIp(NotIp::Mpls));
    assert_eq!(key(inner(), &labels), key4(1, 2, 17));
    // Each tunnel by its own choice.
    let spec = DecodeSpec::default();
    for (name, want) in [("gre", key4(0, 0, 47)), ("ip in ip", key4(0, 0, 41)), ("gtp-u", key4(50_000, 2152, 17))] {
        let (_, frame) = kinds().into_iter().find(|(kind, _)| *kind == name).unwrap();
        let outer = key(spec, &frame);
        // From B to A.
        assert_eq!(
            (outer.protocol, outer.dport, outer.addresses.dst()),
            (want.protocol, want.dport, want.addresses.src())
        );
        assert_ne!(key(inner(), &frame).protocol, 47);
    }
    // GRE: every optional field, mirrored frames, and what is not decoded.
    let inside = ip4(A4, B4, 17, &udp(1, 2, &[]));
    let gre = |header: &[u8], content: &[u8]| ether(0x800, &ip4(B4, A4, 47, &[header, content].concat()));
    let optional = [&[0xb0, 0, 8, 0][..], &[0; 12]].concat();
    assert_eq!(key(inner(), &gre(&optional, &inside)), key4(1, 2, 17));
    let mirrored = [&[0x10, 0, 0x88, 0xbe][..], &[0; 12]].concat();
    assert_eq!(key(inner(), &gre(&mirrored, &plain())), key4(1234, 53, 17));
    assert_eq!(key(inner(), &gre(&[0, 0, 0x88, 0xbe], &plain())), key4(1234, 53, 17));
    assert_eq!(key(inner(), &gre(&[0, 0, 0x88, 0x47], &mpls(&[9], &inside))), key4(1, 2, 17));
    for header in [[0x40, 0, 8, 0], [0x20, 1, 0x88, 0x0b], [0, 0, 0x12, 0x34]] {
        let read = Decoder::new(inner()).decode(&gre(&header, &[0; 40]), 0);
        assert_eq!(read, Decoded::NotIp(NotIp::Tunnel), "{header:x?}");
    }
    // GTP-U: echo requests, another version, extension headers without an end, and none of a length.
    let in_udp = |message: &[u8]| ether(0x800, &ip4(A4, B4, 17, &udp(2152, 2152, message)));
    let header = |first, kind| [first, kind, 0, 8, 0, 0, 0, 1];
    let read = |message: &[u8]| Decoder::new(inner()).decode(&in_udp(message), 0);
    assert_eq!(read(&[&header(0x32, 1)[..], &[0; 8]].concat()), Decoded::NotIp(NotIp::Tunnel));
    let outer = |message: &[u8]| ip(read(message)).map(|ip| ip.key);
    let as_udp = Some(key4(2152, 2152, 17));
    assert_eq!(outer(&[&header(0x50, 255)[..], &inside].concat()), as_udp);
    assert_eq!(outer(&[&header(0x34, 255)[..], &[0, 0, 0, 9, 0, 0, 0, 9], &inside].concat()), as_udp);
    let chain = [&[0, 0, 0, 9][..], &[1, 0, 0, 9].repeat(20), &inside].concat();
    assert_eq!(read(&[&header(0x34, 255)[..], &chain].concat()), Decoded::NotIp(NotIp::Tunnel));
    // The number of an extension header counts only where the flag says so.
    assert_eq!(outer(&[&header(0x32, 255)[..], &[0, 0, 0, 9], &inside].concat()), Some(key4(1, 2, 17)));
    // So deep, and no deeper: then the innermost reached.
    let mut nested = plain6();
    for depth in 1..=TUNNELS + 1 {
        nested = ether(0x800, &ip4(A4, B4, 17, &vxlan(1, &nested)));
        let want = if depth <= TUNNELS { key6(1234, 53, 6) } else { key4(50_000, 4789, 17) };
        assert_eq!(key(inner(), &nested), want, "{depth}");
    }
}

#[test]
fn bounds_of_stacks_and_chains() {
    let decoder = Decoder::new(inner());
    for tags in 1..6 {
        let frame = tagged(&plain(), &vec![(0x8100, 1); tags]);
        assert_eq!(decoder.decode(&frame, 0) == Decoded::NotIp(NotIp::Tags), tags > 4, "{tags}");
    }
    for labels in 1..20 {
        let frame = ether(0x8847, &mpls(&vec![99; labels], &ip4(A4, B4, 17, &udp(1, 2, &[]))));
        assert_eq!(decoder.decode(&frame, 0) == Decoded::NotIp(NotIp::Mpls), labels > 16, "{labels}");
    }
    for headers in 1..12 {
        let chain = [&[60, 0, 1, 4, 0, 0, 0, 0].repeat(headers - 1)[..], &[17, 0, 1, 4, 0, 0, 0, 0], &udp(3, 4, &[])];
        let want = if headers <= 8 { key6(3, 4, 17) } else { key6(0, 0, 60) };
        assert_eq!(key(inner(), &ether(0x86dd, &ip6(A6, B6, 60, &chain.concat()))), want, "{headers}");
    }
}

#[test]
fn extension_headers_of_every_kind() {
    let udp = udp(3, 4, &[0; 8]);
    for (next, header, want) in [
        (0, &[17, 0, 1, 4, 0, 0, 0, 0][..], key6(3, 4, 17)),
        (43, &[17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], key6(3, 4, 17)),
        (60, &[17, 0, 1, 4, 0, 0, 0, 0], key6(3, 4, 17)),
        (51, &[17, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2], key6(3, 4, 17)),
        (44, &[17, 0, 0, 1, 0, 0, 0, 9], key6(3, 4, 17)),
        (44, &[17, 0, 0, 8, 0, 0, 0, 9], key6(0, 0, 17)),
        // Behind the first, the next header is not there to be read.
        (44, &[60, 0, 0, 9, 0, 0, 0, 9], key6(0, 0, 60)),
        (50, &[], key6(0, 0, 50)),
        (59, &[], key6(0, 0, 59)),
        (1, &[], key6(0, 0, 1)),
        // It says that it is longer than the packet.
        (0, &[17, 255, 1, 4, 0, 0, 0, 0], key6(0, 0, 17)),
    ] {
        assert_eq!(
            key(inner(), &ether(0x86dd, &ip6(A6, B6, next, &[header, &udp].concat()))),
            want,
            "{next} {header:?}"
        );
    }
}

#[test]
fn malformed_is_what_claims_to_be_ip() {
    let decoder = Decoder::new(DecodeSpec::default());
    let edit = |at: usize, byte| {
        let mut frame = plain();
        frame[at] = byte;
        decoder.decode(&frame, 0)
    };
    for first in (0..=255).filter(|first| !(0x45..=0x4f).contains(first)) {
        assert_eq!(edit(14, first), Decoded::Malformed, "{first:x}");
    }
    assert_eq!(edit(17, 19), Decoded::Malformed);
    assert_eq!(ip(edit(17, 20)).unwrap().key, key4(0, 0, 17));
    // A length beyond the frame is that of a frame cut short.
    assert_eq!(ip(edit(16, 9)).unwrap().key, key4(1234, 53, 17));
    let mut six = plain6();
    six[14] = 0x50;
    assert_eq!(decoder.decode(&six, 0), Decoded::Malformed);
    for (kind, len) in [(0x800, 20), (0x86dd, 40)] {
        assert_eq!(decoder.decode(&ether(kind, &vec![0x45; len - 1]), 0), Decoded::Malformed);
    }
    // Of what may be a frame below MPLS, it is not known that it claims anything.
    let mut guess = plain();
    guess[14] = 0;
    assert_eq!(decoder.decode(&ether(0x8847, &mpls(&[16], &guess)), 0), Decoded::NotIp(NotIp::Mpls));
}

#[test]
fn ports_of_the_logger() {
    for (biflow, ports) in [(false, [0, 1, 2, 3, 255]), (true, [0, 0, 2, 2, 254])] {
        let decoder = Decoder::new(DecodeSpec { biflow, ..inner() });
        for (port, want) in [0, 1, 2, 3, 255].into_iter().zip(ports) {
            for frame in [plain(), plain6(), tagged(&plain(), &[(0x8100, 1)])] {
                assert_eq!(ip(decoder.decode(&frame, port)).unwrap().key.port, want);
            }
        }
    }
}

#[test]
fn requests_and_answers_are_one_flow() {
    let biflow = DecodeSpec { biflow: true, ..inner() };
    for (request, answer) in [(8, 0), (13, 14), (15, 16), (17, 18)] {
        let there = read(biflow, &ether(0x800, &ip4(A4, B4, 1, &[request, 0, 0, 0, 0, 0, 0, 0])));
        let back = read(biflow, &ether(0x800, &ip4(B4, A4, 1, &[answer, 0, 0, 0, 0, 0, 0, 0])));
        assert_eq!((there.key, there.reversed), (key4(0, request as u16 * 256, 1), false));
        assert_eq!((back.key, back.reversed), (there.key, true));
        let uniflow = read(inner(), &ether(0x800, &ip4(A4, B4, 1, &[answer, 0, 0, 0, 0, 0, 0, 0])));
        assert_eq!((uniflow.key, uniflow.reversed), (key4(0, answer as u16 * 256, 1), false));
    }
    let there = read(biflow, &ether(0x86dd, &ip6(B6, A6, 58, &[128, 0, 0, 0])));
    let back = read(biflow, &ether(0x86dd, &ip6(A6, B6, 58, &[129, 0, 0, 0])));
    assert_eq!((there.key, there.reversed), (key6(0, 128 * 256, 58), true));
    assert_eq!((back.key, back.reversed), (there.key, false));
    // An error does not answer a request.
    assert_eq!(key(biflow, &ether(0x800, &ip4(A4, B4, 1, &[3, 4, 0, 0]))), key4(0, 3 * 256 + 4, 1));
}
