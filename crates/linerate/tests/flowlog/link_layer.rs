//! MAC addresses, VLAN tags and MPLS labels of flows: tshark reads the same frames; nfcapd and the PyPI package `netflow` take
//! the records, as IPFIX and as NetFlow v9.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::{
    logger::{directory, records},
    made::{netflow, nfcapd, wait_for_rest},
    support::{exclusive, require, run, tester::BINARY, Needs, Netns, Process},
};

/// Where the collectors listen: nfcapd and `netflow` for IPFIX, then for NetFlow v9.
const PORTS: [(u16, &str); 4] = [(4739, "1283"), (4741, "1285"), (4742, "1286"), (4744, "1288")];

/// Source and destination address; VLAN, priority and the drop bit of each tag; label, traffic class and the bottom bit of each
/// label.
#[derive(Debug, Clone, PartialEq, Default)]
struct Seen {
    macs: [String; 2],
    tags: Vec<[u64; 3]>,
    labels: Vec<[u64; 3]>,
}

/// By source port.
type Flows = BTreeMap<u64, Seen>;

fn capture(dir: &Path) -> PathBuf {
    let file = dir.join("links.pcap");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/flowlog/links.py");
    let made = Command::new("/usr/bin/python3").args([script, file.to_str().unwrap()]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    file
}

/// The frames as tshark reads them, with the source port of the innermost packet.
fn frames(capture: &Path) -> Vec<(u64, Seen)> {
    let tag = |name: &'static str| ["id", "priority", "dei"].map(|field| format!("{name}.{field}"));
    let label = ["mpls.label", "mpls.exp", "mpls.bottom"].map(str::to_owned);
    let first = ["frame.protocols", "udp.srcport", "eth.src", "eth.dst"].map(str::to_owned);
    let fields = [&first[..], &tag("ieee8021ad"), &tag("vlan"), &label].concat();
    let mut argv = vec!["tshark", "-n", "-r", capture.to_str().unwrap(), "-T", "fields"];
    argv.extend(["-E", "separator=;", "-E", "occurrence=a", "-E", "aggregator=,"]);
    fields.iter().for_each(|field| argv.extend(["-e", field]));
    let text = run(&argv);
    let frame = |line: &str| {
        let values: Vec<Vec<&str>> =
            line.split(';').map(|v| v.split(',').filter(|v| !v.is_empty()).collect()).collect();
        let numbers = |i: usize| values[i].iter().map(|text| text.parse::<u64>().unwrap());
        let three = |i: usize| numbers(i).zip(numbers(i + 1)).zip(numbers(i + 2)).map(|((a, b), c)| [a, b, c]);
        let mut seen = Seen {
            macs: [values[2][0].to_owned(), values[3][0].to_owned()],
            tags: three(4).chain(three(7)).collect(),
            labels: three(10).collect(),
        };
        // What is below the first UDP belongs to the frame in the tunnel.
        if values[0][0].contains("vxlan") {
            seen.tags.clear();
        }
        let port = numbers(1).next_back().unwrap();
        (port, seen)
    };
    text.lines().map(frame).collect()
}

/// The first frame of each flow.
fn by_tshark(capture: &Path) -> Flows {
    let mut flows = Flows::new();
    for (port, seen) in frames(capture) {
        flows.entry(port).or_insert(seen);
    }
    flows
}

fn by_json(path: &Path) -> Flows {
    let list = |link: &Value, name: &str, fields: [&str; 3]| {
        let number = |value: &Value| value.as_u64().or(value.as_bool().map(u64::from)).unwrap();
        let one = |item: &Value| fields.map(|field| number(&item[field]));
        link[name].as_array().into_iter().flatten().map(one).collect()
    };
    let one = |port: &Value, way: &Value| {
        let link = &way["link"];
        let seen = Seen {
            macs: ["src_mac", "dst_mac"].map(|name| link[name].as_str().unwrap().to_owned()),
            tags: list(link, "vlan_tags", ["vlan_id", "priority", "drop_eligible"]),
            labels: list(link, "mpls_labels", ["label", "traffic_class", "bottom"]),
        };
        (port.as_u64().unwrap(), seen)
    };
    let both = |record: &Value| {
        let (forward, back) = (&record["details"]["forward"], &record["details"]["back"]);
        let back = back.get("link").map(|_| one(&record["dport"], back));
        std::iter::once(one(&record["sport"], forward)).chain(back).collect::<Vec<_>>()
    };
    records(path).iter().flat_map(both).collect()
}

/// What records carry at most: two tags without their drop bits, ten labels.
fn as_records(flows: &Flows) -> Flows {
    let fewer = |seen: &Seen| Seen {
        tags: seen.tags.iter().take(2).map(|[vlan, priority, _]| [*vlan, *priority, 0]).collect(),
        labels: seen.labels.iter().take(10).copied().collect(),
        ..seen.clone()
    };
    flows.iter().map(|(&port, seen)| (port, fewer(seen))).collect()
}

/// The same with the outer VLAN alone of the tags.
fn outer_vlans(flows: &Flows) -> Flows {
    let fewer =
        |seen: &Seen| Seen { tags: seen.tags.iter().take(1).map(|tag| [tag[0], 0, 0]).collect(), ..seen.clone() };
    flows.iter().map(|(&port, seen)| (port, fewer(seen))).collect()
}

fn mac(bits: u64) -> String {
    let [.., a, b, c, d, e, f] = bits.to_be_bytes();
    [a, b, c, d, e, f].map(|byte| format!("{byte:02x}")).join(":")
}

/// Labels down to the bottom of the stack: those behind are zero.
fn stack(mut labels: Vec<[u64; 3]>) -> Vec<[u64; 3]> {
    let bottom = labels.iter().position(|label| label[2] == 1).map_or(labels.len(), |at| at + 1);
    assert!(labels[bottom..].iter().all(|label| *label == [0; 3]), "{labels:?}");
    labels.truncate(bottom);
    labels
}

#[test]
fn the_link_layer_is_that_of_tshark_and_others_read_it() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (netns, dir) = (Netns::new(), directory());
    netns.ip("link set lo up");
    let capture = capture(dir.path());
    let stores = [nfcapd(&netns, dir.path(), PORTS[0]), nfcapd(&netns, dir.path(), PORTS[2])];
    let lines = [netflow(&netns, dir.path(), PORTS[1]), netflow(&netns, dir.path(), PORTS[3])];
    let json = dir.path().join("flows.jsonl");
    let (input, urls) =
        (format!("pcap:rx={}", capture.display()), PORTS.map(|(port, _)| format!("udp://127.0.0.1:{port}")));
    let mut argv = vec![BINARY, "flowlog", "--quiet", "--port", &input, "--once", "--listen", "off", "--flows", "1k"];
    argv.extend(["--memory", "no-hugepages", "--vxlan", "inner", "--details", "--json", json.to_str().unwrap()]);
    argv.extend(["--ipfix", &urls[0], "--ipfix", &urls[1], "--netflow9", &urls[2], "--netflow9", &urls[3]]);
    netns.run(&argv);

    let want = by_tshark(&capture);
    assert_eq!((want.len(), want[&1008].labels.len(), want[&1005].tags.len()), (24, 10, 4));
    let mut ours = want.clone();
    // Ten labels are kept.
    [1009, 1029].iter().for_each(|port| ours.get_mut(port).unwrap().labels.truncate(10));
    assert_eq!(by_json(&json), ours);

    let want = as_records(&want);
    PORTS.iter().for_each(|(_, hex)| wait_for_rest(&netns, hex));
    for (collector, v9) in lines.iter().zip([false, true]) {
        let text = collector.output();
        let read = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let got: Flows = read.filter_map(|record| by_netflow(&record, v9)).collect();
        assert_eq!(got, if v9 { outer_vlans(&want) } else { want.clone() }, "NetFlow v9: {v9}");
    }
    for (mut process, store) in stores {
        assert_eq!(process.end(crate::between::PATIENCE).and_then(|s| s.code()), Some(0), "{}", process.output());
        let text = run(&["nfdump", "-R", store.to_str().unwrap(), "-q", "-o", "json"]);
        let list: Vec<Value> = serde_json::from_str(&format!("[{}]", text.trim().trim_end_matches(','))).unwrap();
        let got: Flows = list.iter().map(by_nfdump).collect();
        assert_eq!(got, outer_vlans(&want), "{}", store.display());
    }
}

/// Source ports, and what tells their flows apart.
fn told_apart(netns: &Netns, collector: &Process, capture: &Path, by: &str, field: &str) -> BTreeSet<(u64, u64)> {
    let before = collector.output().lines().count();
    let (input, url) = (format!("pcap:rx={}", capture.display()), format!("udp://127.0.0.1:{}", PORTS[1].0));
    let mut argv = vec![BINARY, "flowlog", "--quiet", "--port", &input, "--once", "--listen", "off", "--flows", "1k"];
    argv.extend(["--memory", "no-hugepages", "--vxlan", "inner", "--distinguish", by, "--ipfix", &url]);
    netns.run(&argv);
    wait_for_rest(netns, PORTS[1].1);
    let text = collector.output();
    let read = text.lines().skip(before).filter_map(|line| serde_json::from_str::<Value>(line).ok());
    read.filter_map(|record| Some((record[IPFIX[0]].as_u64()?, record[field].as_u64()?))).collect()
}

#[test]
fn another_program_reads_what_tells_flows_apart() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (netns, dir) = (Netns::new(), directory());
    netns.ip("link set lo up");
    let capture = capture(dir.path());
    let collector = netflow(&netns, dir.path(), PORTS[1]);
    let frames = frames(&capture);
    // The first tag that is one: of VLAN 0 alone, that.
    let vlan = |tags: &[[u64; 3]]| {
        let vlans = tags.iter().map(|tag| tag[0]);
        vlans.clone().find(|vlan| *vlan > 0).or_else(|| vlans.clone().next())
    };
    let mut want: BTreeSet<_> = frames.iter().filter_map(|(port, seen)| Some((*port, vlan(&seen.tags)?))).collect();
    assert!(want.len() > 12 && want.contains(&(1002, 0)), "{want:?}");
    // The tag of the frame in the tunnel: no other stands before it.
    want.insert((1011, 9));
    assert_eq!(told_apart(&netns, &collector, &capture, "vlan", "vlanId"), want);
    // The top label, and whether it is the last; its traffic class differs from packet to packet.
    let top = |seen: &Seen| seen.labels.first().map(|[label, _, last]| label << 4 | last);
    let want: BTreeSet<_> = frames.iter().filter_map(|(port, seen)| Some((*port, top(seen)?))).collect();
    assert!(want.contains(&(1006, 79 << 4 | 1)) && want.contains(&(1007, 0)), "{want:?}");
    assert_eq!(told_apart(&netns, &collector, &capture, "label", IPFIX[4]), want);
    // VXLAN, and its network.
    let want = BTreeSet::from([(1011, 1 << 56 | 9)]);
    assert_eq!(told_apart(&netns, &collector, &capture, "vni", "layer2SegmentId"), want);
}

/// Names of the fields of a record: the source port, both addresses, the outer VLAN, the top label, and what the names of the
/// labels below it begin with.
const IPFIX: [&str; 6] = [
    "sourceTransportPort",
    "sourceMacAddress",
    "destinationMacAddress",
    "vlanId",
    "mplsTopLabelStackSection",
    "mplsLabelStackSection",
];
const V9: [&str; 6] = ["L4_SRC_PORT", "IN_SRC_MAC", "IN_DST_MAC", "SRC_VLAN", "MPLS_LABEL_1", "MPLS_LABEL_"];

/// What `netflow` read: of NetFlow v9 (`v9`) of the tags the outer VLAN alone.
fn by_netflow(record: &Value, v9: bool) -> Option<(u64, Seen)> {
    let names = if v9 { V9 } else { IPFIX };
    let number = |name: &str| record[name].as_u64();
    let port = number(names[0])?;
    let below = (2..=10).map(|depth| format!("{}{depth}", names[5]));
    let labels = std::iter::once(names[4].to_owned()).chain(below).map_while(|name| number(&name));
    // As information element 70 has them.
    let labels = labels.map(|bits| [bits >> 4, bits >> 1 & 7, bits & 1]).collect();
    let tag = |vlan: &str, priority: &str| Some([number(vlan)?, number(priority)?, 0]);
    let outer = number(names[3]).map(|vlan| [vlan, 0, 0]);
    let tags = if v9 {
        [outer, None]
    } else {
        let both = [tag("dot1qVlanId", "dot1qPriority"), tag("dot1qCustomerVlanId", "dot1qCustomerPriority")];
        assert_eq!(outer.map(|tag| tag[0]), both[0].map(|tag| tag[0]), "{record}");
        both
    };
    let macs = [mac(number(names[1])?), mac(number(names[2])?)];
    Some((port, Seen { macs, tags: tags.into_iter().flatten().collect(), labels: stack(labels) }))
}

/// What nfdump tells: of the tags the outer VLAN alone.
fn by_nfdump(record: &Value) -> (u64, Seen) {
    let mac = |name: &str| record[name].as_str().unwrap().to_owned();
    let label = |depth: u32| {
        let text = record[format!("mpls_{depth}")].as_str()?;
        let numbers: Vec<u64> = text.split('-').map(|n| n.parse().unwrap()).collect();
        Some([numbers[0], numbers[1], numbers[2]])
    };
    let seen = Seen {
        macs: [mac("in_src_mac"), mac("in_dst_mac")],
        tags: record["src_vlan"].as_u64().map(|vlan| [vlan, 0, 0]).into_iter().collect(),
        labels: stack((1..=10).map_while(label).collect()),
    };
    (record["src_port"].as_u64().unwrap(), seen)
}
