//! Frames of any bytes, frames cut anywhere, and what must hold of all of them.

use proptest::{collection::vec, prelude::*, sample::Index};

use super::build::*;
use crate::{
    decode::{seen::Seen, *},
    packed::{Key4, Key6},
    Addresses, Distinguish, Key,
};

/// One of the kinds with some of its bytes changed.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let kinds: Vec<Vec<u8>> = kinds().into_iter().map(|(_, frame)| frame).collect();
    (any::<Index>(), vec((any::<Index>(), any::<u8>()), 0..4), any::<Option<Index>>()).prop_map(
        move |(kind, changes, end)| {
            let mut frame = kind.get(&kinds).clone();
            for (at, byte) in changes {
                *at.get_mut(&mut frame) = byte;
            }
            frame.truncate(end.map_or(frame.len(), |end| end.index(frame.len() + 1)));
            frame
        },
    )
}

/// A plain packet of any addresses and ports, and much around it.
fn any_plain() -> impl Strategy<Value = Vec<u8>> {
    (any::<[[u8; 16]; 2]>(), any::<[u16; 2]>(), any::<[u8; 3]>(), 0..40usize, any::<bool>()).prop_map(
        |([a, b], [sport, dport], [tos, flags, pick], more, six)| {
            let upper = match pick % 3 {
                0 => [tcp(sport, dport, flags), vec![7; more]].concat(),
                _ => udp(
                    sport,
                    if pick % 3 == 1 { dport } else { [4789, 2152][usize::from(pick & 1)] },
                    &vec![pick; more],
                ),
            };
            let protocol = if pick % 3 == 0 { 6 } else { 17 };
            if six {
                return ether(0x86dd, &ip6(a, b, protocol, &upper));
            }
            let [a, b] = [a, b].map(|long| *long.first_chunk::<4>().unwrap());
            let mut frame = ether(0x800, &ip4(a, b, protocol, &upper));
            (frame[15], frame[20]) = (tos, [0, 0x40, 0x20, 0x80][usize::from(pick >> 6)]);
            frame
        },
    )
}

/// The frame with source and destination swapped, for kinds without tunnels.
fn turned(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let (addresses, len) = if frame[12..14] == [8, 0] { (26, 4) } else { (22, 16) };
    frame[addresses..addresses + 2 * len].rotate_left(len);
    let ports = addresses + 2 * len;
    if frame.len() >= ports + 4 {
        frame[ports..ports + 4].rotate_left(2);
    }
    frame
}

/// The fast path and the general path must read a plain frame the same way.
fn slowly(decoder: &Decoder, frame: &[u8]) -> Decoded {
    let seen = Seen::new(frame, frame.len() as u32, 1);
    match frame.get(12..14) {
        Some([8, 0]) => decoder.ip4(&frame[14..], seen),
        Some([0x86, 0xdd]) => decoder.ip6(&frame[14..], seen),
        _ => decoder.layered(frame, seen),
    }
}

fn without_ports(key: Key) -> Key {
    Key { sport: 0, dport: 0, ..key }
}

#[test]
fn a_frame_cut_short_is_the_same_flow_or_none() {
    for (name, frame) in kinds() {
        // Without biflows: the direction of a biflow depends on the ports.
        for decoder in decoders().into_iter().filter(|decoder| !decoder.spec().biflow) {
            let Some(whole) = ip(decoder.decode(&frame, 1)) else { continue };
            let DecodeSpec { mpls, distinguish, .. } = *decoder.spec();
            let outer = Decoder::new(DecodeSpec { mpls, distinguish, ..DecodeSpec::default() });
            for len in 0..frame.len() {
                let Some(cut) = ip(decoder.decode(&frame[..len], 1)) else { continue };
                assert_eq!(cut.bytes, len as u32);
                if [whole.key, without_ports(whole.key)].contains(&cut.key) {
                    assert!([0, whole.tcp_flags].contains(&cut.tcp_flags) && cut.tos == whole.tos, "{name} {len}");
                } else if ["vxlan", "gre", "gtp-u", "ip in"].iter().any(|tunnel| name.starts_with(tunnel)) {
                    // Before the header of the tunnel ends.
                    assert_eq!(Some(cut), ip(outer.decode(&frame[..len], 1)), "{name} {len}");
                } else {
                    // Within the extension headers.
                    assert_eq!((name, cut.key.sport, cut.key.dport), ("extensions", 0, 0), "{len}");
                    assert!([0, 43, 44].contains(&cut.key.protocol));
                    assert_eq!(cut.key.addresses, whole.key.addresses);
                }
            }
        }
    }
}

#[test]
fn the_plain_kinds_are_plain() {
    let decoder = Decoder::new(DecodeSpec::default());
    let seen = |frame: &[u8]| Seen::new(frame, frame.len() as u32, 0);
    for (name, frame) in kinds() {
        assert_eq!(
            decoder.plain4(&frame, seen(&frame)).is_some(),
            ["udp", "tcp", "vxlan", "gtp-u"].contains(&name),
            "{name}"
        );
        let six = ["tcp6", "udp6", "vxlan6", "gtp-u, extended"].contains(&name);
        assert_eq!(decoder.plain6(&frame, seen(&frame)).is_some(), six, "{name}");
    }
    let frame = |name: &str| kinds().into_iter().find(|(kind, _)| *kind == name).unwrap().1;
    let (tunnel, user) = (frame("vxlan"), frame("gtp-u"));
    for decoder in decoders() {
        let DecodeSpec { vxlan, gtpu, distinguish, .. } = *decoder.spec();
        let looks = vxlan == Layer::Inner || distinguish == Distinguish::Vni;
        assert_eq!(decoder.plain4(&tunnel, seen(&tunnel)).is_none(), looks);
        assert_eq!(decoder.plain4(&user, seen(&user)).is_none(), gtpu == Layer::Inner);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes(frame in vec(any::<u8>(), 0..200), kind in 0..8usize, port: u8) {
        let mut frame = frame;
        if frame.len() > 14 {
            let kind = [0x800u16, 0x86dd, 0x8100, 0x88a8, 0x8847, 0x8864, 0x9100, 0x1234][kind];
            frame[12..14].copy_from_slice(&kind.to_be_bytes());
        }
        for decoder in decoders() {
            let read = ip(decoder.decode(&frame, port));
            prop_assert!(read.is_none_or(|read| read.bytes == frame.len() as u32 && read.ip_bytes <= read.bytes));
        }
    }

    #[test]
    fn plain_or_not_it_is_read_the_same(frame in prop_oneof![mutated(), any_plain()]) {
        for decoder in decoders() {
            prop_assert_eq!(decoder.decode(&frame, 1), slowly(&decoder, &frame));
        }
    }

    #[test]
    fn a_tag_changes_nothing_but_the_scope(frame in prop_oneof![mutated(), any_plain()], vid in 0..4096u16) {
        if frame.len() >= 14 && ![[0x81, 0], [0x88, 0xa8], [0x91, 0]].contains(frame[12..].first_chunk().unwrap()) {
            for decoder in decoders() {
                let tagged = tagged(&frame, &[(0x8100, vid)]);
                let (a, b) = (decoder.decode(&frame, 1), decoder.decode(&tagged, 1));
                prop_assert_eq!(std::mem::discriminant(&a), std::mem::discriminant(&b));
                if let (Some(a), Some(b)) = (ip(a), ip(b)) {
                    let scope = match decoder.spec().distinguish {
                        Distinguish::Vlan if vid != 0 => Some(vid.into()),
                        Distinguish::Vlan => a.key.scope.or(Some(0)),
                        _ => a.key.scope,
                    };
                    prop_assert_eq!(Ip { bytes: a.bytes + 4, key: Key { scope, ..a.key }, ..a }, b);
                }
            }
        }
    }

    #[test]
    fn directions_join(frame in any_plain()) {
        let spec = DecodeSpec { biflow: true, ..DecodeSpec::default() };
        let (decoder, uniflow) = (Decoder::new(spec), Decoder::new(DecodeSpec { biflow: false, ..spec }));
        let there = ip(decoder.decode(&frame, 0)).unwrap();
        let back = ip(decoder.decode(&turned(&frame), 1)).unwrap();
        prop_assert_eq!((there.key, there.tcp_flags), (back.key, back.tcp_flags));
        let one = ip(uniflow.decode(&frame, 0)).unwrap();
        let src = (one.key.addresses.src(), one.key.sport);
        let dst = (one.key.addresses.dst(), one.key.dport);
        prop_assert_eq!((there.reversed, back.reversed), (src > dst, dst > src));
        prop_assert_eq!((there.key.addresses.src(), there.key.sport), src.min(dst));
        // Reversing the key of the reversed frame gives the key of the frame.
        let own = match (one.key.addresses, there.reversed) {
            (_, false) => there.key,
            (Addresses::V4 { .. }, _) => Key4::from_key(&there.key).unwrap().flipped().into(),
            (Addresses::V6 { .. }, _) => Key6::from_key(&there.key).unwrap().flipped().into(),
        };
        prop_assert_eq!(own, one.key);
    }
}
