//! Collectors as they are: a real one, one that is not there, a disk that is full.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::between::{Between, PATIENCE};
use crate::logger::{directory, records, Logger};
use crate::support::{
    ending::Ending,
    exclusive,
    raw::inside,
    require, run, wait_until,
    words::{DISK_FULL, WAITING_FOR},
    Needs, Netns, Process,
};

const IDLE: [&str; 2] = ["--idle", "1s"];

fn export(logger: &Logger<'_>) -> Value {
    logger.client().totals()["export"].clone()
}

/// nfcapd that listens on port 4739 of a namespace, where no other does.
pub struct Nfcapd<'a> {
    process: Process,
    netns: &'a Netns,
    store: PathBuf,
}

impl<'a> Nfcapd<'a> {
    #[track_caller]
    pub fn start(netns: &'a Netns, dir: &Path) -> Self {
        let store = dir.join("nf");
        fs::create_dir(&store).unwrap();
        let path = store.to_str().unwrap();
        let argv = ["nfcapd", "-w", path, "-b", "127.0.0.1", "-p", "4739", "-t", "3600"].map(str::to_owned);
        let mut process = Process::spawn(&argv, Some(netns), &[], &dir.join("nfcapd"));
        wait_until("nfcapd listens", PATIENCE, || {
            assert!(process.alive(), "scripts/setup.sh --test installs nfcapd: {}", process.tail());
            netns.run(&["cat", "/proc/net/udp"]).contains(":1283 ")
        });
        Self { process, netns, store }
    }

    /// Ends it; its records, each with what nfdump prints of it in this format.
    #[track_caller]
    pub fn rows(mut self, format: &str) -> Vec<Vec<String>> {
        // It has read all that is in its socket when the queue there is empty.
        wait_until("nfcapd reads", PATIENCE, || {
            let sockets = self.netns.run(&["cat", "/proc/net/udp"]);
            sockets.lines().filter(|l| l.contains(":1283 ")).all(|l| l.contains(":00000000 "))
        });
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(self.process.end(PATIENCE).and_then(|s| s.code()), Some(0), "{}", self.process.output());
        let text = run(&["nfdump", "-R", self.store.to_str().unwrap(), "-q", "-o", format, "-N"]);
        let columns = format.split(' ').count();
        let rows = text.lines().map(|l| l.split_whitespace().map(str::to_owned).collect());
        rows.filter(|r: &Vec<_>| r.len() == columns).collect()
    }
}

#[test]
fn nfcapd_has_what_was_sent() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Between::new(), directory());
    let nfcapd = Nfcapd::start(&bench.middle, dir.path());
    let logger = bench.logger(dir.path(), &[&IDLE[..], &["--ipfix", "udp://127.0.0.1:4739"]].concat());
    let bytes = bench.send(0, 200);
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    assert_eq!(Ending::of(&said).exports["udp:127.0.0.1:4739"], [200, 200, 0], "{said}");
    let rows = nfcapd.rows("fmt:%sa %pkt %byt %inam %onam");
    let sum = |column: usize| rows.iter().map(|row| row[column].parse::<u64>().unwrap()).sum::<u64>();
    assert!(rows.iter().all(|row| row[3..] == ["eth:d0", "eth:d1"]), "{rows:?}");
    // Of IP, without the Ethernet headers.
    assert_eq!((rows.len(), sum(1), sum(2)), (200, 200, bytes - 200 * 14), "{rows:?}");
}

/// A collector keeps a sequence for each address and observation domain: loggers of one machine must not share one.
#[test]
fn nfcapd_tells_two_loggers_apart() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Between::new(), directory());
    let nfcapd = Nfcapd::start(&bench.middle, dir.path());
    let store = nfcapd.store.clone();
    for (name, first) in [("west", 0), ("east", 100)] {
        let more = ["--ipfix", "udp://127.0.0.1:4739,refresh=1s,mtu=1500,names=off", "--name", name];
        let logger = bench.logger(dir.path(), &[&IDLE[..], &more].concat());
        bench.send(first, 100);
        let (status, said) = logger.end_by("TERM");
        assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
        assert_eq!(Ending::of(&said).exports["udp:127.0.0.1:4739"], [100, 100, 0], "{said}");
    }
    assert_eq!(nfcapd.rows("fmt:%sa %pkt").len(), 200);
    let summary = run(&["nfdump", "-I", "-R", store.to_str().unwrap()]);
    assert!(summary.contains("Sequence failures: 0\n"), "{summary}");
}

#[test]
fn a_collector_that_is_down_loses_records_and_holds_up_nothing() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Between::new(), directory());
    let logger =
        bench.logger(dir.path(), &[&IDLE[..], &["--ipfix", "tcp://127.0.0.1:4740", "--name", "lonely"]].concat());
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
    assert_eq!(Ending::of(&said).exports["tcp:127.0.0.1:4740"][0], 150, "{said}");
    assert!(reader.join().unwrap() > 150 * 40, "bytes of IPFIX");

    // Down to the end: every record is counted as dropped, in bounded time.
    let logger = bench.logger(dir.path(), &[&IDLE[..], &["--ipfix", "tcp://127.0.0.1:4741"]].concat());
    bench.send(0, 100);
    let begun = Instant::now();
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    assert!(begun.elapsed() < PATIENCE, "{said}");
    assert_eq!(Ending::of(&said).exports["tcp:127.0.0.1:4741"], [100, 0, 100], "{said}");
    assert!(said.contains(&format!("{WAITING_FOR}tcp:127.0.0.1:4741;")), "{said}");
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
    let (bench, dir) = (Between::new(), directory());
    let small = dir.path().join("small");
    let _tmpfs = Tmpfs::new(&small);
    let json = small.join("flows.jsonl");
    let logger = bench.logger(dir.path(), &[&IDLE[..], &["--json", json.to_str().unwrap()]].concat());
    bench.send(0, 200);
    wait_until("the disk is full", PATIENCE, || logger.process.output().contains(DISK_FULL));
    bench.send(200, 20);
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    let exports = Ending::of(&said).exports;
    let [(_, [taken, sent, dropped])] = exports.into_iter().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert_eq!((taken, sent + dropped), (220, 220), "{said}");
    assert!(dropped > 0, "{said}");
    // What is there is whole, and what was counted as sent.
    assert_eq!(records(&json).len() as u64, sent, "{said}");
}
