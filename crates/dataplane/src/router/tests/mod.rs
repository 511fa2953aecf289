mod bulk;
mod learning;
mod model;
mod swap;

use std::{sync::Arc, time::Duration};

use packet::MacAddr;

use super::{Policy, Router};
use crate::{
    fib::{FibError, FibMaker, Linear, Lookup4, Lookup6, Small},
    model::{Op, OpError, OpErrorKind, PortInfo},
    tables::{Adjacency, MacFilter, Next, Tables, Tag},
    DropReason,
};

/// MAC address of a port.
pub(super) fn port_mac(port: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 1, port])
}

pub(super) fn ports() -> [PortInfo; 2] {
    [PortInfo { mac: port_mac(0), mtu: 1500 }, PortInfo { mac: port_mac(1), mtu: 9000 }]
}

pub(super) fn router() -> Router {
    with_maker(Box::new(Plain))
}

pub(super) fn with_maker(maker: Box<dyn FibMaker>) -> Router {
    Router::new(&ports(), Policy::default(), maker).unwrap()
}

pub(super) fn ops(lines: &[&str]) -> Vec<Op> {
    lines.iter().map(|line| line.parse().unwrap()).collect()
}

pub(super) fn apply(router: &mut Router, lines: &[&str]) -> Result<(), OpError> {
    router.apply(&ops(lines))
}

/// Where IPv4 or IPv6 destinations go, by the tables that readers see.
pub(super) fn to(router: &Router, dst: &str) -> Adjacency {
    by(&router.tables(), dst, 0)
}

pub(super) fn by(tables: &Tables, dst: &str, hash: u32) -> Adjacency {
    let number = match dst.parse().unwrap() {
        std::net::IpAddr::V4(dst) => tables.route4(dst, hash),
        std::net::IpAddr::V6(dst) => tables.route6(dst, hash),
    };
    tables.adjacencies[number as usize]
}

/// The MAC address that frames to a destination are sent to, if they are forwarded.
pub(super) fn mac(router: &Router, dst: &str) -> Option<u8> {
    let to = to(router, dst);
    (to.next == Next::Forward).then_some(to.macs[5])
}

/// Makes tables that are not sized: the oracle's.
#[derive(Debug)]
pub(super) struct Plain;

impl FibMaker for Plain {
    fn make4(&self, _: usize) -> Result<Arc<dyn Lookup4>, FibError> {
        Ok(Arc::new(Linear::new(&[])))
    }
    fn make6(&self, _: usize) -> Result<Arc<dyn Lookup6>, FibError> {
        Ok(Arc::new(Linear::new(&[])))
    }
}

#[test]
fn addresses_make_local_connected_and_broadcast_routes() {
    let mut router = router();
    apply(&mut router, &["address add 0 192.0.2.1/24", "address add 1.7 2001:db8::1/64"]).unwrap();
    let tables = router.tables();
    for (dst, next, port) in [
        ("192.0.2.1", Next::Local, 0),
        ("192.0.2.9", Next::Glean, 0),
        ("192.0.2.255", Next::Drop(DropReason::MartianDestination), 0),
        ("198.51.100.1", Next::Drop(DropReason::NoRoute), 0),
        ("127.0.0.1", Next::Drop(DropReason::MartianDestination), 0),
        ("255.255.255.255", Next::Drop(DropReason::MartianDestination), 0),
        ("2001:db8::1", Next::Local, 0),
        ("2001:db8::2", Next::Glean, 1),
        ("fe80::ff:fe00:101", Next::Local, 0),
        ("fe80::1", Next::Drop(DropReason::MartianDestination), 0),
        ("ff02::1", Next::Drop(DropReason::MartianDestination), 0),
    ] {
        let to = by(&tables, dst, 0);
        assert_eq!((to.next, to.port), (next, port), "{dst}");
    }
    let glean = by(&tables, "2001:db8::2", 0);
    assert_eq!((glean.tag, glean.mtu, glean.interface), (Tag::Vid(7), 9000, 2));
    assert_eq!(by(&tables, "192.0.2.9", 0).tag, Tag::Keep);
    assert_eq!((tables.ports[1].vlans.as_ref().unwrap()[7], tables.ports[0].vlans.is_none()), (2, true));
    assert_eq!(tables.ports[0].macs, MacFilter::only(port_mac(0)));
    assert_eq!(tables.interfaces[2].ip6.len(), 2);
    apply(&mut router, &["address del 1.7 2001:db8::1/64"]).unwrap();
    let tables = router.tables();
    assert!(tables.ports[1].vlans.is_none() && tables.ports[1].macs == MacFilter::UNICAST);
    assert_eq!(by(&tables, "fe80::ff:fe00:101", 0).next, Next::Drop(DropReason::MartianDestination));
}

#[test]
fn a_batch_is_whole_or_not_at_all() {
    let mut router = router();
    apply(&mut router, &["address add 0 192.0.2.1/24", "route add 10.0.0.0/8 via 192.0.2.2"]).unwrap();
    apply(&mut router, &["network add 10 local 192.0.2.1 access 1", "remote add 10 192.0.2.5"]).unwrap();
    let before = (router.routes().map(|r| (r.prefix, r.hops)).collect::<Vec<_>>(), router.counts());
    let config: Vec<_> = router.config().collect();
    let good = "route add 10.9.0.0/16 via 192.0.2.3 weight 2 via 192.0.2.4 labels 16/17";
    let mut shown = String::new();
    for (bad, kind) in [
        ("route add 10.0.0.0/8 drop", OpErrorKind::AlreadyThere),
        ("route del 11.0.0.0/8", OpErrorKind::NotThere),
        ("route add 11.0.0.0/8 via 198.51.100.1", OpErrorKind::Invalid),
        ("route add 11.0.0.0/8 via 192.0.2.1", OpErrorKind::Invalid),
        ("route add 11.0.0.0/8 port 2 mac 02:00:00:00:00:01", OpErrorKind::Invalid),
        ("address del 0 192.0.2.1/24", OpErrorKind::Invalid),
        ("address del 0 192.0.2.1/25", OpErrorKind::NotThere),
        ("neighbour add 0 192.0.2.1 02:00:00:00:00:01", OpErrorKind::Invalid),
        ("label add 16 pop port 0", OpErrorKind::Invalid),
        ("network add 11 local 192.0.2.1 access 1", OpErrorKind::Invalid),
        ("network add 11 local 192.0.2.9 access 0", OpErrorKind::Invalid),
        ("network del 10", OpErrorKind::Invalid),
        ("remote add 11 192.0.2.5", OpErrorKind::Invalid),
        ("remote add 10 2001:db8::1", OpErrorKind::Invalid),
        ("remote add 10 192.0.2.1", OpErrorKind::Invalid),
        ("fdb add 10 02:00:00:00:00:01 192.0.2.1", OpErrorKind::Invalid),
        ("network replace 10 local 192.0.2.5 access 1", OpErrorKind::Invalid),
    ] {
        let error = apply(&mut router, &[good, "neighbour add 0 192.0.2.9 02:00:00:00:00:09", bad]).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        shown += &format!("{error}\n");
        assert_eq!((error.index, error.op.as_str()), (2, bad));
        assert_eq!(
            (router.routes().map(|r| (r.prefix, r.hops)).collect::<Vec<_>>(), router.config().collect()),
            (before.0.clone(), config.clone()),
            "{bad}"
        );
    }
    insta::assert_snapshot!("refused_changes", shown);
    apply(&mut router, &[good]).unwrap();
    apply(&mut router, &["route del 10.9.0.0/16"]).unwrap();
    assert_eq!(router.routes().map(|r| (r.prefix, r.hops)).collect::<Vec<_>>(), before.0);
}

#[test]
fn what_a_change_needs_may_come_later_in_its_batch() {
    let mut router = router();
    apply(&mut router, &["route add 10.0.0.0/8 via 192.0.2.2", "address add 1 192.0.2.1/24"]).unwrap();
    assert_eq!((to(&router, "10.1.1.1").next, to(&router, "10.1.1.1").port), (Next::Unresolved, 1));
    apply(&mut router, &["address del 1 192.0.2.1/24", "address add 0 192.0.2.1/24"]).unwrap();
    assert_eq!((to(&router, "10.1.1.1").next, to(&router, "10.1.1.1").port), (Next::Unresolved, 0));
}

#[test]
fn labels_and_groups_are_compiled() {
    let mut router = router();
    let lines = [
        "address add 0 192.0.2.1/24",
        "neighbour add 0 192.0.2.2 02:00:00:00:00:02",
        "neighbour add 0 192.0.2.3 02:00:00:00:00:03",
        "route add 10.0.0.0/8 via 192.0.2.2 labels 16/17 weight 3 via 192.0.2.3",
        "route add 11.0.0.0/8 via 192.0.2.2 labels 16/17",
        "route add 12.0.0.0/8 via 192.0.2.2 via 192.0.2.2 port 0",
        "label add 16 swap 17 via 192.0.2.3",
    ];
    apply(&mut router, &lines).unwrap();
    let tables = router.tables();
    let slots: Vec<_> = (0..4).map(|hash| by(&tables, "10.1.1.1", hash)).collect();
    assert_eq!(slots.iter().map(|a| (a.macs[5], a.push)).collect::<Vec<_>>(), [(2, 1), (2, 1), (2, 1), (3, 0)]);
    assert_eq!(tables.route4([11, 0, 0, 1].into(), 0), tables.route4([10, 0, 0, 1].into(), 0), "shared");
    let stack = tables.labels.stacks[0];
    assert_eq!((stack.len, stack.entries[0], stack.entries[1]), (2, [0, 1, 0, 0], [0, 1, 16, 0]));
    assert_eq!((tables.groups.len(), by(&tables, "12.1.1.1", 5).macs[5]), (1, 2));
    let shown: Vec<_> = router.config().map(|item| format!("{} add {item}", item.noun())).collect();
    let mut again = with_maker(Box::new(Small));
    again.apply(&shown.iter().map(|line| line.parse().unwrap()).collect::<Vec<_>>()).unwrap();
    assert_eq!(again.config().collect::<Vec<_>>(), router.config().collect::<Vec<_>>());
}

pub(super) const SECOND: Duration = Duration::from_secs(1);
