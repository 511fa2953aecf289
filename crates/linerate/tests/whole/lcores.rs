//! `linerate forward` on two lcores with a map of queues, and a million routes loaded while frames flow.

// The helpers below are test code too; clippy knows only functions marked as tests.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::support;

use std::{
    fs::File,
    io::{BufWriter, Write},
    net::Ipv4Addr,
    path::Path,
    time::{Duration, Instant},
};

use packet::pcap;
use support::{
    exclusive,
    forwarder::Forwarder,
    frames::{eth, ip4, mac, udp, IPV4, UDP},
    require, Needs, Netns,
};
use tempfile::TempDir;

/// As many frames in each receive queue, none of the burst's size or a multiple.
const FRAMES: u32 = 1_000;

/// The bytes of a frame that says which queue of which port it came in by.
fn frame(port: usize, queue: usize, n: u32) -> Vec<u8> {
    let payload = [&[port as u8, queue as u8][..], &n.to_be_bytes()].concat();
    let (src, dst) = ("10.0.0.1", "10.0.0.2");
    eth(mac("02:00:00:00:00:01"), mac("02:00:00:00:00:02"), IPV4, &ip4(src, dst, UDP, &udp(src, dst, 9, &payload)))
}

/// A port with two receive queues out of captures, and as many transmit queues into captures.
fn port(dir: &Path, port: usize) -> String {
    let mut args = format!("raw:net_pcap{port}");
    for queue in 0..2 {
        let path = dir.join(format!("rx{port}.{queue}.pcap"));
        let mut file = pcap::Writer::new(BufWriter::new(File::create(&path).unwrap())).unwrap();
        for n in 0..FRAMES {
            file.write(Duration::from_secs(1), &frame(port, queue, n)).unwrap();
        }
        args.push_str(&format!(",rx_pcap={}", path.display()));
    }
    for queue in 0..2 {
        args.push_str(&format!(",tx_pcap={}", dir.join(format!("tx{port}.{queue}.pcap")).display()));
    }
    args
}

#[test]
fn each_queue_is_polled_by_the_lcore_it_is_mapped_to() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (dir, netns) = (TempDir::new().unwrap(), Netns::new());
    let ports = [port(dir.path(), 0), port(dir.path(), 1)];
    let mut forwarder = Forwarder::start(
        &netns,
        &[
            &["l2", "--port", &ports[0], "--port", &ports[1], "--cpus", "0,1", "--rx-queues", "2"][..],
            &["--queue-map", "0:0=0,0:1=1,1:0=1,1:1=0"],
        ]
        .concat(),
    );
    let end = Instant::now() + Duration::from_secs(30);
    let all = u64::from(4 * FRAMES);
    while forwarder.ledger().0 < all && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
    let (left, right) = forwarder.ledger();
    assert_eq!((left, right), (all, all));
    let runtime = forwarder.does(&["show", "runtime", "--json", "--interval", "0"]).json();
    let lcores = runtime["lcores"].as_array().unwrap();
    assert_eq!(lcores.len(), 2, "{runtime}");
    for lcore in lcores {
        let vectors = |name: &str| {
            let node = lcore["nodes"].as_array().unwrap().iter().find(|n| n["name"] == name).unwrap();
            node["vectors"].as_u64().unwrap()
        };
        assert_eq!((vectors("rx"), vectors("tx")), (all / 2, all / 2), "{lcore}");
    }
    assert_eq!(forwarder.end_by("INT").and_then(|s| s.code()), Some(0));
    // Lcore n sends by transmit queue n: what left by it says which queues that lcore took from.
    for (egress, lcore, queue) in [(1, 0, 0), (1, 1, 1), (0, 1, 0), (0, 0, 1)] {
        let path = dir.path().join(format!("tx{egress}.{lcore}.pcap"));
        let sent: Vec<Vec<u8>> = pcap::read(File::open(&path).unwrap()).unwrap().map(|f| f.unwrap().bytes).collect();
        let want: Vec<Vec<u8>> = (0..FRAMES).map(|n| frame(1 - egress, queue, n)).collect();
        assert!(sent == want, "{} of {FRAMES} frames in {}", sent.len(), path.display());
    }
}

#[test]
fn a_million_routes_stop_no_frame() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    const ROUTES: u32 = 1 << 20;
    let (dir, netns) = (TempDir::new().unwrap(), Netns::new());
    // An endless capture to one destination: more frames than it takes, all the time.
    let capture = dir.path().join("in.pcap");
    let mut file = pcap::Writer::new(File::create(&capture).unwrap()).unwrap();
    let (src, dst) = ("10.0.0.99", "198.19.3.4");
    let packet = ip4(src, dst, UDP, &udp(src, dst, 9, b"a frame of sixty bytes"));
    file.write(Duration::from_secs(1), &eth([2, b'p', b'c', b'a', b'p', 0], [2; 6], IPV4, &packet)).unwrap();
    drop(file);
    let routes = dir.path().join("routes");
    let mut text = BufWriter::new(File::create(&routes).unwrap());
    for n in 0..ROUTES {
        writeln!(text, "route add {}/24 port 1 mac 02:00:00:00:00:02", Ipv4Addr::from((20 << 24) + (n << 8))).unwrap();
    }
    text.into_inner().unwrap();
    let port = format!("pcap:{}", capture.display());
    let forwarder = Forwarder::start(
        &netns,
        &[
            &["l3", "--port", &port, "--port", "null,no-rx=1", "--cpus", "1"][..],
            &["--memory", "no-hugepages", "--memory-mib", "4096"],
            &["--route", "198.19.0.0/16 port 1 mac 02:00:00:00:00:02"],
        ]
        .concat(),
    );
    let sent = || forwarder.show("ports")[1]["tx_frames"].as_u64().unwrap();
    let (before, known) = (sent(), forwarder.show("routes")["of"].as_u64().unwrap());
    forwarder.does(&["load", routes.to_str().unwrap()]);
    assert!(sent() > before, "frames went on");
    // Of all that came in not one was dropped or has waited.
    let drops = forwarder.show("drops");
    assert!(drops["drops"].as_object().unwrap().values().all(|n| n == 0), "{drops}");
    assert_eq!(forwarder.show("routes")["of"].as_u64().unwrap(), u64::from(ROUTES) + known);
}
