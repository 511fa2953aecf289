//! Two routers between two raw ports each, set up alike but for who routes.
//!
//! ```text
//!   stations          router
//!      t0 ------------ d0 \
//!                           the kernel, or linerate forward
//!      t1 ------------ d1 /
//! ```

use std::time::Duration;

use crate::support::{
    forwarder::Forwarder,
    frames::{edit4, eth, ethertype, hex, ip4, mac, udp, Mac, ARP, ETH, IPV4, IPV6, UDP},
    raw::{cable, RawPort},
    Netns,
};

/// The stations' MAC addresses, the router's, and that of a second host beside station 1.
pub const STATION: [&str; 2] = ["02:4c:52:00:00:00", "02:4c:52:00:00:01"];
pub const ROUTER: [&str; 2] = ["02:4c:52:00:01:00", "02:4c:52:00:01:01"];
pub const HOST9: &str = "02:4c:52:00:00:19";

/// Largest IP packets of the two links.
const MTU: [u32; 2] = [1500, 1280];

const ADDRESSES: [(usize, &str); 4] =
    [(0, "10.255.0.1/24"), (1, "10.255.1.1/24"), (0, "2001:db8:0:a::1/64"), (1, "2001:db8:0:b::1/64")];

const NEIGHBOURS: [(usize, &str, &str); 8] = [
    (0, "fe80::2", STATION[0]),
    (0, "10.255.0.2", STATION[0]),
    (1, "10.255.1.2", STATION[1]),
    (1, "10.255.1.9", HOST9),
    (0, "2001:db8:0:a::2", STATION[0]),
    (1, "2001:db8:0:b::2", STATION[1]),
    (1, "2001:db8:0:b::9", HOST9),
    (1, "fe80::19", HOST9),
];

/// Destination, gateway (none: dropped), and the link of a gateway that needs one.
const ROUTES: [(&str, Option<&str>, Option<usize>); 11] = [
    ("198.18.0.0/16", Some("10.255.0.2"), None),
    ("198.19.0.0/16", Some("10.255.1.2"), None),
    ("198.19.9.0/24", Some("10.255.1.9"), None),
    ("198.19.9.128/25", Some("10.255.1.2"), None),
    ("198.19.9.200/32", Some("10.255.0.2"), None),
    ("203.0.113.0/24", None, None),
    ("2001:2:0:1::/64", Some("2001:db8:0:a::2"), None),
    ("2001:2:0:2::/64", Some("2001:db8:0:b::2"), None),
    ("2001:2:0:2:8000::/65", Some("2001:db8:0:b::9"), None),
    ("2001:2:0:3::/64", Some("fe80::19"), Some(1)),
    ("2001:2:0:dead::/64", None, None),
];

/// What is expected of a case.
#[derive(Debug, Clone, Copy)]
pub enum Expect {
    /// The same from both.
    Same,
    /// A difference that is meant: frames by port from the kernel and from Linerate. The reason stands at the case.
    Counts { kernel: [usize; 2], linerate: [usize; 2] },
}

/// A frame and where it goes in.
#[derive(Debug, Clone)]
pub struct Case {
    pub name: String,
    pub port: usize,
    pub frame: Vec<u8>,
    pub expect: Expect,
}

/// The cases, as they are written.
#[derive(Default)]
pub struct Cases(pub Vec<Case>);

impl Cases {
    /// A frame that both must treat alike.
    pub fn same(&mut self, name: &str, port: usize, frame: Vec<u8>) {
        self.0.push(Case { name: name.to_owned(), port, frame, expect: Expect::Same });
    }

    /// An IP packet to the router's MAC address that both must treat alike.
    pub fn packet(&mut self, name: &str, port: usize, packet: &[u8]) {
        self.same(name, port, to_router(port, packet));
    }

    /// An IP packet that Linerate treats differently on purpose.
    pub fn differs(&mut self, name: &str, port: usize, packet: &[u8], kernel: [usize; 2], linerate: [usize; 2]) {
        let expect = Expect::Counts { kernel, linerate };
        self.0.push(Case { name: name.to_owned(), port, frame: to_router(port, packet), expect });
    }
}

/// An IP packet in a frame from the station on `port` to the router.
pub fn to_router(port: usize, packet: &[u8]) -> Vec<u8> {
    let ethertype = if packet.first().is_some_and(|b| b >> 4 == 6) { IPV6 } else { IPV4 };
    eth(mac(ROUTER[port]), mac(STATION[port]), ethertype, packet)
}

/// One router and the two raw ports beside it.
pub struct Side {
    ports: [RawPort; 2],
    forwarder: Option<Forwarder>,
    _router: Netns,
    _stations: Netns,
}

impl Side {
    fn cabled() -> (Netns, Netns) {
        let (stations, router) = (Netns::new(), Netns::new());
        for port in 0..2 {
            cable((&stations, &format!("t{port}"), STATION[port]), (&router, &format!("d{port}"), ROUTER[port]));
        }
        (stations, router)
    }

    /// The kernel as the router.
    pub fn kernel() -> Self {
        let (stations, router) = Self::cabled();
        router.sysctl(&[
            "net.ipv4.ip_forward=1",
            "net.ipv4.conf.all.rp_filter=0",
            "net.ipv4.conf.default.rp_filter=0",
            "net.ipv4.conf.all.send_redirects=0",
            // ARP is answered for the link's own addresses only.
            "net.ipv4.conf.all.arp_ignore=1",
            // No error is withheld.
            "net.ipv4.icmp_ratelimit=0",
            "net.ipv4.icmp_ratemask=0",
            "net.ipv4.icmp_msgs_per_sec=1000000",
            "net.ipv4.icmp_msgs_burst=100000",
            "net.ipv6.icmp.ratelimit=0",
            // Its own packets would have flow labels drawn by chance.
            "net.ipv6.auto_flowlabels=0",
            "net.ipv6.conf.default.accept_dad=0",
            "net.ipv6.conf.default.accept_ra=0",
            "net.ipv6.conf.default.router_solicitations=0",
            "net.ipv6.conf.default.mldv2_unsolicited_report_interval=10",
        ]);
        for (port, mtu) in MTU.iter().enumerate() {
            router.sysctl(&[
                &format!("net.ipv4.conf.d{port}.rp_filter=0"),
                &format!("net.ipv4.conf.d{port}.send_redirects=0"),
                &format!("net.ipv6.conf.d{port}.accept_dad=0"),
                &format!("net.ipv6.conf.d{port}.accept_ra=0"),
                &format!("net.ipv6.conf.d{port}.router_solicitations=0"),
                &format!("net.ipv6.conf.d{port}.mldv2_unsolicited_report_interval=10"),
                &format!("net.ipv6.conf.d{port}.disable_ipv6=0"),
                // Neighbours are not probed while the cases run.
                &format!("net.ipv6.neigh.d{port}.delay_first_probe_time=60"),
                &format!("net.ipv4.neigh.d{port}.delay_first_probe_time=60"),
                // One that does not answer is given up soon.
                &format!("net.ipv4.neigh.d{port}.retrans_time_ms=200"),
                &format!("net.ipv6.neigh.d{port}.retrans_time_ms=200"),
            ]);
            router.ip(&format!("link set d{port} mtu {mtu}"));
        }
        router.sysctl(&["net.ipv6.conf.all.forwarding=1"]);
        for (port, addr) in ADDRESSES {
            let nodad = if addr.contains(':') { "nodad" } else { "" };
            router.ip(&format!("addr add {addr} dev d{port} {nodad}"));
        }
        for (port, addr, mac) in NEIGHBOURS {
            router.ip(&format!("neigh add {addr} lladdr {mac} dev d{port} nud permanent"));
        }
        for (prefix, gateway, link) in ROUTES {
            let link = link.map_or(String::new(), |port| format!("dev d{port}"));
            router.ip(&match gateway {
                Some(gateway) => format!("route add {prefix} via {gateway} {link}"),
                None => format!("route add blackhole {prefix}"),
            });
        }
        Self::opened(stations, router, None)
    }

    /// Linerate as the router.
    pub fn linerate() -> Self {
        let (stations, router) = Self::cabled();
        let mtu = format!("{},{}", MTU[0], MTU[1]);
        let mut args: Vec<String> =
            ["l3", "--port", "eth:d0", "--port", "eth:d1", "--mtu", &mtu].map(str::to_owned).to_vec();
        let mut add = |flag: &str, value: String| args.extend([flag.to_owned(), value]);
        for (port, addr) in ADDRESSES {
            add("--address", format!("{port} {addr}"));
        }
        for (port, addr, mac) in NEIGHBOURS {
            add("--neighbour", format!("{port} {addr} {mac}"));
        }
        for (prefix, gateway, link) in ROUTES {
            let link = link.map_or(String::new(), |port| format!(" port {port}"));
            add("--route", gateway.map_or(format!("{prefix} drop"), |gateway| format!("{prefix} via {gateway}{link}")));
        }
        let forwarder = Forwarder::start(&router, &args.iter().map(String::as_str).collect::<Vec<_>>());
        Self::opened(stations, router, Some(forwarder))
    }

    fn opened(stations: Netns, router: Netns, forwarder: Option<Forwarder>) -> Self {
        let ports = [RawPort::open(&stations, "t0"), RawPort::open(&stations, "t1")];
        let side = Self { ports, forwarder, _router: router, _stations: stations };
        // What the kernel says of itself when an interface comes up ends soon.
        std::thread::sleep(Duration::from_millis(100));
        for port in [0, 1] {
            side.settle(port, u32::MAX - port as u32, &mut [Vec::new(), Vec::new()]);
        }
        side
    }

    pub fn forwarder(&self) -> &Forwarder {
        self.forwarder.as_ref().expect("this side is Linerate")
    }

    pub fn ports(&self) -> &[RawPort; 2] {
        &self.ports
    }

    /// What comes out of the two ports when a frame goes in, normalised.
    pub fn outcome(&self, port: usize, frame: &[u8], number: u32) -> [Vec<Vec<u8>>; 2] {
        let mut out = [Vec::new(), Vec::new()];
        self.ports[port].send(frame);
        self.settle(port, number, &mut out);
        out.map(|frames| frames.into_iter().filter_map(normalised).collect())
    }

    /// Waits until what went in by `port` has been seen to: a frame behind it has come out at the other port, and then
    /// one from there at this one. Whatever else comes out until then is collected.
    fn settle(&self, port: usize, number: u32, out: &mut [Vec<Vec<u8>>; 2]) {
        for from in [port, 1 - port] {
            let (sent, mark) = sentinel(from, number);
            let is_mark = |frame: &[u8]| frame.windows(mark.len()).any(|w| w == mark);
            // A frame may be lost on a busy machine.
            let came = (0..5).any(|_| {
                self.ports[from].send(&sent);
                self.ports[1 - from].collect_until(Duration::from_secs(2), is_mark, &mut out[1 - from]).is_some()
            });
            assert!(came, "port {from} to {}: nothing is forwarded", 1 - from);
        }
        // Frames of one burst may leave in another order: exceptions after those that are only forwarded.
        for (port, out) in self.ports.iter().zip(out) {
            while let Some(frame) = port.recv() {
                out.push(frame);
            }
        }
    }
}

const MARK: &[u8] = b"sentinel";

/// A frame that is forwarded from one port to the other whatever the case, and what to know it by.
fn sentinel(from: usize, number: u32) -> (Vec<u8>, Vec<u8>) {
    let mark = [MARK, &number.to_be_bytes(), &[from as u8]].concat();
    let (src, dst) = if from == 0 { ("198.18.255.9", "198.19.255.9") } else { ("198.19.255.9", "198.18.255.9") };
    (to_router(from, &ip4(src, dst, UDP, &udp(src, dst, 9, &mark))), mark)
}

/// A frame without what may differ; `None` for one that is not compared at all.
pub fn normalised(mut frame: Vec<u8>) -> Option<Vec<u8>> {
    // A sentinel that was sent twice.
    if frame.windows(MARK.len()).any(|w| w == MARK) {
        return None;
    }
    let word = |at: usize| frame.get(at..at + 2).map(|w| usize::from(u16::from_be_bytes([w[0], w[1]])));
    match ethertype(&frame) {
        IPV4 => {
            // Padding behind the packet is not part of it: the kernel cuts it off, a frame on Ethernet has it.
            frame.truncate(ETH + word(ETH + 2)?);
            // The identification of packets that the router itself makes is its own affair, and with it the checksum
            // of their header.
            let own = ADDRESSES.iter().filter_map(|(_, a)| a.split('/').next()?.parse::<std::net::Ipv4Addr>().ok());
            // Timestamps tell the time.
            if frame.get(ETH + 9) == Some(&1) && frame.get(ETH + 20) == Some(&14) {
                frame.get_mut(ETH + 22..ETH + 24)?.fill(0);
                frame.get_mut(ETH + 32..ETH + 40)?.fill(0);
            }
            if own.map(|a| a.octets()).any(|a| frame.get(ETH + 12..ETH + 16) == Some(&a[..])) {
                let header = ETH + usize::from(frame[ETH] & 0xf) * 4;
                let packet = edit4(frame.get(ETH..header)?.to_vec(), |p| p[4..6].fill(0));
                // Right before, right after: a wrong checksum stays visible.
                let right = packet::checksum::fold(packet::checksum::sum(&frame[ETH..header])) == 0xffff;
                frame[ETH..header].copy_from_slice(&packet);
                if !right {
                    frame[ETH + 10..ETH + 12].fill(0xee);
                }
            }
        }
        IPV6 => {
            frame.truncate(ETH + 40 + word(ETH + 4)?);
            // The kernel reports the groups its interfaces are in (MLDv2) when it sees fit.
            if frame.get(ETH + 6) == Some(&0) && frame.get(ETH + 48) == Some(&143) {
                return None;
            }
        }
        // ARP for IPv4 is 28 bytes; the rest is padding.
        ARP => frame.truncate(ETH + 28),
        _ => {}
    }
    Some(frame)
}

/// Plays the cases to both and says what is not as expected. With `twins` both are kernels.
pub fn compare(cases: &[Case], kernel: &Side, other: &Side, twins: bool) -> Vec<String> {
    let mut differences = Vec::new();
    for (case, number) in cases.iter().zip(1..) {
        let outcomes = [kernel, other].map(|side| side.outcome(case.port, &case.frame, number));
        let counts = outcomes.clone().map(|out| out.map(|frames| frames.len()));
        let fine = match case.expect {
            Expect::Counts { kernel, linerate } if !twins => counts == [kernel, linerate],
            _ => outcomes[0] == outcomes[1],
        };
        if !fine {
            let side = |out: &[Vec<Vec<u8>>; 2]| {
                let each = |n: usize| out[n].iter().map(move |f| format!("\n      out of {n}, {}", hex(f)));
                let all = each(0).chain(each(1)).collect::<String>();
                if all.is_empty() {
                    "\n      nothing".to_owned()
                } else {
                    all
                }
            };
            differences.push(format!(
                "{}: (expected {:?})\n  into {}, {}\n  kernel:{}\n  other:{}",
                case.name,
                case.expect,
                case.port,
                hex(&case.frame),
                side(&outcomes[0]),
                side(&outcomes[1])
            ));
        }
    }
    differences
}

/// The bytes of a MAC address by port.
pub fn station(port: usize) -> Mac {
    mac(STATION[port])
}
