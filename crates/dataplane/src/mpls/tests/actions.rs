use super::*;

#[test]
fn the_bytes_of_rfc_3032_are_swapped_bit_by_bit() {
    // Label 16, EXP 5, bottom, TTL 64 becomes label 17, EXP 5, bottom, TTL 63.
    let before = [&[2, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 7, 0x88, 0x47, 0x00, 0x01, 0x0b, 0x40][..], &[0xee; 50]].concat();
    let after = [&[2, 0, 0, 0, 9, 1, 2, 0, 0, 0, 1, 1, 0x88, 0x47, 0x00, 0x01, 0x1b, 0x3f][..], &[0xee; 50]].concat();
    let mut function = mpls();
    let ran = run(&mut function, 0, &vec![before; BURST]);
    assert_eq!((ran.dispatch, &ran.out[1]), (Dispatch::All(1), &vec![after; BURST]));
    let mut nodes = Vec::new();
    Function::<HeapBuf>::nodes(&function, &mut |node| nodes.push((node.name, node.calls, node.vectors)));
    assert_eq!(nodes, [("mpls-input", 1, 64), ("mpls-lookup", 1, 64), ("mpls-rewrite", 1, 64), ("stub", 0, 0)]);
}

#[test]
fn every_action_does_what_it_says() {
    let (p4, p6) = (ip4(9, 0), ip6(9, 0));
    let (d4, d6) = (ip4(63, 0), ip6(63, 0));
    let below = (500, 2, 8);
    // Labels and packet in; labels and packet out by port 1.
    type Case<'a> = (&'a [(u32, u8, u8)], &'a [u8], &'a [(u32, u8, u8)], &'a [u8]);
    let cases: &[Case<'_>] = &[
        (&[(18, 7, 64)], &p4, &[(0xf_ffff, 7, 63)], &p4),
        (&[(16, 0, 2)], &p6, &[(17, 0, 1)], &p6),
        (&[(16, 0, 255)], &[], &[(17, 0, 254)], &[]),
        (&[(16, 3, 64), below], &p4, &[(17, 3, 63), below], &p4),
        (&[(16, 3, 64), below, below], &p4, &[(17, 3, 63), below, below], &p4),
        (&[(39, 3, 64)], &p4, &[(0, 3, 63)], &p4),
        // Pop: the TTL comes up, EXP does not.
        (&[(20, 7, 64)], &p4, &[], &d4),
        (&[(20, 7, 64)], &p6, &[], &d6),
        (&[(20, 7, 5)], &p4, &[], &ip4(4, 0)),
        (&[(25, 1, 64)], &p4, &[], &d4),
        (&[(20, 7, 64), below], &p4, &[(500, 2, 63)], &p4),
        // A label that begins like an IP header is still a label.
        (&[(20, 7, 64), (0x4_5000, 2, 8)], &p4, &[(0x4_5000, 2, 63)], &p4),
        // A path's own labels go on top.
        (&[(23, 3, 64)], &p4, &[(100, 3, 63), (200, 3, 63), (30, 3, 63)], &p4),
        (&[(23, 3, 64), below], &p4, &[(100, 3, 63), (200, 3, 63), (30, 3, 63), below], &p4),
        (&[(24, 3, 64)], &p4, &[(100, 3, 63), (200, 3, 63)], &p4),
        (&[(24, 3, 64), below], &p4, &[(100, 3, 63), (200, 3, 63), below], &p4),
        // Explicit null above the bottom, and lookup: the next label decides, with its own EXP and the TTL of the first.
        (&[(0, 1, 64), (16, 4, 7)], &p4, &[(17, 4, 63)], &p4),
        (&[(2, 1, 64), (21, 0, 9), (20, 4, 7)], &p4, &[], &d4),
        (&[(21, 1, 64), (16, 4, 1), below], &p4, &[(17, 4, 63), below], &p4),
    ];
    for (labels, packet, want, after) in cases {
        let ran = run(&mut mpls(), 0, &[arriving(labels, packet)]);
        assert_eq!(ran.out[1], [leaving(1, want, after)], "{labels:?}");
        assert_eq!((ran.dispatch, dropped(&ran)), (Dispatch::All(1), vec![]));
    }
}

#[test]
fn what_ends_here_is_looked_up_with_the_ttl_of_its_label() {
    for (label, packet, after) in [
        (0, ip4(9, 1), ip4(64, 1)),
        (2, ip6(9, 1), ip6(64, 1)),
        (21, ip4(9, 1), ip4(64, 1)),
        (21, ip6(9, 1), ip6(64, 1)),
    ] {
        let want = arriving(&[], &after);
        for labels in [&[(label, 5, 64)][..], &[(21, 1, 64), (0, 2, 3), (label, 5, 9)]] {
            let mut function = mpls();
            let ran = run(&mut function, 0, &[arriving(labels, &packet)]);
            assert_eq!((ran.dispatch, &ran.out[1]), (Dispatch::All(1), &vec![want.clone()]));
            assert_eq!((function.inner.seen, function.inner.node.vectors), (vec![want.clone()], 1));
        }
        // Used up: not for this function to say.
        let ran = run(&mut mpls(), 0, &[arriving(&[(label, 0, 1)], &packet)]);
        assert_eq!(ran.drops.total(), 0);
        // The tag stays for the inner function to judge.
        let tagged = |labels: &[_], packet: &[u8]| frame(MACS[2], SENDER, Some(0x6005), labels, packet);
        let ran = run(&mut mpls(), 2, &[tagged(&[(label, 0, 64)], &packet)]);
        assert_eq!(ran.out[1], [tagged(&[], &after)]);
    }
}

#[test]
fn each_fault_moves_its_own_counter_alone() {
    let p4 = ip4(9, 0);
    let with = |labels: &[(u32, u8, u8)]| arriving(labels, &p4);
    let mut upstream = with(&[(16, 0, 64)]);
    upstream[13] = 0x48;
    let mut cases = vec![
        (upstream, DropReason::NotIp),
        (frame(MacAddr([1, 0, 0x5e, 0, 0, 1]), SENDER, None, &[(16, 0, 64)], &p4), DropReason::LinkGroup),
        (with(&[(15, 0, 64)]), DropReason::MplsReserved),
        (with(&[(19, 0, 64)]), DropReason::MplsNoLabel),
        (with(&[(0xf_ffff, 0, 64)]), DropReason::MplsNoLabel),
        (with(&[(21, 0, 64), (19, 0, 64)]), DropReason::MplsNoLabel),
        (with(&[(22, 0, 64)]), DropReason::BlackHole),
        (with(&[(16, 0, 1)]), DropReason::MplsTtl),
        (with(&[(20, 0, 0)]), DropReason::MplsTtl),
        (with(&[(21, 0, 1), (16, 0, 64)]), DropReason::MplsTtl),
        (arriving(&[(20, 0, 64)], &[0x55; 40]), DropReason::MplsPayload),
        (arriving(&[(21, 0, 64)], &[0x00; 40]), DropReason::MplsPayload),
        (arriving(&[(0, 0, 64)], &ip6(9, 0)), DropReason::MplsPayload),
        (arriving(&[(2, 0, 64)], &p4), DropReason::MplsPayload),
        (with(&[(21, 0, 64); 9]), DropReason::MplsStack),
        (arriving(&[(16, 0, 64)], &[0; 100])[..14].to_vec(), DropReason::MplsStack),
        (with(&[(56, 0, 64)]), DropReason::NoNeighbour),
        (with(&[(57, 0, 64)]), DropReason::NoNeighbour),
        (with(&[(58, 0, 64)]), DropReason::MplsPayload),
        (with(&[(59, 0, 64)]), DropReason::BlackHole),
        (with(&[(63, 0, 64)]), DropReason::NoPort),
        (with(&[(64, 0, 64)]), DropReason::MplsNoLabel),
        (with(&[(149, 0, 64)]), DropReason::NoRoute),
        (arriving(&[(32, 0, 64)], &[0x45; 97]), DropReason::Mtu),
        (arriving(&[(33, 0, 64)], &[0x45; 101]), DropReason::Mtu),
    ];
    for label in (1..16).filter(|label| *label != 2) {
        cases.push((with(&[(label, 0, 64)]), DropReason::MplsReserved));
        cases.push((with(&[(0, 0, 64), (label, 0, 64)]), DropReason::MplsReserved));
    }
    for (bytes, reason) in cases {
        let good = with(&[(16, 0, 64)]);
        let ran = run(&mut mpls(), 0, &[good.clone(), bytes.clone()]);
        assert_eq!(dropped(&ran), [(reason, 1)], "{bytes:02x?}");
        assert_eq!(ran.out[1], [leaving(1, &[(17, 0, 63)], &p4)]);
        assert_eq!(dropped(&run(&mut mpls(), 0, &vec![bytes; 3])), [(reason, 3)]);
    }
    assert_eq!(dropped(&run(&mut mpls(), 3, &[with(&[(16, 0, 64)])])), [(DropReason::NoPort, 1)]);
    // What just fits, and the eighth label.
    let fits = [arriving(&[(32, 0, 64)], &[0x45; 96]), arriving(&[(33, 0, 64)], &[0x45; 100])];
    assert_eq!(run(&mut mpls(), 0, &fits).drops.total(), 0);
    let eight = [[(21, 0, 64); 7].as_slice(), &[(16, 6, 64)]].concat();
    assert_eq!(run(&mut mpls(), 0, &[with(&eight)]).out[1], [leaving(1, &[(17, 6, 63)], &p4)]);
}

#[test]
fn tags_are_checked_kept_taken_off_and_put_on() {
    let p4 = ip4(9, 0);
    let tagged = |dst, tci, label| frame(dst, SENDER, tci, &[(label, 1, 64)], &p4);
    let out = |tci, label| frame(PEERS[1], MACS[1], tci, &[(label, 1, 63)], &p4);
    // Without VLAN interfaces any tag is kept.
    for (tag, label, want) in [
        (Some(0xa02a), 16, out(Some(0xa02a), 17)),
        (Some(0xa02a), 30, out(Some(0xa123), 31)),
        (None, 30, out(Some(0x0123), 31)),
        (Some(0xa02a), 31, out(None, 30)),
        (None, 31, out(None, 30)),
        (Some(0xb02a), 40, frame(PEERS[1], MACS[1], Some(0xb123), &[], &ip4(63, 0))),
        (None, 40, frame(PEERS[1], MACS[1], Some(0x0123), &[], &ip4(63, 0))),
        (Some(0xa02a), 20, frame(PEERS[1], MACS[1], Some(0xa02a), &[], &ip4(63, 0))),
    ] {
        assert_eq!(run(&mut mpls(), 0, &[tagged(MACS[0], tag, label)]).out[1], [want], "{tag:?} {label}");
    }
    let frames = [(MACS[2], Some(5)), (MACS[2], None), (MACS[2], Some(6)), (MACS[0], Some(5)), (MACS[0], None)]
        .map(|(dst, tci)| tagged(dst, tci, 16));
    let ran = run(&mut mpls(), 2, &frames);
    assert_eq!(ran.out[1], [out(Some(5), 17), out(None, 17)]);
    assert_eq!(dropped(&ran), [(DropReason::NotOurMac, 2), (DropReason::VlanUnknown, 1)]);
}
