//! Kernel interfaces: a veth pair in a network namespace of our own, in which the real tests run as children.
//! Needs root; there is nothing to test without.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    process::Command,
    time::{Duration, Instant},
};

use common::{eal_with, full, open, pass, pool, refused};
use dpdk::{DpdkError, Eal, Memory, Port, PortConfig, RxQueue, TxQueue};
use packet::{Buffer, Burst, Rx};

struct Namespace(String);

fn ip(args: &str) {
    let status = Command::new("ip").args(args.split_whitespace()).status().expect("iproute2");
    assert!(status.success(), "ip {args}; this test needs root");
}

impl Namespace {
    fn new(name: &str, mtu: u32) -> Self {
        let ns = Self(format!("lrdpdk-{name}-{}", std::process::id()));
        ip(&format!("netns add {}", ns.0));
        let on = |args: &str| ip(&format!("-n {} {args}", ns.0));
        on(&format!("link add t0 mtu {mtu} type veth peer name t1 mtu {mtu}"));
        for iface in ["lo", "t0", "t1"] {
            let all = "/proc/sys/net/ipv6/conf/all/disable_ipv6";
            let _ = Command::new("ip").args(["netns", "exec", &ns.0, "sh", "-c", &format!("echo 1 > {all}")]).status();
            on(&format!("link set {iface} up"));
        }
        ns
    }

    /// Runs an ignored test of this file in the namespace.
    fn run(&self, test: &str) {
        let exe = std::env::current_exe().unwrap();
        let output = Command::new("ip")
            .args(["netns", "exec", &self.0])
            .arg(exe)
            .args(["--ignored", "--exact", test, "--nocapture"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        // Nothing is left attached to the interfaces.
        let links = Command::new("ip").args(["-n", &self.0, "-d", "link"]).output().unwrap();
        let links = String::from_utf8_lossy(&links.stdout).into_owned();
        assert!(!links.contains("xdp") && !links.contains("PROMISC"), "{links}");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

fn test_eal() -> &'static Eal {
    eal_with(Memory::NoHuge { mib: 256 })
}

#[test]
fn veth() {
    let ns = Namespace::new("veth", 1500);
    ns.run("inside_af_packet");
    ns.run("inside_af_xdp");
    ns.run("inside_errors");
}

#[test]
fn veth_with_jumbo_frames() {
    Namespace::new("jumbo", 9000).run("inside_jumbo");
}

fn queues(port: &mut Port) -> (TxQueue, RxQueue) {
    (port.take_tx(0).unwrap(), port.take_rx(0).unwrap())
}

/// Both ways, everything, unchanged, and the sender's pool full again.
fn both_ways(eal: &'static Eal, a: &str, b: &str, most: usize, mtu: u16) -> [Port; 2] {
    let pool = dpdk::Mempool::new(eal, "test", 2047, mtu + 64, 0).unwrap();
    let config = PortConfig { mtu, ..PortConfig::new(&pool) };
    let port = |text: &str| Port::open(eal, &text.parse().unwrap(), &config).unwrap_or_else(|e| panic!("{e}"));
    let (mut a, mut b) = (port(a), port(b));
    assert!(a.link().up && b.link().up && a.link().bps.is_none() && a.mac() != [0; 6]);
    let ((mut at, mut ar), (mut bt, mut br)) = (queues(&mut a), queues(&mut b));
    pass(&pool, &mut at, &mut br, 5000, most);
    pass(&pool, &mut bt, &mut ar, 5000, most);
    full(&pool);
    let (sent, got) = (a.stats().unwrap(), b.stats().unwrap());
    assert_eq!((sent.opackets, got.ipackets), (5000, 5000));
    // Nothing more comes, and a poll of nothing does not wait.
    let (start, mut burst) = (Instant::now(), Burst::new());
    for _ in 0..1000 {
        assert_eq!(br.rx(&mut burst), 0);
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    [a, b]
}

#[test]
#[ignore = "run in a namespace by `veth`"]
fn inside_af_packet() {
    let eal = test_eal();
    for _ in 0..2 {
        let ports = both_ways(eal, "eth:t0,driver=af_packet", "eth:t1,driver=af_packet", 1514, 1500);
        assert!(ports.iter().all(|p| p.driver() == "net_af_packet" && p.fallback().is_none()));
    }
}

#[test]
#[ignore = "run in a namespace by `veth`"]
fn inside_af_xdp() {
    let eal = test_eal();
    // Twice: closing one has to let go of the interface.
    for round in 0..2 {
        let ports = both_ways(eal, "eth:t0", "eth:t1", 1514, 1500);
        for port in &ports {
            assert_eq!((port.driver(), port.fallback()), ("net_af_xdp", None), "round {round}");
        }
    }
    // One of each.
    both_ways(eal, "eth:t0,driver=af_xdp", "eth:t1,driver=af_packet", 1514, 1500);
    // A received frame outlives its port.
    let pool = pool(eal, 255);
    let (mut a, mut b) = (open(eal, "eth:t0", &pool), open(eal, "eth:t1", &pool));
    let ((mut tx, _), (_, mut rx)) = (queues(&mut a), queues(&mut b));
    pass(&pool, &mut tx, &mut rx, 10, 1514);
    let mut burst = Burst::new();
    common::send_one(&pool, &mut tx, 7);
    while rx.rx(&mut burst) == 0 {}
    drop((a, b, tx, rx));
    assert_eq!(burst[0].data(), common::content(7, 1514));
    burst[0].data_mut().fill(1);
}

#[test]
#[ignore = "run in a namespace by `veth_with_jumbo_frames`"]
fn inside_jumbo() {
    let eal = test_eal();
    let ports = both_ways(eal, "eth:t0", "eth:t1", 9014, 9000);
    for port in &ports {
        assert_eq!(port.driver(), "net_af_packet");
        // How large it may be is the kernel's to say.
        let why: String = port.fallback().unwrap().chars().filter(|c| !c.is_ascii_digit()).collect();
        insta::allow_duplicates! { insta::assert_snapshot!(why, @"AF_PACKET instead of AF_XDP, which is faster: opening failed: AF_XDP carries an MTU of  at most,  is needed") };
    }
}

#[test]
#[ignore = "run in a namespace by `veth`"]
fn inside_errors() {
    let eal = test_eal();
    let pool = dpdk::Mempool::new(eal, "test", 255, 9100, 0).unwrap();
    let config = PortConfig { mtu: 9000, ..PortConfig::new(&pool) };
    let error = Port::open(eal, &"eth:t0".parse().unwrap(), &config).unwrap_err();
    assert!(error.machine_lacks(), "{error}");
    insta::assert_snapshot!(error, @"port eth:t0: opening failed: its MTU is 1500, 9000 is needed: set it with: ip link set t0 mtu 9000");
    let held = open(eal, "eth:t0,driver=af_xdp", &pool);
    let taken = refused(eal, "eth:t0,driver=af_xdp", &pool);
    assert!(taken.machine_lacks() && matches!(taken, DpdkError::Driver { .. }), "{taken}");
    let second = open(eal, "eth:t0", &pool);
    assert_eq!(second.driver(), "net_af_packet");
    println!("{}", second.fallback().unwrap());
    drop((held, second));
    ip("link set t1 down");
    let down = refused(eal, "eth:t1", &pool);
    assert!(down.machine_lacks(), "{down}");
    insta::assert_snapshot!(down, @"port eth:t1: opening failed: the interface is down: bring it up with: ip link set t1 up");
    let other = open(eal, "eth:t0,driver=af_packet", &pool);
    assert!(!other.link().up && !other.wait_link_up(Duration::from_millis(20)));
    ip("link set t1 up");
    assert!(other.wait_link_up(Duration::from_secs(5)));
}
