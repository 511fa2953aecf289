//! Hosts of a connected network that have to be asked for first.

use std::time::Duration;

use crate::{
    setup::{normalised, station, to_router, Side, ROUTER},
    support::{exclusive, frames::*, require, Needs},
};

/// A host that answers.
const HOST: Mac = [0x02, 0x4c, 0x52, 0, 0, 0x50];
const S4: &str = "198.18.7.7";
const S6: &str = "2001:2:0:1::7";
const LIMIT: Duration = Duration::from_secs(10);

fn packet(dst: &str) -> Vec<u8> {
    let src = if dst.contains(':') { S6 } else { S4 };
    let datagram = udp(src, dst, 7, &bytes(30));
    if src == S6 {
        ip6(src, dst, UDP, &datagram)
    } else {
        ip4(src, dst, UDP, &datagram)
    }
}

fn asks_for(frame: &[u8], addr: &str) -> bool {
    match addr.parse() {
        Ok(std::net::IpAddr::V4(a)) => ethertype(frame) == ARP && frame.get(38..42) == Some(&a.octets()[..]),
        Ok(std::net::IpAddr::V6(a)) => frame.get(54) == Some(&135) && frame.get(62..78) == Some(&a.octets()[..]),
        Err(e) => panic!("{addr}: {e}"),
    }
}

/// Sends a packet to a host that has to be asked for, answers, and returns the question and the packet as it arrived.
fn asked_and_answered(side: &Side, dst: &str) -> [Vec<u8>; 2] {
    let [near, far] = side.ports();
    near.send(&to_router(0, &packet(dst)));
    let question = far.expect("a question", LIMIT, |f| asks_for(f, dst));
    let (asker, router) = (&question[6..12], mac(ROUTER[1]));
    assert_eq!(asker, router);
    far.send(&if dst.contains(':') {
        let src = std::net::Ipv6Addr::from(<[u8; 16]>::try_from(&question[22..38]).unwrap()).to_string();
        eth(router, HOST, IPV6, &nd(136, dst, &src, dst, 0x60, Some(HOST)))
    } else {
        eth(router, HOST, ARP, &arp(2, (HOST, dst), (router, "10.255.1.1")))
    });
    let arrived = far.expect("the packet", LIMIT, |f| f[..6] == HOST);
    [question, arrived].map(|f| normalised(f).unwrap())
}

/// Sends a packet to a host that is not there and returns what its source is told.
fn told(side: &Side, dst: &str) -> Vec<u8> {
    let [near, far] = side.ports();
    near.send(&to_router(0, &packet(dst)));
    far.expect("a question", LIMIT, |f| asks_for(f, dst));
    let at = if dst.contains(':') { (20, ICMPV6) } else { (23, ICMP) };
    normalised(near.expect("an ICMP error", LIMIT, |f| f[..6] == station(0) && f[at.0] == at.1)).unwrap()
}

#[test]
fn neighbours_are_asked_for_alike() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let sides = [Side::kernel(), Side::linerate()];
    let [kernel, linerate] = [&sides[0], &sides[1]].map(|side| asked_and_answered(side, "10.255.1.50"));
    assert_eq!(hex(&kernel[0]), hex(&linerate[0]), "the ARP request");
    assert_eq!(hex(&kernel[1]), hex(&linerate[1]), "the packet that waited");

    let [kernel, linerate] = [&sides[0], &sides[1]].map(|side| asked_and_answered(side, "2001:db8:0:b::50"));
    // The kernel asks from the link-local address, Linerate from the one in the host's own network: RFC 4861 7.2.2
    // takes any. With it the checksum differs.
    assert_eq!(hex(&kernel[0][..22]), hex(&linerate[0][..22]), "the neighbour solicitation");
    assert_eq!(hex(&kernel[0][38..56]), hex(&linerate[0][38..56]), "the neighbour solicitation");
    assert_eq!(hex(&kernel[0][58..]), hex(&linerate[0][58..]), "the neighbour solicitation");
    assert_eq!(hex(&kernel[1]), hex(&linerate[1]), "the packet that waited");

    for dst in ["10.255.1.51", "2001:db8:0:b::51"] {
        let [kernel, linerate] = [&sides[0], &sides[1]].map(|side| told(side, dst));
        assert_eq!(hex(&kernel), hex(&linerate), "host unreachable");
    }
    let (left, right) = sides[1].forwarder().ledger();
    assert_eq!(left, right, "the ledger of every frame");
}
