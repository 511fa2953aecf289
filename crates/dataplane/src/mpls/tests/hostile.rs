use proptest::prelude::*;

use super::*;

#[test]
fn every_truncation_is_forwarded_or_counted_as_what_it_is() {
    let kinds: [(u32, usize, Vec<u8>); 6] = [
        (16, 0, ip4(64, 0)),
        (20, 20, ip4(64, 0)),
        (20, 40, ip6(64, 0)),
        (0, 20, ip4(64, 0)),
        (2, 40, ip6(64, 0)),
        (21, 20, ip4(64, 0)),
    ];
    for (label, header, packet) in kinds {
        for tag in [None, Some(7)] {
            for labels in [&[(label, 0, 64)][..], &[(21, 0, 64), (0, 0, 64), (label, 0, 64)]] {
                let whole = frame(MACS[0], SENDER, tag, labels, &packet);
                let stack = 14 + if tag.is_some() { 4 } else { 0 };
                let payload = stack + 4 * labels.len();
                for len in 0..whole.len() {
                    let mut function = mpls();
                    let ran = run(&mut function, 0, &[whole[..len].to_vec()]);
                    let got = (function.inner.seen.len(), dropped(&ran).first().map(|d| d.0));
                    if len < stack {
                        assert_eq!(got.0, 1, "{len} of {whole:02x?}");
                    } else if len < payload {
                        assert_eq!(got, (0, Some(DropReason::MplsStack)), "{len} of {whole:02x?}");
                    } else if len < payload + header {
                        assert_eq!(got, (0, Some(DropReason::MplsPayload)), "{len} of {whole:02x?}");
                    } else {
                        assert_eq!(got.0, usize::from(matches!(label, 0 | 2 | 21)), "{len} of {whole:02x?}");
                    }
                }
            }
        }
    }
}

#[test]
fn no_room_in_front_is_a_drop() {
    let (bytes, pool) = (arriving(&[(23, 0, 64)], &[0x45; 200]), HeapPool::new(1, 512));
    let mut buf = pool.frame(&bytes[128..]).unwrap();
    assert!(buf.prepend(128));
    buf.data_mut().copy_from_slice(&bytes);
    let tables = tables();
    assert_eq!(rewrite::any(&mut buf, &tables, &tables.ports[0]), Err(DropReason::NoBuffer));
}

#[test]
fn the_checksum_stays_right_whatever_the_ttls() {
    let mut function = mpls();
    for label in [20, 0] {
        for outer in (2..=255).step_by(7) {
            let frames: Vec<_> = (0..64).map(|ttl| arriving(&[(label, 0, outer)], &ip4(ttl * 4, 1))).collect();
            let ttl = outer - u8::from(label == 20);
            let want: Vec<_> = (0..64).map(|_| ip4(ttl, 1)).collect();
            let got: Vec<_> = run(&mut function, 0, &frames).out[1].iter().map(|f| f[14..].to_vec()).collect();
            assert_eq!(got, want);
        }
    }
}

/// Labels that mean something more often than not.
fn any_label() -> impl Strategy<Value = (u32, u8, u8)> {
    (prop_oneof![0u32..66, Just(149), any::<u32>().prop_map(|l| l >> 12)], 0u8..8, prop_oneof![0u8..4, any::<u8>()])
}

fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let payload =
        prop_oneof![Just(ip4(9, 0)), Just(ip6(9, 1)), Just(ip4(9, 3)), prop::collection::vec(any::<u8>(), 0..120)];
    let labels = prop::collection::vec(any_label(), 0..10);
    (labels, payload, prop::option::weighted(0.2, any::<u16>()), any::<prop::sample::Index>(), 0u8..10).prop_map(
        |(labels, payload, tag, at, change)| {
            let mut bytes = frame(MACS[0], SENDER, tag, &labels, &payload);
            match change {
                0 => bytes.truncate(at.index(bytes.len())),
                1 => {
                    let i = at.index(bytes.len() * 8);
                    bytes[i / 8] ^= 1 << (i % 8);
                }
                _ => {}
            }
            bytes
        },
    )
}

proptest! {
    #[test]
    fn hostile_frames_never_panic_and_are_counted(frames in prop::collection::vec(any_frame(), 1..BURST), ingress in 0usize..3) {
        run(&mut mpls(), ingress, &frames);
    }

    #[test]
    fn random_bytes_never_panic_and_are_counted(
        mut frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 1..8),
        kind in prop::sample::select(vec![[0x88u8, 0x47], [0x88, 0x48], [0x81, 0]]),
    ) {
        for frame in &mut frames {
            if let Some([mac, .., a, b]) = frame.get_mut(..14) {
                *mac &= 0xfe;
                [*a, *b] = kind;
            }
        }
        run(&mut mpls(), 0, &frames);
    }

    #[test]
    fn the_fast_path_and_the_slow_one_agree(bytes in any_frame(), same: bool, ingress in 0usize..2) {
        let pool = HeapPool::new(1, 2048);
        let mut slow = pool.frame(&bytes).unwrap();
        let tables = tables();
        if input::kind(&bytes) == FrameKind::Other {
            return Ok(());
        }
        let fate = rewrite::any(&mut slow, &tables, &tables.ports[ingress]);
        let frames = if same { vec![bytes] } else { vec![bytes, vec![0; 14]] };
        let mut function = mpls();
        let ran = run(&mut function, ingress, &frames);
        match fate {
            Ok(LabelOutcome::Port(port)) if usize::from(port) < 3 => {
                prop_assert_eq!(ran.out[usize::from(port)].last().map(Vec::as_slice), Some(slow.data()));
            }
            Ok(LabelOutcome::Inner) => prop_assert_eq!(&function.inner.seen[0][..], slow.data()),
            Ok(_) => prop_assert_eq!(ran.drops[DropReason::NoPort], 1),
            Err(reason) => prop_assert_eq!(ran.drops[reason], 1),
        }
    }
}
