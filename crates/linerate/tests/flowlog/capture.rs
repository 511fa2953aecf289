//! Captures, read to their end.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::logger::{directory, flowlog, records, sum, Logger};
use crate::support::{
    ending::{self, Ending},
    frames::{arp, eth, ip4, ip6, mac, udp, ARP, BROADCAST, IPV4, IPV6, UDP},
    tester::BINARY,
    Words,
};

const A: &str = "02:4c:52:00:00:00";
const B: &str = "02:4c:52:00:00:01";
const MEMORY: [&str; 4] = ["--memory", "no-hugepages", "--check-pools", "--quiet"];

/// A capture of these frames, a microsecond apart.
fn write(dir: &Path, frames: &[Vec<u8>]) -> PathBuf {
    write_timed(dir, (0..).map(Duration::from_micros).zip(frames))
}

fn write_timed<'a>(dir: &Path, frames: impl Iterator<Item = (Duration, &'a Vec<u8>)>) -> PathBuf {
    let path = dir.join("in.pcap");
    let mut writer = packet::pcap::Writer::new(std::fs::File::create(&path).unwrap()).unwrap();
    frames.for_each(|(time, frame)| writer.write(time, frame).unwrap());
    path
}

/// A datagram of flow `n`.
fn datagram(n: u16, len: usize) -> Vec<u8> {
    let src = format!("10.0.{}.{}", n >> 8, n & 255);
    eth(mac(B), mac(A), IPV4, &ip4(&src, "192.0.2.1", UDP, &udp(&src, "192.0.2.1", 53, &vec![7; len])))
}

fn mixed() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for round in 0..5 {
        frames.extend((0..300).map(|n| datagram(n, 20 + round * 100)));
        let (src, dst) = ("2001:db8::1", "2001:db8::2");
        frames.extend(
            (0..10).map(|p| eth(mac(B), mac(A), IPV6, &ip6(src, dst, UDP, &udp(src, dst, 1000 + p, &[1; 64])))),
        );
        frames.push(eth(BROADCAST, mac(A), ARP, &arp(1, (mac(A), "10.0.0.1"), (mac(B), "10.0.0.2"))));
        frames.push(eth(mac(B), mac(A), IPV4, &[0x41; 46]));
    }
    frames
}

#[track_caller]
fn ended_by(records: &[Value], reason: &str) {
    assert!(records.iter().all(|r| r["end"] == reason), "{records:?}");
}

#[test]
fn a_capture_passes_and_every_flow_of_it_is_recorded() {
    let dir = directory();
    let frames = mixed();
    let input = write(dir.path(), &frames);
    let (out, json) = (dir.path().join("out.pcap"), dir.path().join("flows.jsonl"));
    let ports = [format!("pcap:rx={},tx=/dev/null", input.display()), format!("pcap:tx={}", out.display())];
    let args = ["--port", &ports[0], "--port", &ports[1], "--once", "--listen", "off", "--flows", "1k", "--json"];
    let ended = flowlog(dir.path(), &[&args[..], &[json.to_str().unwrap()], &MEMORY].concat());
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);

    let passed: Vec<_> =
        packet::pcap::read(std::fs::File::open(&out).unwrap()).unwrap().map(|f| f.unwrap().bytes).collect();
    assert!(passed == frames, "{} of {} frames passed unchanged", passed.len(), frames.len());

    let records = records(&json);
    assert_eq!(records.len(), 310);
    ended_by(&records, "forced");
    let ip: Vec<_> = frames.iter().filter(|f| f.len() > 60 && f[14] != 0x41 && f[12..14] != [8, 6]).collect();
    assert_eq!(sum(&records, "packets"), ip.len() as u64);
    assert_eq!(sum(&records, "frame_bytes"), ip.iter().map(|f| f.len() as u64).sum::<u64>());
    assert!(records.iter().all(|r| r["forward"]["packets"] == 5 && r["back"]["packets"] == 0), "{records:?}");
    let ending = Ending::of(&ended.stdout);
    assert_eq!((ending.forced, ending.exported, ending.dropped), (310, 310, 0), "{}", ended.stdout);
    assert_eq!((ending.not_ip, ending.malformed), (5, 5), "{}", ended.stdout);
    assert_eq!(ending.exports.into_values().collect::<Vec<_>>(), [[310, 310, 0]], "{}", ended.stdout);
    insta::assert_snapshot!(ending::lines(&ended.stdout).replace(dir.path().to_str().unwrap(), "[dir]"));
}

#[test]
fn one_port_alone_reads_a_capture() {
    let dir = directory();
    let input = format!("pcap:{}", write(dir.path(), &mixed()).display());
    let json = dir.path().join("flows.jsonl");
    let args = ["--port", &input, "--once", "--listen", "off", "--flows", "1k", "--biflow", "off", "--json"];
    let ended = flowlog(dir.path(), &[&args[..], &[json.to_str().unwrap()], &MEMORY].concat());
    assert_eq!((ended.code, records(&json).len()), (0, 310), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(Ending::of(&ended.stdout).begun, 310, "{}", ended.stdout);
    insta::assert_snapshot!(ending::lines(&ended.stdout).replace(dir.path().to_str().unwrap(), "[dir]"));
}

#[test]
fn flows_have_the_times_of_the_capture_and_timeouts_follow_them() {
    const START: u64 = 1_700_000_000;
    let dir = directory();
    let flows: Vec<_> = (0..4).map(|n| datagram(n, 30)).collect();
    // Flow 0 rests for longer than the idle timeout, 1 goes on, 2 is over soon, and 3 comes at the end; one frame of flow 1
    // was written late.
    let mut frames: Vec<(u64, usize)> = vec![(0, 0), (0, 2), (10, 0), (60, 0), (95, 1), (401, 3)];
    frames.extend((0..=40).map(|n| (n * 10, 1)));
    frames.sort_by_key(|&(time, flow)| (if time == 95 { 105 } else { time }, flow));
    let timed = frames.iter().map(|&(time, flow)| (Duration::from_secs(START + time), &flows[flow]));
    let input = format!("pcap:{}", write_timed(dir.path(), timed).display());
    let json = dir.path().join("flows.jsonl");
    let args = ["--port", &input, "--once", "--listen", "off", "--flows", "1k", "--idle", "30s", "--active", "5m"];
    let ended = flowlog(dir.path(), &[&args[..], &["--json", json.to_str().unwrap()], &MEMORY].concat());
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let seen = |r: &Value| {
        let time = |what: &str| r[what].as_u64().unwrap() as f64 / 1e9 - START as f64;
        let flow = r["src"].as_str().unwrap().rsplit('.').next().unwrap().to_owned();
        (
            flow,
            time("first_unix_ns"),
            time("last_unix_ns"),
            r["forward"]["packets"].as_u64().unwrap(),
            r["end"].as_str().unwrap().to_owned(),
        )
    };
    let mut seen: Vec<_> = records(&json).iter().map(seen).collect();
    seen.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let seen: Vec<_> = seen.iter().map(|(flow, a, b, n, end)| (flow.as_str(), *a, *b, *n, end.as_str())).collect();
    assert_eq!(
        seen,
        [
            ("0", 0.0, 10.0, 2, "idle"),
            ("0", 60.0, 60.0, 1, "idle"),
            ("1", 0.0, 290.0, 31, "active"),
            ("1", 300.0, 400.0, 11, "forced"),
            ("2", 0.0, 0.0, 1, "idle"),
            ("3", 401.0, 401.0, 1, "forced"),
        ]
    );
}

#[test]
fn a_capture_cut_in_the_middle_of_a_frame_is_read_so_far_and_told() {
    let dir = directory();
    let input = write(dir.path(), &(0..10).map(|n| datagram(n, 30)).collect::<Vec<_>>());
    let whole = std::fs::read(&input).unwrap();
    std::fs::write(&input, &whole[..whole.len() - 5]).unwrap();
    let port = format!("pcap:{}", input.display());
    let mut words = Words::new();
    words.hide(dir.path().display(), "dir");
    // Read once, and replayed for ever.
    for (how, code) in [(&["--once"][..], 1), (&["--duration", "500ms"], 0)] {
        let args = ["--port", &port, "--listen", "off", "--flows", "1k", "--biflow", "off"];
        let ended = flowlog(dir.path(), &[&args[..], how, &MEMORY].concat());
        assert_eq!(ended.code, code, "{}{}", ended.stdout, ended.stderr);
        let warnings: Vec<_> =
            ended.stderr.lines().filter(|line| line.contains("port pcap:") && line.contains("frame")).collect();
        assert!(matches!(warnings[..], [line] if line.contains("frame 10")), "{}", ended.stderr);
        assert_eq!(Ending::of(&ended.stdout).begun, 9, "{}", ended.stdout);
        words.add(how[0], warnings[0]);
    }
    insta::assert_snapshot!(words);
}

/// Runs a logger of what comes through its standard input, which a shell writes; what it printed, and its records.
fn piped(dir: &Path, write: &str) -> (i32, String, String, Vec<Value>) {
    let json = dir.join("piped.jsonl");
    let line = format!(
        "{write} | {BINARY} flowlog --port pcap:- --once --listen off --flows 1k --json {} {}",
        json.display(),
        MEMORY.join(" ")
    );
    let ended = Command::new("sh").args(["-c", &line]).env("XDG_RUNTIME_DIR", dir).output().unwrap();
    let [out, err] = [ended.stdout, ended.stderr].map(|text| String::from_utf8(text).unwrap());
    let records = records(&json);
    std::fs::remove_file(json).unwrap();
    (ended.status.code().unwrap(), out, err, records)
}

#[test]
fn a_pipe_is_read_to_its_end_whatever_the_kind_of_capture() {
    let dir = directory();
    let input = write(dir.path(), &(0..10).map(|n| datagram(n, 30)).collect::<Vec<_>>());
    let ng = dir.path().join("in.pcapng");
    let made = Command::new("editcap").args(["-F", "pcapng"]).arg(&input).arg(&ng).status();
    assert!(made.unwrap().success(), "editcap, of Debian's wireshark-common (scripts/setup.sh --test)");
    for file in [&input, &ng] {
        // Whole, with a pause longer than any idle period, and cut.
        let file = file.display();
        for (write, code, flows) in [
            (format!("cat {file}"), 0, 10),
            (format!("(head -c 500 {file}; sleep 2; tail -c +501 {file})"), 0, 10),
            (format!("head -c -5 {file}"), 1, 9),
        ] {
            let (got, out, err, records) = piped(dir.path(), &write);
            assert_eq!((got, records.len()), (code, flows), "{write}: {out}{err}");
            assert_eq!(
                err.lines().any(|line| line.starts_with("linerate: ") && line.contains("frame")),
                code == 1,
                "{err}"
            );
            // The times of the capture.
            assert!(records.iter().all(|r| r["first_unix_ns"].as_u64() < Some(1_000_000)), "{records:?}");
        }
    }
    // What cannot be read twice is not replayed.
    let command = format!(
        "cat {} | {BINARY} flowlog --port pcap:- --listen off --flows 1k {}",
        input.display(),
        MEMORY.join(" ")
    );
    let refused = Command::new("sh").args(["-c", &command]).env("XDG_RUNTIME_DIR", dir.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
}

#[test]
fn records_of_a_capture_that_nobody_keeps_are_not_a_success() {
    let dir = directory();
    let input = write(dir.path(), &(0..10).map(|n| datagram(n, 30)).collect::<Vec<_>>());
    let port = format!("pcap:{}", input.display());
    let mut words = Words::new();
    // The second is found before anything is read.
    for (json, code) in [("/dev/full", 1), ("/proc/x", 2)] {
        let args = ["--port", &port, "--once", "--listen", "off", "--flows", "1k", "--json", json];
        let ended = flowlog(dir.path(), &[&args[..], &MEMORY].concat());
        assert_eq!(ended.code, code, "{}{}", ended.stdout, ended.stderr);
        let errors: Vec<_> = ended.stderr.lines().filter(|line| line.starts_with("linerate: ")).collect();
        assert_eq!((errors.len(), ended.stdout.contains("10 begun")), (1, code == 1), "{ended:?}");
        words.add(json, errors[0]);
    }
    insta::assert_snapshot!(words);
}

#[test]
fn a_full_table_is_told_and_stops_nothing() {
    let dir = directory();
    let mut words = Words::new();
    words.hide(dir.path().display(), "dir");
    let frames: Vec<_> = (0..6000).map(|n| datagram(n, 30)).collect();
    let input = format!("pcap:{}", write(dir.path(), &frames).display());
    for (policy, reason) in [("drop-new", "forced"), ("evict", "lack_of_resources")] {
        let json = dir.path().join(policy);
        let args = ["--port", &input, "--once", "--listen", "off", "--flows", "1k", "--table-full", policy, "--json"];
        let ended = flowlog(dir.path(), &[&args[..], &[json.to_str().unwrap()], &MEMORY].concat());
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
        let (refused, evicted) = Ending::of(&ended.stdout).full.expect("the table was full");
        assert_eq!(evicted > 0, policy == "evict", "{}", ended.stdout);
        words.add_without_figures(policy, ending::lines(&ended.stdout));
        let records = records(&json);
        assert!(records.iter().any(|r| r["end"] == reason), "no {reason} in {}", records.len());
        assert_eq!(sum(&records, "packets") + refused, 6000, "{}", ended.stdout);
        // Nothing stays behind, but what was asked for.
        assert_eq!(std::fs::read_dir(dir.path().join("linerate")).unwrap().count(), 0);
    }
    insta::assert_snapshot!(words);
}

/// A collector that is not there makes the end take long: long enough for two to ask for it. Before that the process is
/// stopped by a signal, and whoever asks it something is told so.
#[test]
fn one_that_is_stopped_is_not_waited_for_and_one_that_ends_is_by_all() {
    let dir = directory();
    let input = format!("pcap:{}", write(dir.path(), &mixed()).display());
    let args = ["--port", &input, "--flows", "1k", "--memory", "no-hugepages", "--ipfix", "tcp://127.0.0.1:1"];
    let mut logger = Logger::start(None, dir.path(), &args);
    logger.process.signal("STOP");
    let asked = logger.operator(&["show", "runtime"]);
    logger.process.signal("CONT");
    let mut words = Words::new();
    words.hide(dir.path().display(), "dir");
    words.refused_in_a_line(1, &["show", "runtime"], &asked);
    insta::assert_snapshot!(words);
    assert_eq!(logger.operator(&["show", "ports"]).code, 0);

    let name = dir.path().join("linerate/flowlog.sock");
    let stop = ["stop", "--socket", name.to_str().unwrap()];
    std::thread::scope(|s| {
        let first = s.spawn(|| flowlog(dir.path(), &stop));
        // While the last records wait for their collector.
        std::thread::sleep(Duration::from_secs(3));
        assert!(logger.process.alive(), "{}", logger.process.output());
        for ended in [flowlog(dir.path(), &stop), first.join().unwrap()] {
            assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        }
    });
    let status = logger.process.wait_end(Duration::from_secs(1));
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{}", logger.process.output());
}
