//! Collectors as they are: a real one, one that is not there, a disk that is full.

use std::{
    fs,
    net::TcpListener,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::logger::{directory, records, Logger};
use crate::support::{
    exclusive,
    frames::{eth, ip4, mac, udp, IPV4, UDP},
    raw::{cable, inside, RawPort},
    require, run, wait_until, Needs, Netns, Process,
};

const STATION: [&str; 2] = ["02:4c:52:00:00:00", "02:4c:52:00:00:01"];
const MIDDLE: [&str; 2] = ["02:4c:52:00:01:00", "02:4c:52:00:01:01"];
const PORTS: [&str; 8] = ["--port", "eth:d0", "--port", "eth:d1", "--flows", "4k", "--idle", "1s"];
const PATIENCE: Duration = Duration::from_secs(60);

/// Two ends of a wire, and a namespace in the middle of it for a logger and its collectors.
struct Bench {
    ends: [RawPort; 2],
    middle: Netns,
    _hosts: [Netns; 2],
}

impl Bench {
    fn new() -> Self {
        let (hosts, middle) = ([Netns::new(), Netns::new()], Netns::new());
        middle.ip("link set lo up");
        for (n, host) in hosts.iter().enumerate() {
            cable((host, "eth0", STATION[n]), (&middle, &format!("d{n}"), MIDDLE[n]));
        }
        Self { ends: [0, 1].map(|n: usize| RawPort::open(&hosts[n], "eth0")), middle, _hosts: hosts }
    }

    /// Sends `count` frames of as many flows and waits until each has passed; their bytes.
    fn send(&self, first: u16, count: u16) -> u64 {
        let mut bytes = 0;
        for n in first..first + count {
            let src = format!("10.1.{}.{}", n >> 8, n & 255);
            let body = ip4(&src, "192.0.2.1", UDP, &udp(&src, "192.0.2.1", 53, &vec![9; usize::from(n % 900)]));
            let frame = eth(mac(STATION[1]), mac(STATION[0]), IPV4, &body);
            self.ends[0].send(&frame);
            let passed = self.ends[1].expect("it passes", PATIENCE, |f| f.get(12..14) == Some(&[8, 0]));
            assert!(passed == frame, "changed on the way");
            bytes += frame.len() as u64;
        }
        bytes
    }

    fn logger<'a>(&'a self, dir: &Path, more: &[&str]) -> Logger<'a> {
        Logger::start(Some(&self.middle), dir, &[&PORTS[..], more].concat())
    }
}

fn export(logger: &Logger<'_>) -> Value {
    logger.client().totals()["export"].clone()
}

#[test]
fn nfcapd_has_what_was_sent() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Bench::new(), directory());
    let store = dir.path().join("nf");
    fs::create_dir(&store).unwrap();
    let path = store.to_str().unwrap();
    // The namespace has all its ports to itself.
    let argv = ["nfcapd", "-w", path, "-b", "127.0.0.1", "-p", "4739", "-t", "3600"].map(str::to_owned);
    let mut nfcapd = Process::spawn(&argv, Some(&bench.middle), &[], &dir.path().join("nfcapd"));
    let sockets = || bench.middle.run(&["cat", "/proc/net/udp"]);
    wait_until("nfcapd listens", PATIENCE, || {
        assert!(nfcapd.alive(), "scripts/setup.sh --test installs nfcapd: {}", nfcapd.tail());
        sockets().contains(":1283 ")
    });
    let logger = bench.logger(dir.path(), &["--ipfix", "udp://127.0.0.1:4739"]);
    let bytes = bench.send(0, 200);
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    assert!(said.contains("udp:127.0.0.1:4739: 200 records, 200 sent, 0 dropped"), "{said}");
    // It has read all that is in its socket when the queue there is empty.
    wait_until("nfcapd reads", PATIENCE, || {
        sockets().lines().filter(|l| l.contains(":1283 ")).all(|l| l.contains(":00000000 "))
    });
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(nfcapd.end(PATIENCE).and_then(|s| s.code()), Some(0), "{}", nfcapd.output());
    let text = run(&["nfdump", "-R", path, "-q", "-o", "fmt:%sa %pkt %byt", "-N"]);
    let rows: Vec<Vec<&str>> =
        text.lines().map(|l| l.split_whitespace().collect()).filter(|r: &Vec<_>| r.len() == 3).collect();
    let sum = |column: usize| rows.iter().map(|row| row[column].parse::<u64>().unwrap()).sum::<u64>();
    assert_eq!((rows.len(), sum(1), sum(2)), (200, 200, bytes), "{text}");
}

#[test]
fn a_collector_that_is_down_loses_records_and_holds_up_nothing() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Bench::new(), directory());
    let logger = bench.logger(dir.path(), &["--ipfix", "tcp://127.0.0.1:4740", "--name", "lonely"]);
    // Frames pass while nobody takes records; ended flows wait for the collector.
    bench.send(0, 100);
    wait_until("flows have ended", PATIENCE, || export(&logger)["records"] == 100);
    assert_eq!(export(&logger)["sent"], 0, "{}", export(&logger));

    // It comes back, and gets what waited and what follows.
    let listener = inside(&bench.middle, || TcpListener::bind("127.0.0.1:4740").unwrap());
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::copy(&mut stream, &mut std::io::sink()).unwrap()
    });
    wait_until("it is found again", PATIENCE, || export(&logger)["sent"].as_u64() > Some(0));
    bench.send(100, 50);
    wait_until("the rest is exported", PATIENCE, || {
        let export = export(&logger);
        let of = |name: &str| export[name].as_u64().unwrap();
        of("records") == 150 && of("sent") + of("dropped") == 150
    });
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    assert!(said.contains("tcp:127.0.0.1:4740: 150 records"), "{said}");
    assert!(reader.join().unwrap() > 150 * 40, "bytes of IPFIX");

    // Down to the end: every record is counted as dropped, in bounded time.
    let logger = bench.logger(dir.path(), &["--ipfix", "tcp://127.0.0.1:4741"]);
    bench.send(0, 100);
    let begun = Instant::now();
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    assert!(begun.elapsed() < PATIENCE && said.contains("100 records, 0 sent, 100 dropped"), "{said}");
}

/// A file system of its own, as small as it may be.
struct Tmpfs<'a>(&'a Path);

impl<'a> Tmpfs<'a> {
    fn new(path: &'a Path) -> Self {
        fs::create_dir(path).unwrap();
        run(&["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", path.to_str().unwrap()]);
        Self(path)
    }
}

impl Drop for Tmpfs<'_> {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_is_counted_and_stops_nothing() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Bench::new(), directory());
    let small = dir.path().join("small");
    let _tmpfs = Tmpfs::new(&small);
    let json = small.join("flows.jsonl");
    let logger = bench.logger(dir.path(), &["--json", json.to_str().unwrap()]);
    bench.send(0, 200);
    wait_until("the disk is full", PATIENCE, || logger.process.output().contains("No space left"));
    bench.send(200, 20);
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    let line =
        said.lines().find(|l| l.contains("flows.jsonl") && l.contains("records")).unwrap_or_else(|| panic!("{said}"));
    let number = |before: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let at = words.iter().position(|w| w.trim_end_matches(',') == before).unwrap();
        words[at - 1].parse::<u64>().unwrap()
    };
    assert_eq!((number("records"), number("sent") + number("dropped")), (220, 220), "{line}");
    assert!(number("dropped") > 0, "{line}");
    // What is there is whole, and what was counted as sent.
    assert_eq!(records(&json).len() as u64, number("sent"), "{line}");
}
