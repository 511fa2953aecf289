//! Real captures, logged: the same flows as tshark finds in the same file, frame for frame and byte for byte, from the same
//! nanosecond to the same nanosecond.
//!
//! `scripts/setup.sh --test` fetches the captures (of the Debian package pathspider). Without them or tshark the tests
//! fail where `CI` is set, and elsewhere say that they have shown nothing.
//!
//! What has to be asked of tshark so that both mean the same:
//! - the first of each field is the outermost packet's: an ICMP error also holds the headers of the packet it is about,
//!   and whose ports count is told by the outer protocol;
//! - `frame.cap_len` is what the file has of a frame, with padding; we see no more of it;
//! - its conversations count the packets inside ICMP errors as well, so errors are filtered out there and left out of ours;
//! - its TCP conversations are connections: those of one pair of addresses and ports are one flow of ours.

// The helpers below are test code too; clippy knows only functions marked as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, missing_docs)]

use crate::support;

use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
};

use flow::ipfix::{Collector, CollectorSpec};
use serde_json::Value;
use support::{
    ending::Ending,
    tester::{ended, BINARY},
};

const CAPTURES: &str = "/var/lib/linerate-tests/captures";
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;

/// One end of a flow; ports are zero where there are none.
type End = (IpAddr, u16);
/// A flow, its lower end first: ends, protocol, and ICMP's type and code (of the request, for an answer).
type Key = (End, End, u8, u16);

/// Frames, their bytes and IP bytes from the lower end and from the higher, all TCP flags seen, and the times of the first frame and of the
/// last, in ns since the Unix epoch.
#[derive(Debug, Clone, PartialEq)]
struct Count {
    frames: [u64; 2],
    bytes: [u64; 2],
    ip_bytes: [u64; 2],
    flags: u16,
    span: Span,
}

type Span = (u64, u64);
const NEVER: Span = (u64::MAX, 0);

fn join(a: &mut Span, b: Span) {
    *a = (a.0.min(b.0), a.1.max(b.1));
}

impl Default for Count {
    fn default() -> Self {
        Self { frames: [0; 2], bytes: [0; 2], ip_bytes: [0; 2], flags: 0, span: NEVER }
    }
}

/// A time as tshark writes it, in seconds with nine digits behind the point, in ns.
fn ns(text: &str) -> u64 {
    let (seconds, parts) = text.split_once('.').unwrap_or_else(|| panic!("{text} is not a time"));
    format!("{seconds}{parts:0<9}").parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// The capture of this name, or nothing when it or tshark is not here and need not be.
#[track_caller]
fn capture(name: &str) -> Option<PathBuf> {
    let dir = std::env::var_os("LINERATE_CAPTURES").map_or_else(|| PathBuf::from(CAPTURES), PathBuf::from);
    let path = dir.join(name);
    let tshark = Command::new("tshark").arg("--version").output().is_ok_and(|o| o.status.success());
    if path.is_file() && tshark {
        return Some(path);
    }
    let missing = if tshark { path.display().to_string() } else { "tshark".to_owned() };
    assert!(std::env::var_os("CI").is_none(), "{missing} is missing. Remedy: scripts/setup.sh --test");
    eprintln!("{name} was not compared, {missing} is missing. Remedy: scripts/setup.sh --test");
    None
}

#[track_caller]
fn tshark(capture: &Path, args: &[&str]) -> String {
    let mut command = Command::new("tshark");
    let output = command.arg("-n").arg("-r").arg(capture).args(args).output().expect("tshark runs");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Adds `n` frames from `src` to `dst`, with `bytes` bytes in all, of which `ip_bytes` are of IP packets.
fn add(
    flows: &mut BTreeMap<Key, Count>,
    (src, dst): (End, End),
    (protocol, icmp): (u8, u16),
    [n, bytes, ip_bytes]: [u64; 3],
    span: Span,
) {
    let way = usize::from(dst < src);
    let count = flows.entry((src.min(dst), src.max(dst), protocol, icmp)).or_default();
    count.frames[way] += n;
    count.bytes[way] += bytes;
    count.ip_bytes[way] += ip_bytes;
    join(&mut count.span, span);
}

/// Every flow of the capture, frame by frame as tshark reads it, and how many frames are not IP.
fn by_fields(capture: &Path) -> (BTreeMap<Key, Count>, u64) {
    const FIELDS: [&str; 18] = [
        "frame.time_epoch",
        "frame.len",
        "ip.len",
        "ipv6.plen",
        "ip.src",
        "ip.dst",
        "ip.proto",
        "ipv6.src",
        "ipv6.dst",
        "ipv6.nxt",
        "tcp.srcport",
        "tcp.dstport",
        "tcp.flags",
        "udp.srcport",
        "udp.dstport",
        "icmp.type",
        "icmp.code",
        "icmpv6.type",
    ];
    let mut args = vec!["-T", "fields", "-E", "occurrence=f", "-E", "separator=,"];
    FIELDS.iter().for_each(|field| args.extend(["-e", field]));
    let (mut flows, mut other) = (BTreeMap::new(), 0);
    for line in tshark(capture, &args).lines() {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |name: &str| fields[FIELDS.iter().position(|&f| f == name).unwrap()];
        let number = |name: &str| field(name).parse::<u16>().unwrap_or_else(|e| panic!("{name} of {line}: {e}"));
        let [src, dst, protocol] = match (field("ip.src"), field("ipv6.src")) {
            ("", "") => {
                other += 1;
                continue;
            }
            ("", src) => [src, field("ipv6.dst"), field("ipv6.nxt")],
            (src, _) => [src, field("ip.dst"), field("ip.proto")],
        };
        let [src, dst]: [IpAddr; 2] = [src, dst].map(|a| a.parse().unwrap_or_else(|e| panic!("{a} in {line}: {e}")));
        let protocol: u8 = protocol.parse().unwrap();
        let (ports, icmp) = match protocol {
            TCP => ([number("tcp.srcport"), number("tcp.dstport")], 0),
            UDP => ([number("udp.srcport"), number("udp.dstport")], 0),
            // An echo's answer (0) belongs to its request (8); these captures hold no other requests.
            ICMP => {
                ([0, 0], if number("icmp.type") == 0 { 8 << 8 } else { number("icmp.type") << 8 | number("icmp.code") })
            }
            // Neighbour discovery and such would need the code and more pairs: none of these captures has any.
            ICMP6 => panic!("ICMPv6 in {line}, which this test does not read"),
            _ => ([0, 0], 0),
        };
        let ends = ((src, ports[0]), (dst, ports[1]));
        let time = ns(field("frame.time_epoch"));
        // The length of IPv6 is without its header.
        let ip_bytes = field("ip.len").parse().unwrap_or_else(|_| 40 + field("ipv6.plen").parse::<u64>().unwrap());
        add(&mut flows, ends, (protocol, icmp), [1, field("frame.len").parse().unwrap(), ip_bytes], (time, time));
        if protocol == TCP {
            let flags = u16::from_str_radix(field("tcp.flags").trim_start_matches("0x"), 16).unwrap();
            flows.get_mut(&(ends.0.min(ends.1), ends.0.max(ends.1), TCP, 0)).unwrap().flags |= flags & 0x1ff;
        }
    }
    (flows, other)
}

/// An end as tshark writes it: an address, with `:PORT` behind it where there are ports.
fn end(text: &str, ports: bool) -> End {
    let (address, port) = if ports { text.rsplit_once(':').unwrap() } else { (text, "0") };
    (address.parse().unwrap_or_else(|e| panic!("{text}: {e}")), port.parse().unwrap())
}

/// The conversations of a kind, those with the same ends as one: frames from the lower end and from the higher, and times.
fn conversations(capture: &Path, kind: &str) -> BTreeMap<(End, End), ([u64; 2], Span)> {
    let begun = ns(tshark(capture, &["-c", "1", "-T", "fields", "-e", "frame.time_epoch"]).trim());
    let text = tshark(capture, &["-q", "-z", &format!("conv,{kind},!icmp && !icmpv6")]);
    let mut found = BTreeMap::new();
    let ports = matches!(kind, "tcp" | "udp");
    for line in text.lines() {
        let Some((a, rest)) = line.split_once("<->") else { continue };
        let mut words = rest.split_whitespace();
        let (a, b) = (end(a.trim(), ports), end(words.next().unwrap(), ports));
        // Frames and bytes leftwards, then rightwards; units stand between them in some versions.
        let numbers: Vec<u64> = words.filter_map(|w| w.parse().ok()).collect();
        let (to_a, to_b) = (numbers[0], numbers[2]);
        assert_eq!(numbers[4], to_a + to_b, "{line}");
        let (ways, span) = found.entry((a.min(b), a.max(b))).or_insert(([0; 2], NEVER));
        ways[usize::from(b < a)] += to_b;
        ways[usize::from(a <= b)] += to_a;
        // The start, since the first frame of the capture, and the duration, of which it gives four digits.
        let times: Vec<u64> = line.split_whitespace().rev().take(2).map(ns).collect();
        let start = begun + times[1];
        join(span, (start, start + times[0]));
    }
    found
}

/// What `linerate flowlog` records of the capture, records of one flow added up, and the frames it says are not IP.
fn logged(capture: &Path) -> (BTreeMap<Key, Count>, u64) {
    let dir = tempfile::Builder::new().prefix("lrcap").tempdir().expect("a directory");
    let json = dir.path().join("flows.jsonl");
    let port = format!("pcap:rx={},tx=/dev/null", capture.display());
    let mut command = Command::new(BINARY);
    command.args(["flowlog", "--port", &port, "--once", "--listen", "off", "--flows", "64k", "--json"]).arg(&json);
    command.args(["--memory", "no-hugepages", "--check-pools", "--quiet"]).env("XDG_RUNTIME_DIR", dir.path());
    let ended = ended(&command.output().expect("linerate runs"));
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let ending = Ending::of(&ended.stdout);
    assert_eq!((ending.full, ending.malformed, ending.missed), (None, 0, 0), "{}", ended.stdout);
    let mut flows = BTreeMap::new();
    for line in std::fs::read_to_string(&json).unwrap().lines() {
        let record: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        let number = |v: &Value| v.as_u64().unwrap_or_else(|| panic!("{line}"));
        let small = |name: &str| u16::try_from(number(&record[name])).unwrap();
        let [src, dst]: [IpAddr; 2] = ["src", "dst"].map(|e| record[e].as_str().unwrap().parse().unwrap());
        let protocol = small("protocol") as u8;
        let is_icmp = matches!(protocol, ICMP | ICMP6);
        let (sport, dport, icmp) =
            if is_icmp { (small("sport"), 0, small("dport")) } else { (small("sport"), small("dport"), 0) };
        let (a, b) = ((src, sport), (dst, dport));
        for (way, ends) in [("forward", (a, b)), ("back", (b, a))] {
            let count = |what: &str| number(&record[way][what]);
            let span = (number(&record["first_unix_ns"]), number(&record["last_unix_ns"]));
            add(&mut flows, ends, (protocol, icmp), [count("packets"), count("frame_bytes"), count("ip_bytes")], span);
        }
        let flags = number(&record["forward"]["tcp_flags"]) | number(&record["back"]["tcp_flags"]);
        flows.get_mut(&(a.min(b), a.max(b), protocol, icmp)).unwrap().flags |= flags as u16;
    }
    (flows, ending.not_ip)
}

/// Frames and times of these flows by their ends, without ports unless asked for.
fn by_ends<'a>(
    flows: impl Iterator<Item = (&'a Key, &'a Count)>,
    ports: bool,
) -> BTreeMap<(End, End), ([u64; 2], Span)> {
    let mut found = BTreeMap::new();
    let bare = |(address, port): End| (address, if ports { port } else { 0 });
    for (&(a, b, _, _), count) in flows {
        // The lower end has the lower address already.
        let (ways, span) = found.entry((bare(a), bare(b))).or_insert(([0; 2], NEVER));
        ways[0] += count.frames[0];
        ways[1] += count.frames[1];
        join(span, count.span);
    }
    found
}

/// The same as conversations, whose ends are exact to 50 us.
#[track_caller]
fn same_conversations(
    what: &str,
    mut ours: BTreeMap<(End, End), ([u64; 2], Span)>,
    theirs: &BTreeMap<(End, End), ([u64; 2], Span)>,
) {
    for (ends, (_, span)) in &mut ours {
        if let Some((_, (_, theirs))) = theirs.get(ends).filter(|(_, (_, theirs))| span.1.abs_diff(*theirs) <= 50_000) {
            span.1 = *theirs;
        }
    }
    same(what, &ours, theirs);
}

#[track_caller]
fn same<K: Ord + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    what: &str,
    ours: &BTreeMap<K, V>,
    theirs: &BTreeMap<K, V>,
) {
    let keys: std::collections::BTreeSet<&K> = ours.keys().chain(theirs.keys()).collect();
    let differ = keys.into_iter().filter(|k| ours.get(k) != theirs.get(k));
    let first: Vec<_> = differ.map(|k| (k, ours.get(k), theirs.get(k))).take(5).collect();
    assert!(first.is_empty(), "{what}: {} of ours, {} of tshark's, such as {first:#?}", ours.len(), theirs.len());
}

/// Compares the capture; it has so many frames in so many flows, as was seen when this was written.
#[track_caller]
fn compare(name: &str, frames: u64, flows: usize) {
    let Some(capture) = capture(name) else { return };
    let (ours, ours_not_ip) = logged(&capture);
    let (theirs, theirs_not_ip) = by_fields(&capture);
    same(&format!("flows of {name}"), &ours, &theirs);
    assert_eq!(ours_not_ip, theirs_not_ip, "frames of {name} that are not IP");
    let counted: u64 = ours.values().map(|c| c.frames[0] + c.frames[1]).sum();
    assert_eq!((counted + ours_not_ip, ours.len()), (frames, flows), "frames and flows of {name}");

    for (kind, protocol) in [("tcp", TCP), ("udp", UDP)] {
        let ours = by_ends(ours.iter().filter(|(key, _)| key.2 == protocol), true);
        same_conversations(&format!("{kind} conversations of {name}"), ours, &conversations(&capture, kind));
    }
    for (kind, v6) in [("ip", false), ("ipv6", true)] {
        let of_kind = |key: &Key| key.0 .0.is_ipv6() == v6 && !matches!(key.2, ICMP | ICMP6);
        let ours = by_ends(ours.iter().filter(|(key, _)| of_kind(key)), false);
        same_conversations(&format!("{kind} conversations of {name}"), ours, &conversations(&capture, kind));
    }
}

#[test]
fn a_network_with_scans_broadcasts_and_icmp_errors() {
    compare("real.pcap", 62_781, 6_024);
}

#[test]
fn tcp_with_ecn() {
    compare("tcp_ecn.pcap", 479, 1);
}

#[test]
fn tcp_over_ipv6() {
    compare("mss_ipv6.pcap", 22, 1);
}

#[test]
fn the_web_and_a_name() {
    compare("tcp_http.pcap", 43, 3);
}

/// TCP and UDP flows as `softflowd` finds them in the capture: frames each way, from its IPFIX.
fn by_softflowd(capture: &Path) -> Option<BTreeMap<Key, [u64; 2]>> {
    let flows = Arc::new(Mutex::new(BTreeMap::<Key, [u64; 2]>::new()));
    let taken = Arc::clone(&flows);
    let spec = CollectorSpec { udp: Some("127.0.0.1:0".parse().unwrap()), ..CollectorSpec::default() };
    let collector = Collector::start(spec, move |_, records| {
        let mut flows = taken.lock().unwrap();
        for record in records.iter().filter(|r| matches!(r.key.protocol, TCP | UDP)) {
            let a = (record.key.addresses.src(), record.key.sport);
            let b = (record.key.addresses.dst(), record.key.dport);
            let frames = flows.entry((a.min(b), a.max(b), record.key.protocol, 0)).or_default();
            let back = usize::from(a > b);
            frames[back] += record.forward.packets;
            frames[1 - back] += record.back.packets;
        }
    })
    .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut softflowd = Command::new("softflowd");
    softflowd.arg("-r").arg(capture).args(["-v", "10", "-m", "65536", "-c", "none", "-p"]).arg(dir.path().join("pid"));
    softflowd.arg("-n").arg(collector.udp().unwrap().to_string());
    let Ok(out) = softflowd.output() else {
        assert!(std::env::var_os("CI").is_none(), "softflowd is missing");
        eprintln!("skipped: softflowd is missing");
        return None;
    };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let counts = collector.stop();
    // Its sequence numbers count otherwise than RFC 7011's, so that some seem to be missing; flows that were would show.
    assert_eq!((counts.malformed, counts.without_template), (0, 0), "{counts:?}");
    let found = flows.lock().unwrap().clone();
    Some(found)
}

#[test]
fn softflowd_finds_the_same_flows_in_the_same_captures() {
    for name in ["real.pcap", "tcp_ecn.pcap", "mss_ipv6.pcap", "tcp_http.pcap"] {
        let Some(capture) = capture(name) else { return };
        let Some(theirs) = by_softflowd(&capture) else { return };
        let (ours, _) = logged(&capture);
        let ours: BTreeMap<Key, [u64; 2]> = ours
            .into_iter()
            .filter(|(key, _)| matches!(key.2, TCP | UDP))
            .map(|(key, count)| (key, count.frames))
            .collect();
        let keys: std::collections::BTreeSet<&Key> = ours.keys().chain(theirs.keys()).collect();
        let differ: Vec<_> = keys.into_iter().filter(|k| ours.get(k) != theirs.get(k)).collect();
        let first: Vec<_> = differ.iter().map(|k| (k, ours.get(k), theirs.get(k))).take(5).collect();
        assert!(
            first.is_empty(),
            "{name}: {} of {} differ from softflowd's, such as {first:#?}",
            differ.len(),
            ours.len()
        );
    }
}
