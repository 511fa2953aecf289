//! Plain forwarding: every good kind of frame, sorted or not.

use proptest::prelude::*;

use super::*;
use crate::{
    fib::{FibError, Lookup4},
    l3::input::{self, Dst, Packet, Parsed},
    tables::MacFilter,
};

#[test]
fn every_good_kind_is_rewritten_as_etherparse_would() {
    for frame in [good4(), good6(), tagged(good4()), tagged(good6()), with_options(good4())] {
        let ran = run(0, std::slice::from_ref(&frame));
        assert_eq!(ran.out[1], [routed(&frame, 1)]);
        assert_eq!((ran.dispatch, ran.drops), (Dispatch::All(1), vec![]));
    }
    let back = udp4([198, 19, 1, 2], [198, 18, 200, 2], 2);
    assert_eq!(run(1, std::slice::from_ref(&back)).out[0], [routed(&back, 0)]);
}

#[test]
fn a_burst_of_one_direction_is_never_sorted() {
    for frames in [
        (0..64).map(|i| if i % 3 == 0 { good6() } else { tagged(good4()) }).collect::<Vec<_>>(),
        (0..64).map(|i| if i % 3 == 0 { good6() } else { good4() }).collect(),
        vec![good6(); 64],
    ] {
        let mut rig = Rig::new(tables());
        let ran = rig.run(0, &frames);
        assert_eq!((ran.dispatch, ran.local), (Dispatch::All(1), 0));
        assert_eq!(ran.out[1], frames.iter().map(|f| routed(f, 1)).collect::<Vec<_>>());
        let mut nodes = Vec::new();
        Function::nodes(&rig.function, &mut |node| nodes.push((node.name, node.calls, node.vectors)));
        let want = [("l3-input", 1, 64), ("l3-lookup", 1, 64), ("l3-rewrite", 1, 64), ("ip-local", 0, 0)];
        assert_eq!(nodes, want);
    }
}

#[test]
fn a_mixed_burst_is_sorted_in_order() {
    let back = udp4([198, 19, 1, 2], [198, 18, 0, 1], 9);
    let hole = udp4([198, 18, 1, 2], [198, 51, 100, 1], 9);
    let ran = run(0, &[good4(), back.clone(), hole, tagged(good6()), good6(), back.clone()]);
    let far = [good4(), tagged(good6()), good6()].map(|f| routed(&f, 1)).to_vec();
    assert_eq!(ran.out, [vec![routed(&back, 0); 2], far]);
    assert_eq!((ran.dispatch, ran.drops, ran.local), (Dispatch::Split, vec![(DropReason::BlackHole, 1)], 0));
}

#[test]
fn several_adjacencies_of_one_port_need_no_sorting() {
    let mut tables = tables();
    tables.adjacencies[TO as usize] = Adjacency::forward(1, 1, NEIGHBOURS[0], PORT_MACS[1]);
    let back = udp4([198, 19, 1, 2], [198, 18, 0, 1], 9);
    let ran = Rig::new(tables).run(0, &[good4(), back.clone()]);
    assert_eq!(ran.dispatch, Dispatch::All(1));
    assert_eq!(ran.out[1][0], routed(&good4(), 1));
    assert_eq!((&ran.out[1][1][..6], &ran.out[1][1][12..]), (&NEIGHBOURS[0].0[..], &routed(&back, 0)[12..]));
}

#[test]
fn nothing_comes_of_nothing() {
    let ran = run(0, &[]);
    assert_eq!((ran.dispatch, ran.drops, ran.local), (Dispatch::Split, vec![], 0));
}

#[test]
fn new_tables_count_from_the_next_burst() {
    let mut shared = Shared::new(tables());
    let mut rig = Rig::new(tables());
    rig.function.tables = shared.reader();
    assert_eq!(rig.run(0, &[good4()]).dispatch, Dispatch::All(1));
    shared.publish(Tables::bare(&PORT_MACS));
    assert_eq!(rig.run(0, &[good4()]).drops, [(DropReason::NoRoute, 1)]);
    shared.publish(tables());
    assert!(!shared.reap());
    Function::due(&mut rig.function);
    assert!(shared.reap(), "an idle poll lets old tables go");
}

#[test]
fn only_frames_to_the_port_itself_are_routed_when_asked() {
    let mut tables = tables();
    (0..2).for_each(|port| tables.ports[port].macs = MacFilter::only(PORT_MACS[port]));
    let mut rig = Rig::new(tables);
    let broadcast = patched(good4(), &[(0, 0xff)]);
    let ran = rig.run(0, &[good4(), patched(good4(), &[(5, 7)]), broadcast]);
    assert_eq!(ran.out[1], [routed(&good4(), 1)]);
    assert_eq!(ran.drops, [(DropReason::LinkGroup, 1), (DropReason::NotOurMac, 1)]);
    // The same frame at the other port is another station's.
    assert_eq!(rig.run(1, &[good4()]).drops, [(DropReason::NotOurMac, 1)]);
}

#[test]
fn a_foreign_table_with_unknown_next_hops_routes_nothing() {
    #[derive(Debug)]
    struct Wild(u64);
    impl Lookup4 for Wild {
        fn lookup(&self, _: &[u32], next_hop: &mut [u64]) {
            next_hop.fill(self.0);
        }
        fn update(&mut self, _: &[(Prefix, Option<u32>)]) -> Result<(), FibError> {
            Ok(())
        }
    }
    for wild in [u64::MAX, 99, 1 << 30, 1 << 31, 1 << 32 | 3] {
        let tables = Tables { fib4: Arc::new(Wild(wild)), ..tables() };
        let ran = Rig::new(tables).run(0, &[good4(), good6()]);
        assert_eq!(ran.drops, [(DropReason::NoRoute, 1)]);
        assert_eq!(ran.out[1], [routed(&good6(), 1)]);
    }
}

#[test]
fn the_checksum_stays_right_through_all_its_values() {
    // The identification walks the checksum through every value; the wrap at 0xfeff is where RFC 1141 went wrong.
    let mut rig = Rig::new(tables());
    for id in (0..=u16::MAX).collect::<Vec<_>>().chunks(BURST) {
        let frames: Vec<_> = id
            .iter()
            .map(|id| {
                let [hi, lo] = id.to_be_bytes();
                patched(good4(), &[(18, hi), (19, lo)])
            })
            .collect();
        for frame in &rig.run(0, &frames).out[1] {
            let sum = packet::checksum::fold(packet::checksum::sum(&frame[14..34]));
            assert!(sum == 0xffff && frame[24..26] != [0xff, 0xff], "{frame:02x?}");
        }
    }
}

proptest! {
    #[test]
    fn a_changed_bit_gives_the_same_verdict_on_either_path(
        bit in 0usize..8 * 42, six: bool, tag: bool, src: u32, dst: u32, mac: bool, vlans: bool,
    ) {
        let mut frame = if six { good6() } else { udp4(src.to_be_bytes(), dst.to_be_bytes(), 64) };
        frame[bit / 8] ^= 1 << (bit % 8);
        let mut tables = tables();
        tables.ports[0].macs = if mac { MacFilter::only(PORT_MACS[0]) } else { MacFilter::UNICAST };
        tables.ports[0].vlans = vlans.then(|| {
            let mut vlans = Box::new([crate::tables::NO_INTERFACE; 4096]);
            vlans[42] = 0;
            vlans
        });
        let (port, macs) = (&tables.ports[0], tables.ports[0].macs);
        let frame = if tag { tagged(frame) } else { frame };
        let whole = input::parse(&frame, port, &tables.interfaces);
        let plain = |dst, len| Ok(Parsed::Packet(Packet { dst, len, tagged: false, spent: false, near: false }));
        if let Some((dst, len)) = input::plain_ip4(&frame, macs) {
            prop_assert_eq!(whole, plain(Dst::V4(dst), len));
        } else if let Some((dst, len)) = input::plain_ip6(&frame, macs) {
            prop_assert_eq!(whole, plain(Dst::V6(dst), len));
        } else if let Some((dst, len)) = input::tagged_ip4(&frame, port) {
            prop_assert_eq!(
                whole,
                Ok(Parsed::Packet(Packet { dst: Dst::V4(dst), len, tagged: true, spent: false, near: false }))
            );
        } else if let Ok(Parsed::Packet(packet)) = whole {
            let rough = packet.tagged || packet.spent || packet.near;
            prop_assert!(rough || frame[14] & 0xf > 5 || frame[38] >= 0xfe);
        }
    }
}
