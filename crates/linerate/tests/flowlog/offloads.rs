//! Frames longer than the interface's MTU, as the kernel's offloads make them: counted whole, and told.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
};

use crate::between::{Between, PATIENCE};
use crate::logger::{directory, records, sum, Logger};
use crate::support::{
    ending, exclusive,
    raw::inside,
    require, wait_until,
    words::{CUT_FRAMES, FRAMES_CUT, OFFLOADS_ON},
    Needs, Netns,
};

const BYTES: usize = 1 << 20;
const PORT: &str = "eth:d0,driver=af_packet";

/// Bytes that an interface has received and sent, by the kernel's count.
fn passed(netns: &Netns, interface: &str) -> u64 {
    let of = |what: &str| format!("/sys/class/net/{interface}/statistics/{what}_bytes");
    let text = netns.run(&["cat", &of("rx"), &of("tx")]);
    text.split_whitespace().map(|n| n.parse::<u64>().unwrap()).sum()
}

#[test]
fn bytes_of_long_frames_are_all_counted() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Between::new(), directory());
    let (host, middle) = (&bench.hosts[0], &bench.middle);
    middle.ip("addr add 10.0.0.9/24 dev d0");
    for (netns, interface) in [(host, "eth0"), (middle, "d0")] {
        netns.run(&["ethtool", "-K", interface, "tx", "on", "tso", "on", "gso", "on"]);
    }
    let json = dir.path().join("flows.jsonl");
    let args = ["--port", PORT, "--flows", "1k", "--json", json.to_str().unwrap()];
    let logger = Logger::start(Some(middle), dir.path(), &args);
    assert!(logger.process.output().contains(&format!("port {PORT}{OFFLOADS_ON} (tso, gso)")));
    let interface = || logger.client().totals()["interfaces"][0].clone();
    let before = passed(middle, "d0") - interface()["bytes"].as_u64().unwrap();

    let server = inside(middle, || TcpListener::bind("10.0.0.9:0").unwrap());
    let at = server.local_addr().unwrap();
    let mut client = inside(host, || TcpStream::connect(at).unwrap());
    let (mut accepted, _) = server.accept().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| client.write_all(&vec![7; BYTES]).unwrap());
        accepted.read_exact(&mut vec![0; BYTES]).unwrap();
    });
    wait_until("each byte is counted", PATIENCE, || {
        passed(middle, "d0") - interface()["bytes"].as_u64().unwrap() == before
    });
    let cut = interface()["cut"].as_u64().unwrap();
    assert!(cut > 0, "{}", interface());
    wait_until("that is told", PATIENCE, || logger.process.output().contains(&format!("port {PORT}{FRAMES_CUT}")));
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    assert_eq!(said.matches(FRAMES_CUT).count(), 1, "{said}");
    assert!(ending::lines(&said).contains(&format!("port 0 ({PORT}): {cut}{CUT_FRAMES}")), "{said}");

    let flows: Vec<_> = records(&json).into_iter().filter(|flow| flow["dport"] == at.port()).collect();
    let (packets, ip, frames) = (sum(&flows, "packets"), sum(&flows, "ip_bytes"), sum(&flows, "frame_bytes"));
    // Headers of IP and TCP have 40 to 80 bytes, those of Ethernet 14.
    assert_eq!(frames, ip + 14 * packets, "{flows:?}");
    let headers = ip - BYTES as u64;
    assert!((40 * packets..=80 * packets).contains(&headers), "{flows:?}");
}
