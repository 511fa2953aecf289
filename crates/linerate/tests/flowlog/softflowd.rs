//! Beside softflowd, which many have today: the same capture, the same collector, the same totals.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket},
    path::Path,
};

use crate::{
    between::{Between, PATIENCE},
    collectors::Nfcapd,
    logger::{directory, Logger},
    made::{nfcapd, wait_for_rest},
    support::{exclusive, raw::inside, require, run, tester::BINARY, wait_until, Needs, Netns, Process},
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

/// A ping, a megabyte over TCP and some datagrams between a host and the namespace in the middle, which is 10.0.0.9.
fn talk(bench: &Between) {
    bench.hosts[0].run(&["ping", "-q", "-c", "5", "-i", "0.2", "10.0.0.9"]);
    let server = inside(&bench.middle, || TcpListener::bind("10.0.0.9:0").unwrap());
    let at = server.local_addr().unwrap();
    let mut client = inside(&bench.hosts[0], || TcpStream::connect(at).unwrap());
    let (mut taken, _) = server.accept().unwrap();
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        taken.read_to_end(&mut all).unwrap();
        taken.write_all(&all[..1000]).unwrap();
        all.len()
    });
    client.write_all(&vec![7; 1 << 20]).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(reader.join().unwrap(), 1 << 20);
    assert_eq!(client.read_to_end(&mut Vec::new()).unwrap(), 1000);
    let receiver = inside(&bench.middle, || UdpSocket::bind("10.0.0.9:0").unwrap());
    for n in 0..20 {
        let sender = inside(&bench.hosts[0], || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap());
        sender.send_to(&vec![n; 100 + usize::from(n)], receiver.local_addr().unwrap()).unwrap();
    }
}

#[test]
fn three_commands_take_its_place_on_an_interface() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Between::new(), directory());
    bench.middle.ip("addr add 10.0.0.9/24 dev d0");
    let ports = [(4739, "1283"), (4740, "1284")];
    let stores = ports.map(|port| nfcapd(&bench.middle, dir.path(), port));
    let [control, pid] = ["softflowd.ctl", "softflowd.pid"].map(|name| dir.path().join(name));
    let argv = ["softflowd", "-d", "-i", "d0", "-n", COLLECTOR, "-v", "10", "-c", control.to_str().unwrap(), "-p"];
    let argv: Vec<String> = argv.iter().chain(&[pid.to_str().unwrap()]).map(|&word| word.to_owned()).collect();
    let mut softflowd = Process::spawn(&argv, Some(&bench.middle), &[], &dir.path().join("softflowd"));
    wait_until("softflowd runs", PATIENCE, || {
        assert!(softflowd.alive(), "scripts/setup.sh --test installs it: {}", softflowd.tail());
        control.exists()
    });
    let args = ["--port", "eth:d0,driver=af_packet", "--flows", "1k", "--ipfix", "udp://127.0.0.1:4740"];
    let logger = Logger::start(Some(&bench.middle), dir.path(), &args);
    talk(&bench);
    // 20 datagrams, both ways of TCP and of the ping.
    wait_until("the flows are listed", PATIENCE, || logger.client().flows().len() >= 22);
    // softflowd reads a block of packets when the next one comes: pings push them.
    let control = ["softflowctl", "-c", control.to_str().unwrap()];
    let counted = |what: &str| {
        let said = bench.middle.run(&[&control[..], &["statistics"]].concat());
        let (_, rest) = said.split_once(what).unwrap_or_else(|| panic!("{said}"));
        rest.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let all = counted("Packets received by libpcap:");
    wait_until("softflowd has read all packets", PATIENCE, || {
        bench.hosts[0].run(&["ping", "-q", "-c", "1", "10.0.0.9"]);
        counted("Packets processed:") >= all
    });

    let stopped = logger.operator(&["stop"]);
    assert_eq!((stopped.code, stopped.stderr.as_str()), (0, ""));
    bench.middle.run(&[&control[..], &["shutdown"]].concat());
    let status = softflowd.wait_end(PATIENCE);
    // Its exit code is 1 also where all went well.
    assert!(softflowd.output().contains("Shutting down on user request"), "{status:?}: {}", softflowd.output());
    ports.iter().for_each(|(_, hex)| wait_for_rest(&bench.middle, hex));
    let [theirs, ours] = stores.map(|(mut process, store)| {
        assert_eq!(process.end(PATIENCE).and_then(|s| s.code()), Some(0), "{}", process.output());
        let text = run(&["nfdump", "-R", store.to_str().unwrap(), "-q", "-N", "-o", "fmt:%pr %pkt %byt"]);
        let mut totals = Totals::new();
        for row in text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()) {
            let [name, packets, bytes] = row[..] else { continue };
            let sum = totals.entry(name.to_owned()).or_default();
            *sum = [sum[0] + packets.parse::<u64>().unwrap(), sum[1] + bytes.parse::<u64>().unwrap()];
        }
        totals
    });
    for protocol in ["6", "17"] {
        assert_eq!(ours.get(protocol), theirs.get(protocol), "{protocol}: {ours:?}, {theirs:?}");
    }
    // The last pings are too late for softflowd.
    assert!(ours["1"] >= theirs["1"] && theirs["1"][0] >= 10, "{ours:?}, {theirs:?}");
    assert!(ours["6"][1] > 1 << 20 && ours["17"] == [20, 2750], "{ours:?}");
}
