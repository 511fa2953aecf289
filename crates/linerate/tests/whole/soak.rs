//! Random and mutated frames through the real program and real mbufs: it lives, every frame is accounted for, and every
//! mbuf is back in its pool at the end.

#![allow(clippy::unwrap_used, clippy::panic, dead_code)]

#[path = "../../../dataplane/tests/soak/dice.rs"]
mod dice;
#[path = "../../../dataplane/tests/soak/frames.rs"]
mod frames;
#[path = "../../../dataplane/tests/soak/mutate.rs"]
mod mutate;
#[path = "../../../dataplane/tests/soak/plans.rs"]
mod plans;
#[path = "../../../dataplane/tests/soak/repair.rs"]
mod repair;
use crate::support;

use std::{fs, path::Path, time::Duration};

use dataplane::spec::FunctionKind;
use dice::Dice;
use packet::pcap::Writer;
use serde_json::Value;
use support::{exclusive, tester::linerate};

/// Frames of each capture, which is replayed for ever: each comes by many times. For more than half a pool's buffers the
/// driver gets a pool of its own, which `--check-pools` does not know.
const FRAMES: usize = 8_000;
/// A run in which less is received has not begun, or has run out of buffers.
const LEAST: u64 = 10 * FRAMES as u64;

fn capture(path: &Path, port: usize, dice: &mut Dice) {
    let mut writer = Writer::new(Vec::new()).unwrap();
    let mut last = Vec::new();
    for _ in 0..FRAMES {
        let mut frame = mutate::next(dice, port, &last);
        if frame.is_empty() {
            frame.push(0);
        }
        writer.write(Duration::ZERO, &frame).unwrap();
        last = frame;
    }
    fs::write(path, writer.into_inner()).unwrap();
}

/// Two ports that replay mutants and one that takes what comes, with everything that a plan has.
fn soak(kind: FunctionKind, impair: &str, reasons: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice::new(7);
    let ports = [0, 1].map(|port| {
        let path = dir.path().join(format!("{port}.pcap"));
        capture(&path, port, &mut dice);
        format!("pcap:{}", path.display())
    });
    let mut plan = plans::spec(kind, &mut dice);
    // The captures do not know the ports' addresses.
    plan.check_mac = plan.check_mac.map(|_| false).or(kind.keys().contains(&"check_mac").then_some(false));
    let config = dir.path().join("plane.toml");
    fs::write(&config, format!("mtu = [1500, 1500, 600]\n[function]\n{}", toml::to_string(&plan).unwrap())).unwrap();
    let mut args =
        vec!["forward", "--config", config.to_str().unwrap(), "--duration", "2s", "--check-pools", "--json", "-q"];
    for port in [&ports[0], &ports[1], "null,no-rx=1"] {
        args.extend(["--port", port]);
    }
    if !impair.is_empty() {
        args.extend(["--impair", impair]);
    }
    let ended = linerate(&args);
    assert_eq!(ended.code, 0, "{kind}: {}", ended.stderr);
    let seen = ended.json();
    let number = |name: &str| seen[name].as_u64().unwrap_or_else(|| panic!("{kind}: no {name} in {seen}"));
    let over_ports = |name: &str| -> Vec<u64> {
        seen["ports"].as_array().unwrap().iter().map(|port| port[name].as_u64().unwrap()).collect()
    };
    let drops: u64 = seen["drops"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    let (rx, tx) = (over_ports("rx_frames"), over_ports("tx_frames"));
    assert_eq!(
        rx.iter().sum::<u64>() + number("originated_frames"),
        tx.iter().sum::<u64>() + drops + number("punted_frames") + number("held_frames"),
        "{kind}: {seen}"
    );
    assert_eq!(number("held_frames"), 0, "{kind}");
    assert!(rx[0] > LEAST && rx[1] > LEAST && tx.iter().sum::<u64>() > 0, "{kind}: in {rx:?}, out {tx:?}");
    let missing: Vec<_> = reasons.iter().filter(|reason| seen["drops"][**reason].is_null()).collect();
    assert!(missing.is_empty(), "{kind}: no {missing:?} in {}", seen["drops"]);
}

/// What any router meets.
const ROUTED: [&str; 20] = [
    "runt",
    "link-group",
    "not-ip",
    "ip4-header",
    "ip4-length",
    "ip4-checksum",
    "ip4-ttl",
    "ip6-header",
    "ip6-length",
    "ip6-hop-limit",
    "martian-source",
    "martian-destination",
    "no-route",
    "black-hole",
    "no-neighbour",
    "mtu",
    "vlan-unknown",
    "not-listening",
    "arp",
    "nd",
];

#[test]
fn mutants_over_mbufs_are_all_accounted_for() {
    let _machine = exclusive();
    soak(FunctionKind::L3, "", &ROUTED);
    soak(FunctionKind::Mpls, "loss=1%,dup=5%,delay=1ms", &["mpls-no-label", "mpls-ttl", "mpls-stack", "impair-loss"]);
    soak(FunctionKind::Vxlan, "", &["vxlan-header", "vxlan-vni", "vxlan-outer", "vxlan-no-route", "no-route", "nd"]);
    soak(FunctionKind::Bridge, "dup=5%,reorder=2%,place=before", &["runt", "bridge-reserved", "bridge-source"]);
}
