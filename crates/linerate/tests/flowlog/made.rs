//! Captures with every header that the logger reads, made by scapy, against programs that others wrote: tshark reads the same
//! captures; nfcapd, nfacctd (pmacct) and the PyPI package `netflow` take the records, as IPFIX and as NetFlow v9.

use std::{
    collections::BTreeMap,
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use serde_json::Value;

use crate::{
    between::PATIENCE,
    logger::{directory, records},
    support::{ending::Ending, exclusive, require, run, tester::BINARY, wait_until, Needs, Netns, Process},
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;
const OSPF: u8 = 89;
const SCTP: u8 = 132;
/// In the captures of these names so many frames are not IP.
const NOT_IP: [(&str, u64); 1] = [("others", 6)];
/// Where the collectors listen: nfcapd, nfacctd and `netflow` for IPFIX, then for NetFlow v9; and in hexadecimal, as the
/// kernel lists them.
const PORTS: [(u16, &str); 6] =
    [(4739, "1283"), (4740, "1284"), (4741, "1285"), (4742, "1286"), (4743, "1287"), (4744, "1288")];
/// Where `scripts/setup.sh --test` puts the package.
pub const NETFLOW: &str = "/var/lib/linerate-tests/netflow";

/// Source, destination, protocol, ports; type and code of ICMP in place of the destination port.
type Key = (IpAddr, IpAddr, u8, u16, u16);

/// What a program says of a flow; where a program does not tell a figure, it is zero on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Seen {
    packets: u64,
    ip_bytes: u64,
    frame_bytes: u64,
    flags: u64,
    /// Ns since the Unix epoch.
    first: u64,
    last: u64,
}

type Flows = BTreeMap<Key, Seen>;

fn add(flows: &mut Flows, key: Key, seen: Seen) {
    let sum = flows.entry(key).or_insert(Seen { first: u64::MAX, ..Seen::default() });
    sum.packets += seen.packets;
    sum.ip_bytes += seen.ip_bytes;
    sum.frame_bytes += seen.frame_bytes;
    sum.flags |= seen.flags;
    sum.first = sum.first.min(seen.first);
    sum.last = sum.last.max(seen.last);
}

/// The flows as a program tells them that knows less: `change` forgets the rest.
fn less(flows: &Flows, change: impl Fn(Key, Seen) -> (Key, Seen)) -> Flows {
    let mut out = Flows::new();
    flows.iter().map(|(&key, &seen)| change(key, seen)).for_each(|(key, seen)| add(&mut out, key, seen));
    out
}

/// What most collectors keep: no bytes of frames, eight flags, milliseconds.
fn short(seen: Seen) -> Seen {
    let [first, last] = [seen.first, seen.last].map(whole_ms);
    Seen { frame_bytes: 0, flags: seen.flags & 0xff, first, last, ..seen }
}

#[track_caller]
fn same(name: &str, got: &Flows, want: &Flows) {
    for (key, want) in want {
        assert_eq!(got.get(key), Some(want), "{name}: {key:?}");
    }
    let more: Vec<_> = got.keys().filter(|key| !want.contains_key(key)).collect();
    assert!(more.is_empty(), "{name}: flows too many: {more:?}");
}

/// The captures, in their order.
fn captures(dir: &Path) -> Vec<PathBuf> {
    let made = dir.join("made");
    fs::create_dir(&made).unwrap();
    // Debian's Python, which has Debian's scapy.
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/flowlog/made.py");
    run(&["/usr/bin/python3", script, made.to_str().unwrap()]);
    let mut paths: Vec<PathBuf> = fs::read_dir(&made).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let named = |part: &str| paths.iter().find(|p| p.to_str().unwrap().contains(part)).unwrap().clone();
    // Two of pcapng: one with times in nanoseconds, one of two interfaces with different links.
    let (nano, raw, null) = (named("-nanoseconds"), named("-raw-ip"), named("-null"));
    let as_text = |path: &Path| path.to_str().unwrap().to_owned();
    run(&["editcap", "-F", "pcapng", &as_text(&nano), &as_text(&nano.with_extension("pcapng"))]);
    let both = null.with_file_name("99-two-interfaces.pcapng");
    run(&["mergecap", "-F", "pcapng", "-w", &as_text(&both), &as_text(&raw), &as_text(&null)]);
    for replaced in [&nano, &raw, &null] {
        fs::remove_file(replaced).unwrap();
        paths.retain(|path| path != replaced);
    }
    paths.extend([nano.with_extension("pcapng"), both]);
    paths
}

const FIELDS: [&str; 21] = [
    "frame.protocols",
    "frame.time_epoch",
    "frame.len",
    "ip.src",
    "ip.dst",
    "ip.proto",
    "ip.len",
    "ipv6.src",
    "ipv6.dst",
    "ipv6.nxt",
    "ipv6.plen",
    "ipv6.fraghdr.nxt",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.flags",
    "udp.srcport",
    "udp.dstport",
    "sctp.srcport",
    "sctp.dstport",
    "icmp.type",
    "icmp.code",
];

/// The innermost packets as tshark reads them; what an ICMP error quotes is not one.
fn by_tshark(capture: &Path) -> (Flows, u64) {
    let mut argv = vec!["tshark", "-n", "-r", capture.to_str().unwrap(), "-T", "fields"];
    argv.extend(["-E", "separator=;", "-E", "occurrence=a", "-E", "aggregator=,"]);
    // Frame by frame: no fragment is put together. ICMPv6 is asked for behind the others.
    argv.extend(["-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE", "-o", "tcp.desegment_tcp_streams:FALSE"]);
    let fields: Vec<&str> = FIELDS.into_iter().chain(["icmpv6.type", "icmpv6.code"]).collect();
    fields.iter().for_each(|field| argv.extend(["-e", field]));
    let (mut flows, mut other) = (Flows::new(), 0);
    for line in run(&argv).lines() {
        let values: Vec<Vec<&str>> =
            line.split(';').map(|v| v.split(',').filter(|v| !v.is_empty()).collect()).collect();
        let all = |name: &str| &values[fields.iter().position(|&f| f == name).unwrap()];
        let number = |text: &str| -> u64 {
            let hex = text.strip_prefix("0x").map(|hex| u64::from_str_radix(hex, 16));
            hex.unwrap_or_else(|| text.parse()).unwrap_or_else(|e| panic!("{text} of {line}: {e}"))
        };
        let layers: Vec<&str> = all("frame.protocols")[0].split(':').collect();
        let end = layers.iter().position(|l| l.starts_with("icmp")).map_or(layers.len(), |icmp| icmp + 1);
        let layers = &layers[..end];
        let Some(inner) = layers.iter().rposition(|&layer| layer == "ip" || layer == "ipv6") else {
            other += 1;
            continue;
        };
        let nth = layers[..inner].iter().filter(|&&layer| layer == layers[inner]).count();
        let of = |name: &str| number(all(name)[nth]);
        let six = layers[inner] == "ipv6";
        let (version, ip_bytes) = if six { ("ipv6", 40 + of("ipv6.plen")) } else { ("ip", of("ip.len")) };
        let address = |end: &str| all(&format!("{version}.{end}"))[nth].parse().unwrap();
        let last = |name: &str| all(name).last().map_or(0, |text| number(text));
        let ports = |name: &str| ["srcport", "dstport"].map(|end| last(&format!("{name}.{end}")) as u16);
        let kind = |name: &str| {
            let of = |what: &str| all(&format!("{name}.{what}")).first().map_or(0, |text| number(text) as u16);
            [0, of("type") << 8 | of("code")]
        };
        let upper = layers[inner..].iter().find_map(|&layer| match layer {
            "tcp" => Some((TCP, ports("tcp"))),
            "udp" => Some((UDP, ports("udp"))),
            "sctp" => Some((SCTP, ports("sctp"))),
            "icmp" => Some((ICMP, kind("icmp"))),
            "icmpv6" => Some((ICMP6, kind("icmpv6"))),
            "ospf" => Some((OSPF, [0; 2])),
            _ => None,
        });
        let (protocol, [sport, dport]) = upper.unwrap_or_else(|| {
            let next = if six { all("ipv6.fraghdr.nxt").last().map_or(0, |text| number(text)) } else { of("ip.proto") };
            (next as u8, [0; 2])
        });
        let flags = if protocol == TCP { last("tcp.flags") & 0x1ff } else { 0 };
        let (seconds, parts) = all("frame.time_epoch")[0].split_once('.').unwrap();
        let time = format!("{seconds}{parts:0<9}").parse().unwrap();
        // A packet of a link without Ethernet counts with an Ethernet header (and none of these is in a tunnel).
        let frame_bytes = if layers[0] == "eth" { number(all("frame.len")[0]) } else { 14 + ip_bytes };
        let seen = Seen { packets: 1, ip_bytes, frame_bytes, flags, first: time, last: time };
        add(&mut flows, (address("src"), address("dst"), protocol, sport, dport), seen);
    }
    (flows, other)
}

fn number(record: &Value, name: &str) -> u64 {
    record[name].as_u64().unwrap_or_else(|| panic!("{name} of {record}"))
}

fn address(record: &Value, names: &[&str]) -> IpAddr {
    names
        .iter()
        .find_map(|name| record[name].as_str())
        .unwrap_or_else(|| panic!("{names:?} of {record}"))
        .parse()
        .unwrap()
}

/// Our own records.
fn by_json(path: &Path) -> Flows {
    let mut flows = Flows::new();
    for record in records(path) {
        let port = |name: &str| record[name].as_u64().unwrap_or(0) as u16;
        let way = &record["forward"];
        let of = |name: &str| number(way, name);
        let seen = Seen {
            packets: of("packets"),
            ip_bytes: of("ip_bytes"),
            frame_bytes: of("frame_bytes"),
            flags: way["tcp_flags"].as_u64().unwrap_or(0),
            first: number(&record, "first_unix_ns"),
            last: number(&record, "last_unix_ns"),
        };
        let ends = (address(&record, &["src", "src"]), address(&record, &["dst", "dst"]));
        add(&mut flows, (ends.0, ends.1, number(&record, "protocol") as u8, port("sport"), port("dport")), seen);
    }
    flows
}

/// A date and time of day (UTC), in ns since the Unix epoch.
fn ns(date: &Value) -> u64 {
    let text = date.as_str().unwrap_or_else(|| panic!("{date}"));
    let time = humantime::parse_rfc3339_weak(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    time.duration_since(UNIX_EPOCH).unwrap().as_nanos().try_into().unwrap()
}

/// Whole milliseconds, in ns.
fn whole_ms(ns: u64) -> u64 {
    ns / MS * MS
}

/// What nfcapd stored, as nfdump tells it: eight flags, times in milliseconds, and no bytes of frames.
fn by_nfdump(store: &Path) -> Flows {
    let mut flows = Flows::new();
    let text = run(&["env", "TZ=UTC", "nfdump", "-R", store.to_str().unwrap(), "-q", "-o", "json"]);
    // The members of a list, without its brackets.
    let list: Vec<Value> = serde_json::from_str(&format!("[{}]", text.trim().trim_end_matches(','))).unwrap();
    for record in &list {
        let port = |name: &str| record[name].as_u64().unwrap_or(0) as u16;
        let protocol = number(record, "proto") as u8;
        let dport = if record.get("icmp_type").is_some() {
            port("icmp_type") << 8 | port("icmp_code")
        } else {
            port("dst_port")
        };
        let flags = record["tcp_flags"].as_str().unwrap_or_default();
        let flags = flags.bytes().fold(0, |sum, flag| sum << 1 | u64::from(flag != b'.'));
        let flags = if protocol == TCP { flags } else { 0 };
        let (packets, ip_bytes) = (number(record, "in_packets"), number(record, "in_bytes"));
        assert_eq!(record["input_snmp"], 1, "{record}");
        let ends = (address(record, &["src4_addr", "src6_addr"]), address(record, &["dst4_addr", "dst6_addr"]));
        let [first, last] = ["first", "last"].map(|end| ns(&record[end]));
        let seen = Seen { packets, ip_bytes, frame_bytes: 0, flags, first, last };
        add(&mut flows, (ends.0, ends.1, protocol, port("src_port"), dport), seen);
    }
    flows
}

/// What nfacctd wrote. Of IPFIX it tells no type and code of ICMP, and zero for the flags: it reads the first of their two
/// bytes.
fn by_pmacct(path: &Path) -> Flows {
    let mut flows = Flows::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let protocol = match record["ip_proto"].as_str().unwrap() {
            "tcp" => TCP,
            "udp" => UDP,
            "icmp" => ICMP,
            "ipv6-icmp" => ICMP6,
            "sctp" => SCTP,
            "ospf" => OSPF,
            other => other.parse().unwrap_or_else(|e| panic!("{other}: {e}")),
        };
        assert_eq!(number(&record, "iface_in"), 1, "{record}");
        let (packets, ip_bytes) = (number(&record, "packets"), number(&record, "bytes"));
        let flags = if protocol == TCP { record["tcp_flags"].as_str().unwrap().parse().unwrap() } else { 0 };
        let [first, last] = ["start", "end"].map(|end| ns(&record[format!("timestamp_{end}")]));
        let seen = Seen { packets, ip_bytes, frame_bytes: 0, flags, first, last };
        let port = |name: &str| number(&record, name) as u16;
        let ends = (address(&record, &["ip_src", "ip_src"]), address(&record, &["ip_dst", "ip_dst"]));
        add(&mut flows, (ends.0, ends.1, protocol, port("port_src"), port("port_dst")), seen);
    }
    flows
}

fn wait_for_port(netns: &Netns, process: &mut Process, hex: &str) {
    wait_until("the collector listens", PATIENCE, || {
        assert!(process.alive(), "scripts/setup.sh --test installs it: {}", process.tail());
        netns.run(&["cat", "/proc/net/udp"]).contains(&format!(":{hex} "))
    });
}

pub fn nfcapd(netns: &Netns, dir: &Path, (port, hex): (u16, &str)) -> (Process, PathBuf) {
    let store = dir.join(format!("nfcapd-{port}"));
    fs::create_dir(&store).unwrap();
    let (path, number) = (store.to_str().unwrap(), port.to_string());
    let argv = ["nfcapd", "-w", path, "-b", "127.0.0.1", "-p", &number, "-t", "3600"].map(str::to_owned);
    let mut process = Process::spawn(&argv, Some(netns), &[], &dir.join(format!("nfcapd-{port}.log")));
    wait_for_port(netns, &mut process, hex);
    (process, store)
}

/// Seconds from 1900, where NTP begins, to 1970.
const NTP_TO_UNIX: u64 = 2_208_988_800;

/// What `netflow` read: of IPFIX all figures, of NetFlow v9 (`v9`) no bytes of frames and times in milliseconds; and its other records,
/// which are options.
fn by_netflow(lines: &str, v9: bool) -> (Flows, Vec<Value>) {
    let (mut flows, mut options) = (Flows::new(), Vec::new());
    for line in lines.lines() {
        let record: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let of = |name: &str| number(&record, name);
        let port = |name: &str| record[name].as_u64().unwrap_or(0) as u16;
        let (ends, key, seen) = if v9 {
            let ends =
                ["SRC", "DST"].map(|end| address(&record, &[&format!("IPV4_{end}_ADDR"), &format!("IPV6_{end}_ADDR")]));
            let flags = if of("PROTOCOL") == 6 { of("TCP_FLAGS") } else { 0 };
            let [first, last] = ["FIRST", "LAST"].map(|end| (of("boot_ms") + of(&format!("{end}_SWITCHED"))) * MS);
            let seen = Seen { packets: of("IN_PKTS"), ip_bytes: of("IN_BYTES"), frame_bytes: 0, flags, first, last };
            assert_eq!(of("INPUT_SNMP"), 1, "{record}");
            (ends, (of("PROTOCOL") as u8, port("L4_SRC_PORT"), port("L4_DST_PORT")), seen)
        } else if record.get("octetDeltaCount").is_none() {
            options.push(record);
            continue;
        } else {
            let ends = ["source", "destination"].map(|end| {
                let four =
                    record[format!("{end}IPv4Address")].as_u64().map(|bits| IpAddr::from((bits as u32).to_be_bytes()));
                let six = record[format!("{end}IPv6Address")].as_str().map(|bits| bits.parse::<u128>().unwrap());
                four.or(six.map(|bits| IpAddr::from(bits.to_be_bytes()))).unwrap()
            });
            let time = |name: &str| {
                let ntp = &record[format!("{name}Nanoseconds")];
                let [seconds, parts] = [0, 1].map(|i| ntp[i].as_u64().unwrap());
                let ns = (seconds - NTP_TO_UNIX) * 1_000_000_000 + ((parts * 1_000_000_000 + (1 << 31)) >> 32);
                assert_eq!(of(&format!("{name}Milliseconds")), ns / 1_000_000, "{record}");
                ns
            };
            let seen = Seen {
                packets: of("packetDeltaCount"),
                ip_bytes: of("octetDeltaCount"),
                frame_bytes: of("layer2OctetDeltaCount"),
                flags: of("tcpControlBits"),
                first: time("flowStart"),
                last: time("flowEnd"),
            };
            assert_eq!((of("ingressInterface"), of("egressInterface")), (1, 0), "{record}");
            let icmp = port("icmpTypeCodeIPv4") | port("icmpTypeCodeIPv6");
            let dport = port("destinationTransportPort") | icmp;
            (ends, (of("protocolIdentifier") as u8, port("sourceTransportPort"), dport), seen)
        };
        add(&mut flows, (ends[0], ends[1], key.0, key.1, key.2), seen);
    }
    (flows, options)
}

pub fn netflow(netns: &Netns, dir: &Path, (port, hex): (u16, &str)) -> Process {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/flowlog/netflow_lines.py");
    let argv = ["/usr/bin/python3", script, &port.to_string()].map(str::to_owned);
    let env = [("PYTHONPATH", Path::new(NETFLOW))];
    let mut process = Process::spawn(&argv, Some(netns), &env, &dir.join(format!("netflow-{port}.log")));
    wait_for_port(netns, &mut process, hex);
    process
}

/// Waits until a collector has read all that is in its socket, and has had the time to write it.
pub fn wait_for_rest(netns: &Netns, hex: &str) {
    wait_until("the collector reads", PATIENCE, || {
        let sockets = netns.run(&["cat", "/proc/net/udp"]);
        sockets.lines().filter(|l| l.contains(&format!(":{hex} "))).all(|l| l.contains(":00000000 "))
    });
    std::thread::sleep(Duration::from_millis(300));
}

/// nfacctd, which ends its plugin only where it is interrupted.
struct Nfacctd {
    process: Process,
    out: PathBuf,
}

impl Drop for Nfacctd {
    fn drop(&mut self) {
        self.process.signal("INT");
        self.process.wait_end(PATIENCE);
    }
}

fn nfacctd(netns: &Netns, dir: &Path, (port, hex): (u16, &str)) -> Nfacctd {
    let [config, out, pid] = ["conf", "out", "pid"].map(|what| dir.join(format!("nfacctd-{port}.{what}")));
    let lines = [
        "daemonize: false".to_owned(),
        format!("pidfile: {}", pid.display()),
        "nfacctd_ip: 127.0.0.1".to_owned(),
        format!("nfacctd_port: {port}"),
        "plugins: print".to_owned(),
        "aggregate: src_host, dst_host, src_port, dst_port, proto, tcpflags, in_iface, timestamp_start, timestamp_end"
            .to_owned(),
        "print_output: json".to_owned(),
        format!("print_output_file: {}", out.display()),
        // It writes at its end.
        "print_refresh_time: 3600".to_owned(),
    ];
    fs::write(&config, lines.join("\n") + "\n").unwrap();
    let argv = ["nfacctd", "-f", config.to_str().unwrap()].map(str::to_owned);
    let env = [("TZ", Path::new("UTC"))];
    let mut process = Process::spawn(&argv, Some(netns), &env, &dir.join(format!("nfacctd-{port}.log")));
    wait_for_port(netns, &mut process, hex);
    Nfacctd { process, out }
}

/// A logger of one capture, whose records have one direction each.
fn logger(input: &str) -> Vec<&str> {
    let mut argv = vec![BINARY, "flowlog", "--quiet", "--port", input, "--once", "--listen", "off", "--flows", "1k"];
    argv.extend(["--biflow", "off", "--memory", "no-hugepages"]);
    argv
}

#[test]
fn captures_with_every_header_are_logged_as_others_read_them() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (netns, dir) = (Netns::new(), directory());
    netns.ip("link set lo up");
    let captures = captures(dir.path());
    assert!(captures.len() >= 25, "{}", captures.len());
    let stores = [nfcapd(&netns, dir.path(), PORTS[0]), nfcapd(&netns, dir.path(), PORTS[3])];
    let files = [nfacctd(&netns, dir.path(), PORTS[1]), nfacctd(&netns, dir.path(), PORTS[4])];
    let lines = [netflow(&netns, dir.path(), PORTS[2]), netflow(&netns, dir.path(), PORTS[5])];

    let mut every = Flows::new();
    for capture in &captures {
        let name = capture.file_stem().unwrap().to_str().unwrap();
        let (want, other) = by_tshark(capture);
        let expected = NOT_IP.iter().find(|(part, _)| name.ends_with(part)).map_or(0, |&(_, n)| n);
        assert!(want.len() >= 2 && other == expected, "{name}: {} flows, {other} frames are not IP", want.len());
        let (input, json) = (format!("pcap:rx={}", capture.display()), dir.path().join(format!("{name}.jsonl")));
        let mut argv = logger(&input);
        argv.extend(["--check-pools", "--json", json.to_str().unwrap()]);
        ["--vxlan", "--gre", "--ipip", "--gtpu", "--mpls"].iter().for_each(|tunnel| argv.extend([tunnel, "inner"]));
        // nfacctd reads one byte of flags.
        let flags = |port: u16| if port == PORTS[1].0 { ",flags=8" } else { "" };
        let urls = PORTS.map(|(port, _)| format!("udp://127.0.0.1:{port}{}", flags(port)));
        for (n, url) in urls.iter().enumerate() {
            argv.extend([if n < 3 { "--ipfix" } else { "--netflow9" }, url]);
        }
        let said = netns.run(&argv);
        assert_eq!(Ending::of(&said).not_ip, expected, "{name}: {said}");
        same(name, &by_json(&json), &want);
        for (key, seen) in want {
            add(&mut every, key, seen);
        }
    }

    PORTS.iter().for_each(|(_, hex)| wait_for_rest(&netns, hex));
    for (collector, v9) in lines.iter().zip([false, true]) {
        let (got, options) = by_netflow(&collector.output(), v9);
        let want = less(&every, |key, seen| (key, if v9 { short(seen) } else { seen }));
        same(if v9 { "netflow, v9" } else { "netflow" }, &got, &want);
        let named = |option: &Value| option["interfaceName"].as_str().is_some_and(|name| name.starts_with("pcap:rx="));
        assert!(v9 || options.iter().any(|option| option["ingressInterface"] == 1 && named(option)), "{options:?}");
    }

    let flagged = less(&every, |key, seen| (key, short(seen)));
    for (mut process, store) in stores {
        assert_eq!(process.end(PATIENCE).and_then(|s| s.code()), Some(0), "{}", process.output());
        same(store.file_name().unwrap().to_str().unwrap(), &by_nfdump(&store), &flagged);
    }
    for (collector, v9) in files.into_iter().zip([false, true]) {
        // ICMP's type and code stand in the destination port of NetFlow v9.
        let plain = less(&every, |(src, dst, protocol, sport, dport), seen| {
            let dport = if [ICMP, ICMP6].contains(&protocol) && !v9 { 0 } else { dport };
            // Times of NetFlow v9 it tells in seconds, rounded up.
            let [first, last] = [seen.first, seen.last].map(|ns| ns.div_ceil(SECOND) * SECOND);
            let seen = if v9 { Seen { first, last, ..short(seen) } } else { short(seen) };
            ((src, dst, protocol, sport, dport), seen)
        });
        let path = collector.out.clone();
        drop(collector);
        same(path.file_name().unwrap().to_str().unwrap(), &by_pmacct(&path), &plain);
    }
}

#[test]
fn another_program_reads_how_frames_were_sampled() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (netns, dir) = (Netns::new(), directory());
    netns.ip("link set lo up");
    let collector = netflow(&netns, dir.path(), PORTS[2]);
    let input = format!("pcap:rx={}", captures(dir.path())[0].display());
    let url = format!("udp://127.0.0.1:{}", PORTS[2].0);
    let mut sampled = Vec::new();
    for sample in ["1/3", "1/3,random"] {
        let mut argv = logger(&input);
        argv.extend(["--sample", sample, "--ipfix", &url]);
        let said = netns.run(&argv);
        wait_for_rest(&netns, PORTS[2].1);
        let (flows, options) = by_netflow(&collector.output(), false);
        let packets: u64 = flows.values().map(|seen| seen.packets).sum();
        let how = options.iter().rfind(|option| option.get("samplingInterval").is_some());
        sampled.push((packets, how.unwrap_or_else(|| panic!("{options:?}, {said}")).clone()));
    }
    let [(every_third, count), (both, random)] = &sampled[..] else { panic!("{sampled:?}") };
    // Of 37 packets; PSAMP's selectors (RFC 5477 8.2): 1 is count-based, 3 is n-out-of-N.
    assert_eq!(*every_third, 12);
    assert!((1..37).contains(&(both - every_third)), "{sampled:?}");
    let of = |how: &Value| ["samplingInterval", "samplingAlgorithm", "selectorAlgorithm"].map(|name| number(how, name));
    assert_eq!((of(count), of(random)), ([3, 1, 1], [3, 2, 3]));
    assert_eq!(["samplingPacketInterval", "samplingPacketSpace"].map(|name| number(count, name)), [1, 2]);
    assert_eq!(["samplingSize", "samplingPopulation"].map(|name| number(random, name)), [1, 3]);
}
