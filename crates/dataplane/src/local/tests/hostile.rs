//! Every truncation, and bytes from nowhere.

use proptest::prelude::*;

use super::*;

/// One frame of each kind that says something to us.
fn kinds() -> Vec<Vec<u8>> {
    let all = vec![
        arp_request(HOST4, US4),
        arp_frame(2, OWN[0], (HOST, HOST4), (OWN[0], US4)),
        solicitation(host6(), us6()),
        solicitation(ip6("::"), us6()),
        nd_frame((OWN[0], HOST), (host6(), us6()), (136, 0x60), host6(), Some((2, HOST))),
        bytes!(from6(ALL_NODES_MAC, HOST, head6(ip6("fe80::2"), ip6("ff02::2"), 255)).icmpv6_raw(133, 0, [0; 4]), &[]),
        echo4(HOST4, US4),
        echo6(host6(), us6()),
        udp4(HOST4, US4, 9),
        udp6(host6(), us6(), 9),
    ];
    let with_tags = all.iter().map(|frame| tagged(frame.clone(), [0x20, 7])).collect::<Vec<_>>();
    [all, with_tags].concat()
}

#[test]
fn no_truncated_frame_is_answered_or_believed() {
    for frame in kinds() {
        let mut rig = Rig::new();
        rig.deliver(&frame, AT);
        assert!(rig.out.punted + rig.out.originated > 0, "{frame:x?}");
        let mut rig = Rig::new();
        for len in 0..frame.len() {
            assert!(rig.deliver(&frame[..len], AT).is_empty(), "{len} of {frame:x?}");
            assert_eq!(rig.drops().iter().map(|(_, n)| n).sum::<u64>(), 1);
        }
        assert_eq!((rig.learned(), rig.out.punted, rig.counts()), (vec![], 0, vec![]));
    }
}

#[test]
fn a_truncated_frame_is_refused_and_held_like_any_other() {
    for frame in kinds() {
        let mut rig = Rig::new();
        for len in 0..frame.len() {
            rig.refuse(&frame[..len], Fault::TimeExceeded);
            rig.resolve(&frame[..len], FAR4, GLEAN);
            rig.now += HZ;
            rig.poll();
            let _ = rig.out.ports.iter_mut().map(|port| rig.sent += port.drain(..).len() as u64).count();
            rig.balance();
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_survived_and_accounted_for(
        steps in prop::collection::vec(
            (0usize..20, prop::collection::vec((0usize..110, any::<u8>()), 0..4), 0usize..140, 0u8..8, 0u64..2_000_000),
            1..80,
        ),
        noise in prop::collection::vec(any::<u8>(), 0..120),
        forward: bool,
    ) {
        let (mut rig, kinds) = (Rig::new(), kinds());
        let everywhere = |bits: u64| IpAddr::V4(Ipv4Addr::from([10, 1, 0, bits as u8]));
        for (kind, changes, len, step, ticks) in steps {
            let mut bytes = if kind == 0 { noise.clone() } else { kinds[kind].clone() };
            for (at, value) in changes {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
            if step & 1 == 0 {
                bytes.resize(len, 0xee);
            }
            let frame = rig.frame(&bytes);
            let Rig { local, tables, out, now, .. } = &mut rig;
            let at = [AT, TAGGED_AT, Ingress { port: 1, interface: 1 }, Ingress { port: 7, interface: 77 }][kind % 4];
            match step {
                0..=3 => local.deliver(frame, at, tables, out, *now),
                4 => local.refuse(frame, DropReason::Mtu, Fault::TooBig(len as u16), at, tables, out, *now),
                5 => local.refuse(frame, DropReason::NoRoute, Fault::HostUnreachable, at, tables, out, *now),
                6 => local.resolve(frame, everywhere(ticks), GLEAN, at, tables, out, *now),
                _ => local.resolve(frame, IpAddr::V6(host6()), UNRESOLVED, at, tables, out, *now),
            }
            rig.now += ticks;
            let burst = rig.poll();
            prop_assert!(burst.is_none_or(|(port, frames)| port < 2 && frames.len() <= 64));
            for port in 0..2 {
                rig.sent += rig.out.ports[port].drain(..).count() as u64;
            }
            rig.balance();
            rig.learned();
        }
        if forward {
            rig.tables = Tables::bare(&OWN);
            while rig.local.held() > 0 {
                rig.now += HZ;
                rig.poll();
            }
        } else {
            rig.local.release();
            rig.poll();
            rig.out.ports.iter_mut().for_each(Burst::clear);
        }
        rig.out.drops.empty();
        prop_assert_eq!((rig.local.held(), rig.pool.in_use()), (0, 0));
    }
}
