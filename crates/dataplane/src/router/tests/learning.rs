//! Neighbours that are learned, age and are asked for.

use std::{net::IpAddr, sync::mpsc};

use super::*;
use crate::{model::Event, router::NeighbourState, tables::ADJ_LOCAL};

/// A router with a queue of events and a clock.
struct Scene {
    router: Router,
    events: (mpsc::SyncSender<Event>, mpsc::Receiver<Event>),
    now: Duration,
}

impl Scene {
    fn new(lines: &[&str]) -> Self {
        let mut router = router();
        apply(&mut router, lines).unwrap();
        Self { router, events: mpsc::sync_channel(4096), now: Duration::ZERO }
    }

    fn hear(&self, interface: u16, addr: &str, mac: u8) {
        let (addr, mac) = (addr.parse().unwrap(), MacAddr([2, 0, 0, 0, 0, mac]));
        self.events.0.try_send(Event::Neighbour { interface, addr, mac }).unwrap();
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.router.tick(self.now, &self.events.1);
    }

    fn states(&self) -> Vec<(String, NeighbourState)> {
        self.router.neighbours().map(|n| (n.addr.to_string(), n.state)).collect()
    }

    /// The seconds, out of `seconds`, in which this address was asked for.
    fn asked(&mut self, addr: &str, seconds: u32) -> Vec<u32> {
        let addr: IpAddr = addr.parse().unwrap();
        let round = |scene: &Self| scene.router.tables().probe_round;
        let mut asked = Vec::new();
        for second in 0..seconds {
            let before = round(self);
            self.pass(SECOND);
            if round(self) > before && self.router.tables().probes.iter().any(|probe| probe.addr == addr) {
                asked.push(second);
            }
        }
        asked
    }
}

#[test]
fn a_gateway_is_asked_for_and_then_one_adjacency_changes() {
    let mut scene = Scene::new(&[
        "address add 0 192.0.2.1/24",
        "route add 10.0.0.0/8 via 192.0.2.2",
        "route add 11.0.0.0/8 via 192.0.2.2",
    ]);
    let before = scene.router.tables();
    assert_eq!(scene.asked("192.0.2.2", 24), [0, 1, 3, 7, 15, 23]);
    assert_eq!(scene.states(), [("192.0.2.2".to_owned(), NeighbourState::Incomplete)]);
    scene.hear(0, "192.0.2.2", 2);
    scene.pass(SECOND);
    let after = scene.router.tables();
    assert_eq!(after.route4([10, 0, 0, 1].into(), 0), before.route4([10, 0, 0, 1].into(), 0), "same number");
    assert_eq!((mac(&scene.router, "11.0.0.1"), mac(&scene.router, "192.0.2.2")), (Some(2), Some(2)));
    assert_eq!(scene.asked("192.0.2.2", 20), [0_u32; 0]);
    assert_eq!(scene.states(), [("192.0.2.2".to_owned(), NeighbourState::Reachable)]);
    scene.hear(0, "192.0.2.2", 3);
    scene.pass(SECOND);
    assert_eq!((mac(&scene.router, "11.0.0.1"), mac(&scene.router, "192.0.2.2")), (Some(3), Some(3)));
}

#[test]
fn a_neighbour_grown_old_is_asked_and_forgotten() {
    let mut scene = Scene::new(&["address add 0 192.0.2.1/24"]);
    scene.hear(0, "192.0.2.2", 2);
    scene.hear(0, "192.0.2.3", 3);
    scene.pass(SECOND);
    assert_eq!(scene.asked("192.0.2.2", 300), [0_u32; 0]);
    scene.pass(SECOND);
    assert_eq!(scene.states().iter().map(|s| s.1).collect::<Vec<_>>(), [NeighbourState::Probing; 2]);
    scene.hear(0, "192.0.2.3", 3);
    assert_eq!(scene.asked("192.0.2.2", 10), [0, 1, 2, 3, 4]);
    assert_eq!(scene.states(), [("192.0.2.3".to_owned(), NeighbourState::Reachable)]);
    assert_eq!((mac(&scene.router, "192.0.2.3"), to(&scene.router, "192.0.2.2").next), (Some(3), Next::Glean));
}

#[test]
fn only_neighbours_are_learned() {
    let mut scene = Scene::new(&[
        "address add 0 192.0.2.1/24",
        "address add 1 2001:db8::1/64",
        "neighbour add 0 192.0.2.7 02:00:00:00:00:07",
        "route add 2001:db8:1::/48 via fe80::9 port 1",
        "route add 10.0.0.0/8 via 203.0.113.1 port 1",
    ]);
    for (interface, addr) in [
        (0, "198.51.100.1"),
        (1, "192.0.2.2"),
        (7, "192.0.2.2"),
        (0, "192.0.2.1"),
        (0, "224.0.0.1"),
        (0, "192.0.2.255"),
        (0, "192.0.2.7"),
    ] {
        scene.hear(interface, addr, 99);
    }
    scene.hear(1, "fe80::9", 9);
    scene.hear(1, "203.0.113.1", 8);
    scene.pass(SECOND);
    assert_eq!(mac(&scene.router, "192.0.2.7"), Some(7));
    assert_eq!((mac(&scene.router, "2001:db8:1::1"), mac(&scene.router, "10.1.1.1")), (Some(9), Some(8)));
    assert_eq!(to(&scene.router, "fe80::9").next, Next::Drop(DropReason::MartianDestination));
    let shown = scene.states();
    assert_eq!(
        shown.iter().map(|(addr, _)| addr.as_str()).collect::<Vec<_>>(),
        ["192.0.2.7", "203.0.113.1", "fe80::9"]
    );
    // A static entry beats what is learned later; without it, that can be learned again.
    apply(&mut scene.router, &["neighbour del 0 192.0.2.7"]).unwrap();
    assert_eq!(to(&scene.router, "192.0.2.7").next, Next::Glean);
    // With its address goes a neighbour that was learned there.
    scene.hear(0, "192.0.2.7", 1);
    scene.pass(SECOND);
    assert_eq!(mac(&scene.router, "192.0.2.7"), Some(1));
    apply(&mut scene.router, &["address replace 0 192.0.2.1/30"]).unwrap();
    scene.pass(SECOND);
    assert_eq!(to(&scene.router, "192.0.2.7").next, Next::Drop(DropReason::NoRoute));
    assert_eq!(to(&scene.router, "192.0.2.1"), Adjacency::LOCAL);
    assert_eq!(scene.router.tables().route4([192, 0, 2, 1].into(), 0), ADJ_LOCAL);
}

#[test]
fn learning_is_bounded() {
    let mut scene = Scene::new(&[
        "address add 0 10.0.0.1/8",
        "network add 10 local 10.0.0.1 access 1",
        "network add 11 local 10.0.0.1 access 1.5 learn off",
    ]);
    for chunk in 0..17u32 {
        for n in 0..4096u32 {
            let addr = std::net::Ipv4Addr::from(0x0a01_0000 + chunk * 4096 + n).to_string();
            scene.hear(0, &addr, 5);
        }
        scene.pass(Duration::from_millis(1));
    }
    assert_eq!(scene.router.counts().neighbours, 65_536);
    for vni in [10, 11, 12] {
        for n in 0..1500u32 {
            let addr = std::net::Ipv4Addr::from(0x0a10_0000 + n).into();
            let _ = scene.events.0.try_send(Event::Remote { vni, addr });
            let addr = std::net::Ipv4Addr::from(0x0a20_0000 + n).into();
            let _ = scene.events.0.try_send(Event::Remote { vni, addr });
        }
        scene.pass(Duration::from_millis(1));
    }
    assert_eq!(scene.router.overlay_config().learned.len(), 3000);
}
