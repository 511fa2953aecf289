//! A network with one access link.

use super::*;

#[test]
fn a_network_with_one_access_link_has_one_place_for_what_comes_out() {
    let mut config = config();
    config.networks[0].access.truncate(1);
    let mut rig = Rig::new(&config);
    let unknown = tunnelled("192.0.2.2", 7, &inner(NEAR, FAR));
    let group = tunnelled("192.0.2.2", 7, &inner([0xff; 6], FAR));
    // Asked for, and then remembered: the same each time, and each time counted.
    for round in 1..=3 {
        let ran = rig.run(UNDER, &[unknown.clone(), group.clone()]);
        assert_eq!((ran.dispatch, ran.originated), (Dispatch::All(0), 0));
        assert_eq!(ran.out[0], [inner(NEAR, FAR), inner([0xff; 6], FAR)]);
        assert_eq!(rig.counter("vxlan-flooded"), 2 * round);
    }
    // A bad frame among them is dropped, and not counted as flooded.
    let strange = tunnelled("192.0.2.2", 9, &inner(NEAR, FAR));
    let ran = rig.run(UNDER, &[unknown.clone(), strange]);
    assert_eq!((ran.lens(), ran.drops.total(), rig.counter("vxlan-flooded")), (vec![1, 0, 0, 0], 1, 7));
    // The station turns out to be behind the tunnel itself: split horizon, at once.
    rig.run(UNDER, &[tunnelled("192.0.2.3", 7, &inner(FAR, NEAR))]);
    assert_eq!(rig.run(UNDER, &[unknown]).dropped(), [(DropReason::SamePort, 1)]);
}
