//! Frames into the flow logger's decoder, read in every way: nothing panics, and directions, tags and keys hold together.
#![no_main]

use flow::{
    decode::{DecodeSpec, Decoded, Decoder, Layer},
    Distinguish, Facts, Key, Key4, Key6, Link, PacketDetails, MOST_LABELS, MOST_TAGS,
};
use libfuzzer_sys::fuzz_target;

/// Key, reversed, and the key turned around.
fn ip(decoded: Decoded, frame: &[u8]) -> Option<(Key, bool, Key)> {
    let (key, turned, facts): (Key, Key, _) = match decoded {
        Decoded::Ip4(p) => {
            assert_eq!(Key4::from_key(&p.key.into()).map(Key4::flipped), Some(p.key.flipped()));
            (p.key.into(), p.key.flipped().into(), Facts::from(p.facts))
        }
        Decoded::Ip6(p) => {
            assert_eq!(Key6::from_key(&p.key.into()), Some(p.key));
            (p.key.into(), p.key.flipped().into(), Facts::from(p.facts))
        }
        Decoded::NotIp(_) | Decoded::Malformed => return None,
    };
    assert!(facts.ip_bytes <= facts.frame_bytes && facts.frame_bytes as usize == frame.len(), "{facts:?}");
    Some((key, facts.reversed, turned))
}

fuzz_target!(|data: &[u8]| {
    let Some((&[choice, port], frame)) = data.split_first_chunk() else { return };
    let layer = |bit| if choice & bit == 0 { Layer::Outer } else { Layer::Inner };
    let distinguish = [Distinguish::None, Distinguish::Vlan, Distinguish::Vni, Distinguish::Label];
    let spec = DecodeSpec {
        mpls: layer(1),
        vxlan: layer(2),
        distinguish: distinguish[usize::from(choice >> 2 & 3)],
        gre: layer(16),
        ipip: layer(32),
        gtpu: layer(64),
        biflow: false,
        ..DecodeSpec::default()
    };
    let uniflow = Decoder::new(spec).decode(frame, port);
    let both = Decoder::new(DecodeSpec { biflow: true, ..spec }).decode(frame, port);
    assert_eq!(std::mem::discriminant(&uniflow), std::mem::discriminant(&both));
    if let (Some((own, false, _)), Some((key, reversed, turned))) = (ip(uniflow, frame), ip(both, frame)) {
        let theirs = if reversed { turned } else { key };
        assert!(key.addresses.src() <= key.addresses.dst());
        assert_eq!((theirs.addresses, theirs.sport, theirs.protocol), (own.addresses, own.sport, own.protocol));
        assert_eq!((key.port, key.scope), (port & !1, own.scope));
    } else {
        assert!(ip(uniflow, frame).is_none());
    }
    // Its link layer, and the details of any part of it as a packet.
    let link = Link::read(frame);
    assert!(link.tags().len() <= MOST_TAGS && link.labels().len() <= MOST_LABELS);
    assert_eq!(serde_json::from_str::<Link>(&serde_json::to_string(&link).unwrap()).unwrap(), link);
    let (_, packet) = Decoder::new(spec).decode_with_packet(frame, frame.len() as u32, port);
    let _ = PacketDetails::read(frame, packet);
    // A tag before the first changes nothing but the VLAN; a fifth is one too many.
    if frame.len() >= 14 && ![[0x81, 0], [0x88, 0xa8], [0x91, 0]].contains(&[frame[12], frame[13]]) {
        let tagged = [&frame[..12], &[0x81, 0, 0, 0], &frame[12..]].concat();
        let tagged = Decoder::new(spec).decode(&tagged, port);
        // A VLAN of zero is one.
        let same = |key: Key| if spec.distinguish == Distinguish::Vlan { Key { scope: None, ..key } } else { key };
        assert_eq!(
            ip(uniflow, frame).map(|ip| same(ip.0)),
            match tagged {
                Decoded::Ip4(p) => Some(same(p.key.into())),
                Decoded::Ip6(p) => Some(same(p.key.into())),
                _ => None,
            }
        );
    }
});
