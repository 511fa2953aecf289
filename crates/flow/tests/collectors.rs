//! Our IPFIX read by others: nfcapd and nfdump, nfacctd, and tshark.
#![allow(clippy::unwrap_used, clippy::panic)]

mod ipfix_support;

use std::{
    fs,
    net::UdpSocket,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use flow::{
    export::{ExportSpec, Exporter, SinkSpec, UdpSpec},
    ipfix::{EncodeSpec, Encoder, Port, Statistics, Version},
    Distinguish, Record,
};
use ipfix_support::{have, record, wait_for, Given};

/// Ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn output(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {args:?}: {out}{err}");
    out.into_owned()
}

/// A port nobody has; nfcapd cannot be asked for any.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Exports the records to a collector, and waits until it has read them; `hex` is its port as the kernel lists it.
fn export(records: &[Record], spec: &ExportSpec, hex: &str) {
    let given = Given::default();
    given.put(records.iter().copied());
    let exporter = Exporter::start(spec, given.boxed(), Arc::new(|_| ())).unwrap();
    let totals = exporter.finish(Duration::from_secs(20))[0].totals.clone();
    assert_eq!((totals.sent, totals.dropped), (records.len() as u64, 0));
    // It has read all that is in its socket when the queue there is empty.
    wait_for("the collector to read", || {
        let sockets = fs::read_to_string("/proc/net/udp").unwrap();
        sockets.lines().filter(|line| line.contains(hex)).all(|line| line.contains(":00000000 "))
    });
    std::thread::sleep(Duration::from_millis(300));
}

/// Exports the records to an nfcapd, and gives what nfdump reads of its file.
fn through_nfcapd(records: &[Record], biflow: bool, distinguish: Distinguish) -> Vec<serde_json::Value> {
    through_nfcapd_as(Version::Ipfix, records, biflow, distinguish)
}

fn through_nfcapd_as(
    version: Version,
    records: &[Record],
    biflow: bool,
    distinguish: Distinguish,
) -> Vec<serde_json::Value> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let port = free_port();
    let nfcapd = Command::new("nfcapd")
        .args(["-w", path, "-b", "127.0.0.1", "-p", &port.to_string(), "-t", "3600", "-B", "2000000"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut nfcapd = Process(nfcapd);
    // It listens when the kernel has its socket.
    let hex = format!(":{port:04X} ");
    wait_for("nfcapd", || fs::read_to_string("/proc/net/udp").unwrap().contains(&hex));
    let to = UdpSpec { version, ..UdpSpec::new(format!("127.0.0.1:{port}")) };
    export(records, &ExportSpec { sinks: vec![SinkSpec::Udp(to)], biflow, distinguish, ..ExportSpec::default() }, &hex);
    let id = rustix::process::Pid::from_child(&nfcapd.0);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    nfcapd.0.wait().unwrap();
    let text = output("nfdump", &["-R", path, "-o", "json", "-q"]);
    // nfdump 1.7.1 leaves the brackets out when it is quiet.
    let inner = text.trim().trim_start_matches('[').trim_end_matches(']').trim().trim_end_matches(',');
    serde_json::from_str(&format!("[{inner}]")).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn agree(records: &[Record], found: &[serde_json::Value], biflow: bool) {
    assert_eq!(found.len(), records.len());
    let number = |value: &serde_json::Value, name: &str| value[name].as_u64().unwrap_or(0);
    let mut expected: Vec<_> = records.iter().map(|r| (r.key.addresses.src().to_string(), r)).collect();
    let mut found: Vec<_> =
        found.iter().map(|v| (v["src4_addr"].as_str().or(v["src6_addr"].as_str()).unwrap().to_string(), v)).collect();
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    found.sort_by(|a, b| a.0.cmp(&b.0));
    for ((address, r), (found_address, v)) in expected.iter().zip(&found) {
        assert_eq!(address, found_address);
        assert_eq!((number(v, "in_packets"), number(v, "in_bytes")), (r.forward.packets, r.forward.ip_bytes), "{v}");
        if biflow {
            assert_eq!((number(v, "out_packets"), number(v, "out_bytes")), (r.back.packets, r.back.ip_bytes), "{v}");
        }
        assert_eq!(number(v, "proto"), u64::from(r.key.protocol), "{v}");
        assert_eq!(number(v, "input_snmp"), u64::from(r.ingress) + 1, "{v}");
        assert_eq!(number(v, "src_tos"), u64::from(r.tos), "{v}");
        if [6, 17, 132].contains(&r.key.protocol) {
            assert_eq!((number(v, "src_port"), number(v, "dst_port")), (r.key.sport.into(), r.key.dport.into()), "{v}");
        } else {
            let of = [number(v, "icmp_type"), number(v, "icmp_code")];
            assert_eq!(of, [r.key.dport >> 8, r.key.dport & 255].map(u64::from), "{v}");
        }
        if r.key.protocol == 6 {
            assert_eq!(v["tcp_flags"].as_str().unwrap(), "...AP.SF", "{v}");
        }
        // 2023-11-13T18:26:40.123, in UTC.
        let ms = |name: &str| v[name].as_str().unwrap().rsplit('.').next().unwrap().parse::<u64>().unwrap();
        assert_eq!((ms("first"), ms("last")), (r.first / 1_000_000 % 1000, r.last / 1_000_000 % 1000), "{v}");
        assert!(v["first"].as_str().unwrap().starts_with("2023-11-1"), "{v}");
    }
}

fn nfcapd_is_here() -> bool {
    have("nfcapd") && have("nfdump")
}

#[test]
fn nfcapd_takes_ipv4_and_ipv6() {
    if nfcapd_is_here() {
        for v6 in [false, true] {
            let records: Vec<_> = (0..500).map(|n| record(n, v6, false)).collect();
            agree(&records, &through_nfcapd(&records, false, Distinguish::None), false);
        }
    }
}

#[test]
fn nfcapd_takes_netflow_9() {
    if nfcapd_is_here() {
        for v6 in [false, true] {
            let mut records: Vec<_> = (0..500).map(|n| record(n, v6, false)).collect();
            agree(&records, &through_nfcapd_as(Version::NetFlow9, &records, false, Distinguish::None), false);
            records.iter_mut().for_each(|r| r.key.scope = Some(100));
            let found = through_nfcapd_as(Version::NetFlow9, &records, false, Distinguish::Vlan);
            agree(&records, &found, false);
            assert!(found.iter().all(|v| v["src_vlan"].as_u64() == Some(100)), "{:?}", found[0]);
        }
    }
}

#[test]
fn nfcapd_takes_biflows() {
    if nfcapd_is_here() {
        let records: Vec<_> = (0..500).map(|n| record(n, n % 2 == 0, true)).collect();
        agree(&records, &through_nfcapd(&records, true, Distinguish::None), true);
    }
}

#[test]
fn nfcapd_takes_vlans() {
    if nfcapd_is_here() {
        let mut records: Vec<_> = (0..50).map(|n| record(n, false, false)).collect();
        records.iter_mut().for_each(|r| r.key.scope = Some(100));
        let found = through_nfcapd(&records, false, Distinguish::Vlan);
        agree(&records, &found, false);
        assert!(found.iter().all(|v| v["src_vlan"].as_u64() == Some(100)), "{:?}", found[0]);
    }
}

/// nfacctd reads 10,000 bytes of a message, and drops the records of a longer one.
#[test]
fn nfacctd_takes_messages_of_the_usual_length() {
    if !have("nfacctd") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let [config, out, pid] = ["conf", "out", "pid"].map(|name| directory.path().join(name));
    let lines = [
        "daemonize: false".to_owned(),
        format!("pidfile: {}", pid.display()),
        "nfacctd_ip: 127.0.0.1".to_owned(),
        format!("nfacctd_port: {port}"),
        "plugins: print".to_owned(),
        "aggregate: src_host".to_owned(),
        "print_output: json".to_owned(),
        format!("print_output_file: {}", out.display()),
        // It writes at its end.
        "print_refresh_time: 3600".to_owned(),
    ];
    fs::write(&config, lines.join("\n") + "\n").unwrap();
    let log = fs::File::create(directory.path().join("log")).unwrap();
    let nfacctd = Command::new("nfacctd").arg("-f").arg(&config).stdout(log.try_clone().unwrap()).stderr(log).spawn();
    let mut nfacctd = Process(nfacctd.unwrap());
    let hex = format!(":{port:04X} ");
    wait_for("nfacctd", || fs::read_to_string("/proc/net/udp").unwrap().contains(&hex));
    // Several messages, at the usual pace.
    let records: Vec<_> = (0..1000).map(|n| record(n, false, false)).collect();
    let sinks = vec![SinkSpec::Udp(UdpSpec::new(format!("127.0.0.1:{port}")))];
    export(&records, &ExportSpec { sinks, ..ExportSpec::default() }, &hex);
    // It writes when it is interrupted.
    let id = rustix::process::Pid::from_child(&nfacctd.0);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    nfacctd.0.wait().unwrap();
    wait_for("nfacctd to write", || fs::read_to_string(&out).is_ok_and(|text| text.lines().count() == records.len()));
    let rows = fs::read_to_string(&out).unwrap();
    let rows = rows.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let sum = |name: &str| rows.clone().map(|row| row[name].as_u64().unwrap()).sum::<u64>();
    let expected = |of: fn(&Record) -> u64| records.iter().map(of).sum::<u64>();
    assert_eq!(sum("packets"), expected(|r| r.forward.packets));
    assert_eq!(sum("bytes"), expected(|r| r.forward.ip_bytes));
}

/// An Ethernet frame with IPv4 and UDP.
fn frame([src, dst]: [[u8; 4]; 2], [sport, dport]: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let mut ip = [&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0], &src[..], &dst[..]].concat();
    ip[2..4].copy_from_slice(&(payload.len() as u16 + 28).to_be_bytes());
    let sum = ip.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum::<u32>();
    ip[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    frame.extend(ip);
    for word in [sport, dport, payload.len() as u16 + 8, 0] {
        frame.extend(word.to_be_bytes());
    }
    frame.extend(payload);
    frame
}

/// Frames as a capture, a microsecond apart.
fn capture(path: &Path, frames: &[Vec<u8>]) {
    let mut writer = packet::pcap::Writer::new(fs::File::create(path).unwrap()).unwrap();
    for (n, frame) in (0..).zip(frames) {
        writer.write(Duration::from_secs(1_700_000_000) + Duration::from_micros(n), frame).unwrap();
    }
}

#[test]
fn tshark_has_no_complaint() {
    if !have("tshark") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut payloads = Vec::new();
    let mut records = 0;
    let mut packets = 0;
    for (domain, biflow) in [(0, false), (10, true)] {
        let kinds = [Distinguish::None, Distinguish::Vlan, Distinguish::Vni, Distinguish::Label];
        for (n, distinguish) in (0..).zip(kinds) {
            let names = ["d0", "d1"].map(|name| Port {
                index: 7,
                egress: 8,
                name: name.into(),
                description: format!("eth:{name}"),
            });
            let spec =
                EncodeSpec { domain: domain + n, biflow, distinguish, ports: names.into(), ..EncodeSpec::default() };
            let mut encoder = Encoder::new(spec);
            let all: Vec<_> = (0..100).map(|n| record(n, n % 3 == 0, biflow)).collect();
            let statistics = Statistics { messages: 1, flows: 2, octets: 3, ..Statistics::default() };
            let mut rest = &all[..];
            while !rest.is_empty() {
                let mut out = Vec::new();
                let first = rest.len() == all.len();
                let made = encoder.message(1_700_000_000, first, first.then_some(&statistics), rest, &mut out);
                encoder.sent(&made);
                payloads.push(frame([[127, 0, 0, 1]; 2], [40_000, 4739], &out));
                rest = &rest[made.records..];
            }
            records += all.len();
            packets += all.iter().map(|r| r.forward.packets + r.back.packets).sum::<u64>();
        }
    }
    let path = directory.path().join("ipfix.pcap");
    capture(&path, &payloads);
    let path = path.to_str().unwrap();
    let read = ["-r", path, "-d", "udp.port==4739,cflow"];
    let complaints = output("tshark", &[&read[..], &["-Y", "_ws.malformed || _ws.expert || !cflow", "-V"]].concat());
    assert_eq!(complaints, "", "tshark complains");
    // Every record is there, with its packets; the first and last time of the first to the nanosecond.
    let fields = ["-T", "fields", "-e", "cflow.packets", "-e", "cflow.protocol", "-E", "aggregator=,"];
    let text = output("tshark", &[&read[..], &fields].concat());
    let numbers = |column: usize| {
        let column = text.lines().map(move |line| line.split('\t').nth(column).unwrap_or(""));
        column.flat_map(|cell| cell.split(',')).filter_map(|n| n.parse::<u64>().ok()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(1).len(), records);
    assert_eq!(numbers(0).iter().sum::<u64>(), packets);
    let names = output(
        "tshark",
        &[&read[..], &["-c", "1", "-T", "fields", "-e", "cflow.if_name", "-e", "cflow.if_descr"]].concat(),
    );
    assert_eq!(names.trim_end(), "d0,d1\teth:d0,eth:d1");
    let all = output("tshark", &[&read[..], &["-c", "1", "-V"]].concat());
    assert!(all.contains("18:26:40.123456789"), "{all}");
    assert!(!all.contains("Unknown") && !all.contains("Enterprise Private entry"), "{all}");
}
