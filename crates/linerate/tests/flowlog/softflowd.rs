//! Beside softflowd, which many have today: the same capture, the same collector, the same totals.

use std::{collections::BTreeMap, path::Path};

use crate::{
    collectors::Nfcapd,
    logger::directory,
    support::{exclusive, require, tester::BINARY, Needs, Netns},
};

const CAPTURES: &str = "/var/lib/linerate-tests/captures";
const COLLECTOR: &str = "127.0.0.1:4739";

/// Packets and bytes of each protocol, by its number.
type Totals = BTreeMap<String, [u64; 2]>;

/// softflowd reads a capture, without its control socket, which 1.1.0 may wait for at the end of a capture; its own totals, as
/// it prints them at its end: `tcp (6):  BYTES  PACKETS ...`.
fn softflowd(netns: &Netns, capture: &str) -> Totals {
    let argv = ["softflowd", "-r", capture, "-n", COLLECTOR, "-v", "10", "-c", "none"];
    let output = netns.command(argv[0]).args(&argv[1..]).output().unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    assert!(output.status.success(), "{said}");
    let rows = said.lines().skip_while(|line| !line.starts_with("Per-protocol statistics")).skip(1);
    let rows = rows.map_while(|line| line.split_once("):"));
    rows.map(|(name, rest)| {
        let mut figures = rest.split_whitespace().map(|figure| figure.parse().unwrap());
        let [bytes, packets] = [(); 2].map(|()| figures.next().unwrap());
        (name.rsplit('(').next().unwrap().to_owned(), [packets, bytes])
    })
    .collect()
}

fn linerate(netns: &Netns, capture: &str) {
    let (input, url) = (format!("pcap:rx={capture}"), format!("udp://{COLLECTOR}"));
    let argv = [BINARY, "flowlog", "--quiet", "--port", &input, "--once", "--listen", "off", "--flows", "16k"];
    netns.run(&[&argv[..], &["--memory", "no-hugepages", "--ipfix", &url]].concat());
}

/// What nfdump has of these collected records.
fn collected(nfcapd: Nfcapd<'_>) -> Totals {
    let mut totals = Totals::new();
    for row in nfcapd.rows("fmt:%pr %pkt %byt") {
        let sum = totals.entry(row[0].clone()).or_default();
        [1, 2].into_iter().for_each(|i| sum[i - 1] += row[i].parse::<u64>().unwrap());
    }
    totals
}

#[test]
fn totals_are_those_of_softflowd() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    // softflowd sends as fast as it can: of the large capture its collector misses most. What it says it saw is compared.
    for (name, all_arrives) in [("tcp_http.pcap", true), ("real.pcap", false)] {
        let capture = format!("{CAPTURES}/{name}");
        assert!(Path::new(&capture).is_file(), "{capture} is missing. Remedy: scripts/setup.sh --test");
        let [theirs, ours] = [directory(), directory()];
        let netns = Netns::new();
        netns.ip("link set lo up");
        let nfcapd = Nfcapd::start(&netns, theirs.path());
        let seen = softflowd(&netns, &capture);
        let arrived = collected(nfcapd);
        assert!(!all_arrives || arrived == seen, "{arrived:?}, {seen:?}");
        let nfcapd = Nfcapd::start(&netns, ours.path());
        linerate(&netns, &capture);
        assert_eq!(collected(nfcapd), seen, "{name}");
        assert!(seen.values().map(|[packets, _]| packets).sum::<u64>() >= 43, "{seen:?}");
    }
}
