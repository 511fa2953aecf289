//! Details of flows against tshark, over connections with known faults.

use std::{
    collections::BTreeMap,
    net::{TcpListener, TcpStream},
    path::Path,
    process::Command,
};

use serde_json::Value;

use crate::between::Between;
use crate::logger::{directory, flowlog, records};
use crate::made::{netflow, wait_for_rest};
use crate::support::{exclusive, raw::inside, require, run, tester::BINARY, Needs, Netns};

/// What is known of one direction: least and greatest TTL, shortest and longest IP packet, changes of the DSCP,
/// retransmissions, out of order.
type Way = [u64; 7];

/// A connection, by the client's port: round trips in us, forward, back.
type Connections = BTreeMap<u64, (Option<u64>, Way, Way)>;

/// TTL, bytes and DSCP of each packet, and whether it is retransmitted, and out of order.
type Packets = Vec<[u64; 5]>;

fn capture(dir: &Path) -> String {
    let file = dir.join("tcp.pcap");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/flowlog/tcp.py");
    let made = Command::new("/usr/bin/python3").args([script, file.to_str().unwrap()]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    file.to_str().unwrap().to_owned()
}

fn by_tshark(capture: &str) -> Connections {
    let fields = [
        "tcp.srcport",
        "tcp.dstport",
        "ip.ttl",
        "ip.len",
        "ip.dsfield.dscp",
        "ipv6.hlim",
        "ipv6.plen",
        "ipv6.tclass.dscp",
        "tcp.analysis.retransmission",
        "tcp.analysis.out_of_order",
        "tcp.analysis.initial_rtt",
    ];
    let mut argv = vec!["tshark", "-r", capture, "-Y", "tcp", "-T", "fields", "-E", "occurrence=l"];
    fields.iter().for_each(|field| argv.extend(["-e", field]));
    let mut found: BTreeMap<u64, (Option<u64>, [Packets; 2])> = BTreeMap::new();
    for line in run(&argv).lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let n = |i: usize| columns[i].parse::<u64>().unwrap_or(0);
        let back = n(0) == 443;
        let (rtt, ways) = found.entry(if back { n(1) } else { n(0) }).or_default();
        // Of a tunnel, the last occurrence is the packet inside; an IPv6 packet has only the fields of IPv6.
        let [ttl, bytes, dscp] = if columns[5].is_empty() { [n(2), n(3), n(4)] } else { [n(5), n(6) + 40, n(7)] };
        let is = |i: usize| u64::from(!columns[i].is_empty());
        ways[usize::from(back)].push([ttl, bytes, dscp, is(8), is(9)]);
        if let Ok(seconds) = columns[10].parse::<f64>() {
            *rtt = Some((seconds * 1e6).round() as u64);
        }
    }
    let way = |packets: &[[u64; 5]]| {
        let column = |i: usize| packets.iter().map(move |packet| packet[i]);
        let most = |i: usize| column(i).max().unwrap_or(0);
        let least = |i: usize| column(i).min().unwrap_or(0);
        let changes = packets.windows(2).filter(|pair| pair[0][2] != pair[1][2]).count() as u64;
        [least(0), most(0), least(1), most(1), changes, column(3).sum(), column(4).sum()]
    };
    found.into_iter().map(|(port, (rtt, [forward, back]))| (port, (rtt, way(&forward), way(&back)))).collect()
}

fn by_us(lines: &[Value]) -> Connections {
    let way = |way: &Value| {
        let names =
            ["min_ttl", "max_ttl", "min_ip_bytes", "max_ip_bytes", "dscp_changes", "retransmissions", "out_of_order"];
        names.map(|name| way[name].as_u64().unwrap())
    };
    let connection = |record: &Value| {
        let details = &record["details"];
        let trips = ["server_rtt_ns", "client_rtt_ns"].map(|name| details[name].as_u64());
        // Each is in units of 16 ns.
        let rtt = trips[0].zip(trips[1]).map(|(server, client)| (server + client + 500) / 1000);
        (record["sport"].as_u64().unwrap(), (rtt, way(&details["forward"]), way(&details["back"])))
    };
    lines.iter().filter(|record| record["protocol"] == 6).map(connection).collect()
}

#[test]
fn details_are_those_of_tshark() {
    require(&[Needs::Network]);
    let dir = directory();
    let capture = capture(dir.path());
    let json = dir.path().join("flows.jsonl");
    let (port, json) = (format!("pcap:rx={capture}"), json.to_str().unwrap().to_owned());
    let args = ["--port", &port, "--once", "--listen", "off", "--flows", "1k", "--memory", "no-hugepages", "--quiet"];
    let more = ["--details", "--vxlan", "inner", "--json", &json];
    let ended = flowlog(dir.path(), &[&args[..], &more].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let (ours, theirs) = (by_us(&records(Path::new(&json))), by_tshark(&capture));
    assert_eq!(theirs.len(), 9);
    for (port, (rtt, forward, back)) in &theirs {
        let of = &ours[port];
        assert_eq!((&of.1, &of.2), (forward, back), "{port}");
        let near = of.0.zip(*rtt).is_none_or(|(a, b)| a.abs_diff(b) <= 1);
        assert!(of.0.is_some() == rtt.is_some() && near, "{port}: {:?} {rtt:?}", of.0);
    }
    // Faults there are, so that zeros do not agree with zeros.
    let sums = |i: usize| theirs.values().map(|(_, forward, back)| forward[i] + back[i]).sum::<u64>();
    assert!(sums(5) >= 7 && sums(6) >= 2 && sums(4) >= 7, "{theirs:?}");

    // Without the flag, nothing of it.
    let plain = dir.path().join("plain.jsonl").to_str().unwrap().to_owned();
    let ended = flowlog(dir.path(), &[&args[..], &["--json", &plain]].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(records(Path::new(&plain)).iter().all(|record| record.get("details").is_none()));
}

/// Over veth, the server answers while the logger sends it the SYN.
#[test]
fn a_live_connection_has_the_round_trips_of_both_sides() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Between::new(), directory());
    let json = dir.path().join("flows.jsonl");
    let logger = bench.logger(dir.path(), &["--details", "--json", json.to_str().unwrap()]);
    let listener = inside(&bench.hosts[1], || TcpListener::bind("10.0.0.2:4000").unwrap());
    for _ in 0..8 {
        let client = inside(&bench.hosts[0], || TcpStream::connect("10.0.0.2:4000").unwrap());
        drop((listener.accept().unwrap(), client));
    }
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    let records = records(&json);
    let trips = records
        .iter()
        .filter(|record| record["dport"] == 4000)
        .map(|record| ["server_rtt_ns", "client_rtt_ns"].map(|name| record["details"][name].as_u64().unwrap_or(0)));
    let trips: Vec<_> = trips.collect();
    // Through two kernels in less than a microsecond: not a round trip.
    assert!(trips.len() == 8 && trips.iter().flatten().all(|&ns| ns > 1000), "{trips:?}");
}

#[test]
fn another_program_reads_ttl_and_length() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (netns, dir) = (Netns::new(), directory());
    netns.ip("link set lo up");
    let capture = capture(dir.path());
    let ports = [(4739, "1283"), (4740, "1284")];
    let collectors = ports.map(|port| netflow(&netns, dir.path(), port));
    let (input, urls) = (format!("pcap:rx={capture}"), ports.map(|(port, _)| format!("udp://127.0.0.1:{port}")));
    let mut argv = vec![BINARY, "flowlog", "--quiet", "--port", &input, "--once", "--listen", "off", "--flows", "1k"];
    argv.extend(["--memory", "no-hugepages", "--vxlan", "inner", "--details"]);
    argv.extend(["--ipfix", &urls[0], "--netflow9", &urls[1]]);
    netns.run(&argv);
    ports.iter().for_each(|(_, hex)| wait_for_rest(&netns, hex));
    let theirs = by_tshark(&capture);
    for (collector, names) in collectors.iter().zip([
        [
            "sourceTransportPort",
            "destinationTransportPort",
            "minimumTTL",
            "maximumTTL",
            "minimumIpTotalLength",
            "maximumIpTotalLength",
        ],
        ["L4_SRC_PORT", "L4_DST_PORT", "MIN_TTL", "MAX_TTL", "MIN_PKT_LNGTH", "MAX_PKT_LNGTH"],
    ]) {
        let lines = collector.output();
        let read = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut seen = 0;
        for record in read.filter(|record| record.get(names[2]).is_some()) {
            let [from, to, figures @ ..] = names.map(|name| record[name].as_u64().unwrap());
            let back = from == 443;
            let (_, forward, other) = &theirs[if back { &to } else { &from }];
            assert_eq!(figures[..], if back { other } else { forward }[..4], "{record}");
            seen += 1;
        }
        assert_eq!(seen, 2 * theirs.len(), "{lines}");
    }
}
