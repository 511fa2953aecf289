//! IPFIX over TCP and TLS towards the PyPI package `netflow`, which is killed, hangs, and is not trusted.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::between::{Between, PATIENCE};
use crate::logger::{directory, flowlog};
use crate::made::NETFLOW;
use crate::support::{ending, ending::Ending, exclusive, require, wait_until, Needs, Netns, Process};

const IDLE: [&str; 2] = ["--idle", "1s"];
/// Templates of records that are sent again have IDs from here on; those of other records have lower ones.
pub const AGAIN: u64 = 256 + 64;

/// A collector on port 4740 of a namespace, in Python.
pub fn collector(netns: &Netns, log: &Path, how: &[&str]) -> Process {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/flowlog/ipfix_stream.py");
    let argv: Vec<String> = ["/usr/bin/python3", script, "4740"].iter().chain(how).map(|&a| a.to_owned()).collect();
    let mut process = Process::spawn(&argv, Some(netns), &[("PYTHONPATH", Path::new(NETFLOW))], log);
    wait_until("the collector listens", PATIENCE, || {
        assert!(process.alive(), "{}", process.tail());
        // State 0A is LISTEN.
        netns.run(&["cat", "/proc/net/tcp"]).lines().any(|l| l.contains(":1284 ") && l.contains(" 0A "))
    });
    process
}

/// The flow records that it has read: the source address and the set of each.
pub fn read(collector: &Process) -> Vec<(String, u64)> {
    let lines = collector.output();
    let records = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let flows = records.filter_map(|r| Some((r.get("sourceIPv4Address")?.to_string(), r["set"].as_u64().unwrap())));
    flows.collect()
}

pub fn sources(flows: &[(String, u64)]) -> usize {
    flows.iter().map(|(source, _)| source).collect::<BTreeSet<_>>().len()
}

#[test]
fn what_a_killed_collector_had_not_read_is_uncertain_and_sent_again() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Between::new(), directory());
    let mut hangs = collector(&bench.middle, &dir.path().join("hangs"), &["stall"]);
    let logger = bench.logger(dir.path(), &[&IDLE[..], &["--ipfix", "tcp://127.0.0.1:4740"]].concat());
    let export = || logger.client().totals()["export"].clone();
    bench.send(0, 200);
    // The kernels have taken them; nobody has read them.
    wait_until("records are sent", PATIENCE, || export()["sent"] == 200);
    assert_eq!(export()["uncertain"], 0, "{}", export());
    hangs.signal("KILL");
    hangs.wait_end(PATIENCE);
    wait_until("they are uncertain", PATIENCE, || export()["uncertain"] == 200);
    assert_eq!((&export()["sent"], &export()["dropped"]), (&200.into(), &0.into()), "{}", export());

    let reads = collector(&bench.middle, &dir.path().join("reads"), &[]);
    wait_until("they are sent again", PATIENCE, || export()["uncertain"] == 0);
    bench.send(200, 50);
    wait_until("the others are sent", PATIENCE, || export()["sent"] == 250);
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    assert_eq!(Ending::of(&said).exports["tcp:127.0.0.1:4740"], [250, 250, 0], "{said}");
    wait_until("it has read them", PATIENCE, || read(&reads).len() >= 250);
    let (again, first): (Vec<_>, Vec<_>) = read(&reads).into_iter().partition(|&(_, set)| set >= AGAIN);
    assert_eq!((again.len(), first.len()), (200, 50));
    assert_eq!((sources(&again), sources(&first)), (200, 50));
    let lines = ending::lines(&said).lines().last().unwrap_or_default().to_owned();
    insta::assert_snapshot!(lines, @"tcp:127.0.0.1:4740: 250 records, 250 sent, 0 dropped, 200 sent again");
}

#[test]
fn a_collector_that_had_read_everything_gets_nothing_twice() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Between::new(), directory());
    let mut first = collector(&bench.middle, &dir.path().join("first"), &[]);
    let logger = bench.logger(dir.path(), &[&IDLE[..], &["--ipfix", "tcp://127.0.0.1:4740"]].concat());
    let export = || logger.client().totals()["export"].clone();
    bench.send(0, 100);
    wait_until("it has read them", PATIENCE, || read(&first).len() == 100);
    first.signal("KILL");
    first.wait_end(PATIENCE);
    wait_until("it is gone", PATIENCE, || logger.client().totals()["sinks"][0]["up"] == false);
    assert_eq!(export()["uncertain"], 0, "{}", export());
    let second = collector(&bench.middle, &dir.path().join("second"), &[]);
    bench.send(100, 50);
    wait_until("the others are read", PATIENCE, || read(&second).len() == 50);
    let (_, said) = logger.end_by("TERM");
    assert_eq!(Ending::of(&said).exports["tcp:127.0.0.1:4740"], [150, 150, 0], "{said}");
    assert_eq!(read(&second).len(), 50);
}

/// A certificate that signs itself, and its key, in two files.
fn identity(dir: &Path, name: &str) -> [PathBuf; 2] {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let files = ["crt", "key"].map(|end| dir.join(format!("{name}.{end}")));
    fs::write(&files[0], made.cert.pem()).unwrap();
    fs::write(&files[1], made.signing_key.serialize_pem()).unwrap();
    files
}

#[test]
fn openssl_reads_what_is_sent_over_tls_where_both_sides_are_trusted() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Between::new(), directory());
    let [theirs, ours, other] = ["collector.example", "exporter", "other"].map(|name| identity(dir.path(), name));
    let path = |of: &Path| of.to_str().unwrap().to_owned();
    let tls =
        collector(&bench.middle, &dir.path().join("tls"), &[&path(&theirs[0]), &path(&theirs[1]), &path(&ours[0])]);
    let url = |ca: &Path, own: &[PathBuf; 2]| {
        let (ca, [cert, key]) = (path(ca), own.each_ref().map(|of| path(of)));
        format!("tls://127.0.0.1:4740,ca={ca},name=collector.example,cert={cert},key={key}")
    };
    let logger = bench.logger(dir.path(), &[&IDLE[..], &["--ipfix", &url(&theirs[0], &ours)]].concat());
    bench.send(0, 100);
    wait_until("they are read", PATIENCE, || read(&tls).len() == 100);
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    assert_eq!(Ending::of(&said).exports["tls:127.0.0.1:4740"], [100, 100, 0], "{said}");
    assert_eq!(sources(&read(&tls)), 100);

    // A collector that we do not trust, and one that does not trust us, get nothing.
    for wrong in [url(&other[0], &ours), url(&theirs[0], &other)] {
        let logger = bench.logger(dir.path(), &[&IDLE[..], &["--ipfix", &wrong]].concat());
        bench.send(0, 10);
        let (status, said) = logger.end_by("TERM");
        assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
        let [records, sent, dropped] = Ending::of(&said).exports["tls:127.0.0.1:4740"];
        assert!(records == 10 && sent + dropped == 10, "{said}");
        assert!(dropped == 10 || said.contains("uncertain"), "{said}");
    }
    assert_eq!(read(&tls).len(), 100);
}

#[test]
fn wrong_files_of_tls_are_refused_before_the_start() {
    let dir = directory();
    let [cert, key] = identity(dir.path(), "x");
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let mut said = String::new();
    for options in [
        "",
        ",ca=/no/where",
        &format!(",ca={key}"),
        &format!(",ca={cert},cert={cert}"),
        &format!(",ca={cert},cert={cert},key={cert}"),
        &format!(",ca={cert},name=not a name"),
        &format!(",ca={cert},rate=1k"),
        ",ca=",
    ] {
        let url = format!("tls://127.0.0.1:4740{options}");
        let ended = flowlog(dir.path(), &["--port", "null:0", "--ipfix", &url]);
        assert_eq!(ended.code, 2, "{url}: {}", ended.stderr);
        said += &ended.stderr.replace(dir.path().to_str().unwrap(), "DIR");
    }
    insta::assert_snapshot!(said);
}
