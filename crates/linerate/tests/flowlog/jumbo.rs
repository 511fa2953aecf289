//! Interfaces with a larger MTU than usual.

use std::path::Path;

use serde_json::Value;

use crate::between::{Between, PATIENCE, STATION};
use crate::logger::{directory, records, sum, Logger};
use crate::support::{
    exclusive,
    frames::{eth, ip4, mac, udp, IPV4, UDP},
    require, wait_until,
    words::SHORTER_MTU,
    Needs,
};

/// A frame from host 0 to host 1, of a packet of 5,028 bytes.
fn long() -> Vec<u8> {
    let (src, dst) = ("10.0.0.1", "10.0.0.2");
    eth(mac(STATION[1]), mac(STATION[0]), IPV4, &ip4(src, dst, UDP, &udp(src, dst, 53, &[9; 5000])))
}

/// Two hosts whose interfaces, and those between, carry packets of 9,000 bytes.
fn jumbo() -> Between {
    let bench = Between::new();
    for (n, host) in bench.hosts.iter().enumerate() {
        host.ip("link set eth0 mtu 9000");
        bench.middle.ip(&format!("link set d{n} mtu 9000"));
    }
    bench
}

/// Frames and bytes of the flow of [`long`].
fn counted(json: &Path) -> [u64; 3] {
    let flows: Vec<Value> = records(json).into_iter().filter(|flow| flow["dst"] == "10.0.0.2").collect();
    ["packets", "ip_bytes", "frame_bytes"].map(|what| sum(&flows, what))
}

#[test]
fn a_port_has_the_mtu_of_its_interface() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (jumbo(), directory());
    let json = dir.path().join("flows.jsonl");
    let logger = bench.logger(dir.path(), &["--json", json.to_str().unwrap()]);
    for _ in 0..3 {
        bench.pass(0, &long());
    }
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    assert_eq!(counted(&json), [3, 3 * 5028, 3 * 5042], "{said}");
    assert!(!said.contains(SHORTER_MTU), "{said}");
}

#[test]
fn an_mtu_below_that_of_the_interface_is_told_and_all_bytes_count() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (jumbo(), directory());
    let json = dir.path().join("flows.jsonl");
    let args =
        ["--port", "eth:d0,driver=af_packet", "--flows", "1k", "--mtu", "1500", "--json", json.to_str().unwrap()];
    let logger = Logger::start(Some(&bench.middle), dir.path(), &args);
    assert!(logger.process.output().contains(&format!("port eth:d0,driver=af_packet{SHORTER_MTU}9000")));
    bench.ends[0].send(&long());
    wait_until("it is counted", PATIENCE, || logger.client().totals()["interfaces"][0]["cut"] == 1);
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    assert_eq!(counted(&json), [1, 5028, 5042], "{said}");
}
