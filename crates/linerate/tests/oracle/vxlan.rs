//! The kernel's `vxlan` device as the oracle, in both directions and side by side.
//!
//! ```text
//!   station namespace    VTEP namespace                     far namespace
//!      a0 ------------ l0  linerate forward vxlan  l1 ------ k1  vx10 (the kernel's vxlan device)
//!      a0 ------------ l0  br0 with vx10           l1 ------ k1  nobody, but a raw port
//! ```

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use crate::{
    setup::normalised,
    support::{
        exclusive,
        forwarder::Forwarder,
        frames::*,
        raw::{cable, inside, RawPort},
        require, wait_until, Needs, Netns,
    },
};

const LIMIT: Duration = Duration::from_secs(10);
const STATION: &str = "02:4c:52:00:0a:00";
const REMOTE: &str = "02:4c:52:00:0a:10";
const ACCESS: &str = "02:4c:52:00:0a:01";
const NEAR: &str = "02:4c:52:00:0b:01";
const FAR: &str = "02:4c:52:00:0b:02";

/// The ends of the tunnel.
#[derive(Clone, Copy)]
struct Outer {
    near: &'static str,
    far: &'static str,
    len: u8,
}

const V4: Outer = Outer { near: "192.0.2.1", far: "192.0.2.2", len: 24 };
const V6: Outer = Outer { near: "2001:db8:f::1", far: "2001:db8:f::2", len: 64 };

impl Outer {
    fn is_v6(self) -> bool {
        self.near.contains(':')
    }

    /// Bytes in front of an inner frame.
    fn overhead(self) -> usize {
        ETH + if self.is_v6() { 40 } else { 20 } + 16
    }
}

/// Gives an interface an address of the underlay and the neighbour at its other end.
fn underlay(ns: &Netns, dev: &str, own: &str, len: u8, neighbour: Option<(&str, &str)>) {
    if own.contains(':') {
        ns.sysctl(&[
            &format!("net.ipv6.conf.{dev}.accept_dad=0"),
            &format!("net.ipv6.conf.{dev}.router_solicitations=0"),
            &format!("net.ipv6.conf.{dev}.disable_ipv6=0"),
        ]);
        ns.ip(&format!("addr add {own}/{len} dev {dev} nodad"));
    } else {
        ns.ip(&format!("addr add {own}/{len} dev {dev}"));
    }
    if let Some((addr, mac)) = neighbour {
        ns.ip(&format!("neigh add {addr} lladdr {mac} dev {dev} nud permanent"));
    }
}

/// The kernel's end of the tunnel, of the network 10.
fn vtep(ns: &Netns, dev: &str, own: &str, other: &str, mac: &str, sums: &str) {
    ns.ip(&format!(
        "link add vx10 address {mac} type vxlan id 10 dstport 4789 local {own} remote {other} dev {dev} {sums}"
    ));
    ns.run(&["ethtool", "-K", "vx10", "tso", "off", "gso", "off", "gro", "off", "tx", "off", "rx", "off"]);
    ns.ip("link set vx10 mtu 1450 up");
}

/// Linerate's end of the tunnel, with the namespaces beside it.
struct Tunnel {
    station: Netns,
    far: Netns,
    forwarder: Forwarder,
    _vtep: Netns,
}

fn cabled() -> [Netns; 3] {
    let [station, middle, far] = [Netns::new(), Netns::new(), Netns::new()];
    cable((&station, "a0", STATION), (&middle, "l0", ACCESS));
    cable((&middle, "l1", NEAR), (&far, "k1", FAR));
    // The tunnel needs 50 bytes, and 20 more over IPv6.
    for (ns, dev) in [(&middle, "l1"), (&far, "k1")] {
        ns.ip(&format!("link set {dev} mtu 1600"));
    }
    [station, middle, far]
}

impl Tunnel {
    /// Both ends, each with the other as the remote; neighbours are asked for.
    fn new(outer: Outer, sums: &str) -> Self {
        let [station, middle, far] = cabled();
        underlay(&far, "k1", outer.far, outer.len, None);
        vtep(&far, "k1", outer.far, outer.near, REMOTE, sums);
        let forwarder = forwarder(&middle, outer, &[]);
        // Until the other end has answered, frames to it are dropped and counted, not held.
        wait_until("the other end's address", LIMIT, || forwarder.show("neighbours").to_string().contains(FAR));
        Self { station, far, forwarder, _vtep: middle }
    }
}

fn forwarder(netns: &Netns, outer: Outer, more: &[&str]) -> Forwarder {
    let Outer { near, far, len } = outer;
    let (address, network) = (format!("1 {near}/{len}"), format!("10 local {near} access 0"));
    let remote = format!("10 {far}");
    let mut args = vec!["vxlan", "--port", "eth:l0", "--port", "eth:l1", "--mtu", "1500,1600"];
    args.extend(["--address", &address, "--network", &network, "--remote", &remote]);
    args.extend(more);
    Forwarder::start(netns, &args)
}

/// An inner frame with IPv4 or IPv6 and UDP, or with neither, with `len` bytes of payload.
fn inner(dst: Mac, src: Mac, kind: u16, len: usize) -> Vec<u8> {
    let packet = match kind {
        IPV4 => ip4("10.10.0.1", "10.10.0.2", UDP, &udp("10.10.0.1", "10.10.0.2", 7, &bytes(len))),
        IPV6 => ip6("2001:db8:10::1", "2001:db8:10::2", UDP, &udp("2001:db8:10::1", "2001:db8:10::2", 7, &bytes(len))),
        _ => bytes(len),
    };
    eth(dst, src, kind, &packet)
}

/// Frames of every kind between two stations.
fn inners(dst: Mac, src: Mac) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (kind, lens) in [(IPV4, [18, 500, 1422]), (IPV6, [0, 501, 1402]), (0x88b5, [46, 999, 1450])] {
        all.extend(lens.map(|len| inner(dst, src, kind, len)));
    }
    let arp = eth(BROADCAST, src, ARP, &arp(1, (src, "10.10.0.1"), ([0; 6], "10.10.0.2")));
    all.extend([arp, inner([1, 0, 0x5e, 1, 2, 3], src, IPV4, 18), inner([2, 0, 0, 0, 0, 0x77], src, IPV4, 18)]);
    all
}

fn both_directions(outer: Outer, sums: &str) {
    let tunnel = Tunnel::new(outer, sums);
    let (a0, vx10) = (RawPort::open(&tunnel.station, "a0"), RawPort::open(&tunnel.far, "vx10"));
    let (station, remote) = (mac(STATION), mac(REMOTE));
    // First into the unknown: flooded, and learned.
    for frame in inners(remote, station) {
        a0.send(&frame);
        let what = format!("{} bytes out of the kernel's tunnel from {}, {sums}", frame.len(), outer.near);
        let arrived = vx10.expect(&what, LIMIT, |f| f[6..12] == station);
        assert_eq!(hex(&frame), hex(&arrived), "{} {sums}", outer.near);
    }
    for frame in inners(station, remote) {
        vx10.send(&frame);
        let what = format!("{} bytes out of Linerate's tunnel at {}, {sums}", frame.len(), outer.near);
        let arrived = a0.expect(&what, LIMIT, |f| f[6..12] == remote);
        assert_eq!(hex(&frame), hex(&arrived), "{} {sums}", outer.near);
    }
    let fdb = tunnel.forwarder.show("fdb").to_string();
    assert!(fdb.contains(STATION) && fdb.contains(REMOTE) && fdb.contains(outer.far), "{fdb}");
    assert!(tunnel.forwarder.show("networks").to_string().contains(outer.far));

    let (left, right) = tunnel.forwarder.ledger();
    assert_eq!(left, right, "the ledger of every frame");
}

#[test]
fn frames_cross_to_the_kernels_vxlan_device_and_back() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    both_directions(V4, "udpcsum");
    both_directions(V4, "noudpcsum");
    both_directions(V6, "udp6zerocsumrx");
}

/// The kernel's encapsulation of these frames: a bridge with the access port and the vxlan device.
fn kernel_encapsulates(outer: Outer, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let [station, middle, far] = cabled();
    underlay(&middle, "l1", outer.near, outer.len, Some((outer.far, FAR)));
    vtep(&middle, "l1", outer.near, outer.far, "02:4c:52:00:0c:00", "udpcsum");
    middle.ip("link add br0 type bridge stp_state 0 mcast_snooping 0");
    middle.ip("link set l0 master br0");
    middle.ip("link set vx10 master br0");
    middle.ip("link set br0 up");
    encapsulated(&station, &far, frames)
}

fn linerate_encapsulates(outer: Outer, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let [station, middle, far] = cabled();
    let neighbour = format!("1 {} {FAR}", outer.far);
    let forwarder = forwarder(&middle, outer, &["--neighbour", &neighbour]);
    let all = encapsulated(&station, &far, frames);
    let (left, right) = forwarder.ledger();
    assert_eq!(left, right, "the ledger of every frame");
    all
}

fn encapsulated(station: &Netns, far: &Netns, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (a0, k1) = (RawPort::open(station, "a0"), RawPort::open(far, "k1"));
    let one = |frame: &Vec<u8>| {
        a0.send(frame);
        k1.expect("an encapsulated frame", LIMIT, |f| f.ends_with(frame))
    };
    frames.iter().map(one).collect()
}

#[test]
fn encapsulation_is_the_kernels() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    for outer in [V4, V6] {
        let frames = inners(mac(REMOTE), mac(STATION));
        let (kernel, linerate) = (kernel_encapsulates(outer, &frames), linerate_encapsulates(outer, &frames));
        for (frame, (kernel, linerate)) in frames.iter().zip(kernel.into_iter().zip(linerate)) {
            assert_eq!(kernel.len(), frame.len() + outer.overhead());
            let ports =
                [&kernel, &linerate].map(|f| u16::from_be_bytes([f[outer.overhead() - 16], f[outer.overhead() - 15]]));
            // RFC 7348 5: from the dynamic range, so that it may be drawn from a hash of the inner frame.
            assert!(ports.iter().all(|&p| p >= 32768), "{ports:?}");
            assert_eq!(hex(&without_flow(outer, kernel)), hex(&without_flow(outer, linerate)));
        }
    }
}

/// Without what depends on a sender's own choice: the source port, which each hashes in its own way; with it the UDP
/// checksum (RFC 7348 5: SHOULD be zero over IPv4, and must not be over IPv6), and the identification with the checksum of
/// the IPv4 header.
fn without_flow(outer: Outer, frame: Vec<u8>) -> Vec<u8> {
    let mut frame = normalised(frame).unwrap();
    let udp = outer.overhead() - 16;
    frame[udp..udp + 2].fill(0);
    frame[udp + 6..udp + 8].fill(0);
    if !outer.is_v6() {
        frame[ETH + 4..ETH + 6].fill(0);
        frame[ETH + 10..ETH + 12].fill(0);
    }
    frame
}

/// Bytes sent each way by TCP.
const VOLUME: usize = 4 << 20;

/// Sends `VOLUME` bytes drawn from `seed` and reads as many; the sums of both.
fn exchange(mut stream: TcpStream, seed: u64) -> std::io::Result<[u64; 2]> {
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut sender = stream.try_clone()?;
    let writing = std::thread::spawn(move || {
        let (mut state, mut sum) = (seed, 0u64);
        for _ in 0..VOLUME / 4096 {
            let chunk: Vec<u8> = (0..4096)
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    (state >> 56) as u8
                })
                .collect();
            sum = digest(sum, &chunk);
            sender.write_all(&chunk)?;
        }
        Ok::<_, std::io::Error>(sum)
    });
    let (mut sum, mut chunk) = (0, vec![0; 4096]);
    for _ in 0..VOLUME / 4096 {
        stream.read_exact(&mut chunk)?;
        sum = digest(sum, &chunk);
    }
    let sent = writing.join().map_err(|_| std::io::Error::other("the writer panicked"))??;
    Ok([sent, sum])
}

/// A sum that sees bytes in the wrong place.
fn digest(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, &b| (sum ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

#[test]
fn a_tunnel_to_the_kernel_carries_tcp() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    for outer in [V4, V6] {
        let tunnel = Tunnel::new(outer, "udpcsum");
        tunnel.station.ip("link set a0 mtu 1450");
        tunnel.station.ip("addr add 10.10.0.1/24 dev a0");
        tunnel.far.ip("addr add 10.10.0.2/24 dev vx10");
        let at: SocketAddr = "10.10.0.2:5001".parse().unwrap();
        let listener = inside(&tunnel.far, || TcpListener::bind(at).unwrap());
        let server = std::thread::spawn(move || exchange(listener.accept()?.0, 1));
        let client = inside(&tunnel.station, || TcpStream::connect_timeout(&at, LIMIT).unwrap());
        let [sent, received] = exchange(client, 2).unwrap();
        assert_eq!([received, sent], server.join().unwrap().unwrap(), "what arrived is what was sent");
        let ports = tunnel.forwarder.show("ports");
        let sent = |n: usize| ports[n]["tx_frames"].as_u64().unwrap();
        // Both ways, in segments of the inner MTU.
        assert!(sent(0) >= (VOLUME / 1410) as u64 && sent(1) >= (VOLUME / 1410) as u64, "{ports}");
    }
}
