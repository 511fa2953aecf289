//! Latency of raw frames over every kind of port that two ends of one machine can have, and methods beside each other.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::Value;

use crate::support::{
    exclusive,
    forwarder::Forwarder,
    require,
    tester::{linerate, linerate_in, Ended},
    Needs, Netns,
};

/// Flags that keep a run short.
const SHORT: [&str; 6] = ["--count", "20000", "--warmups", "500", "--duration", "5s"];

fn raw(netns: Option<&Netns>, flags: &[&str]) -> Ended {
    let flags = [&["latency", "raw"], flags, &SHORT].concat();
    match netns {
        Some(netns) => linerate_in(netns, &flags),
        None => linerate(&flags),
    }
}

/// A percentile of a row, ns.
fn ns(row: &Value, percent: f64) -> f64 {
    let all = row["times"]["percentiles"].as_array().unwrap();
    all.iter().find(|p| p["percent"] == percent).and_then(|p| p["ns"].as_f64()).unwrap_or_else(|| panic!("{row}"))
}

/// The rows of a run that went well: every frame that went out came back, and was whole.
#[track_caller]
fn rows(run: &Ended) -> Vec<Value> {
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let rows = run.json()["rows"].as_array().unwrap().clone();
    for row in &rows {
        let counts = &row["counts"];
        let count = |name: &str| counts[name].as_u64().unwrap();
        assert_eq!(count("sent"), count("replied") + count("lost"), "{counts}");
        assert_eq!(count("damaged"), 0, "{counts}");
        assert!(count("replied") >= 1000, "{counts}");
        let timed = row["times"]["samples"].as_u64().unwrap() + row["unstamped"].as_u64().unwrap_or(0);
        assert_eq!(timed, count("replied"), "{row}");
        assert!(ns(row, 0.0) > 0.0 && ns(row, 50.0) >= ns(row, 0.0) && ns(row, 100.0) >= ns(row, 90.0), "{row}");
    }
    rows
}

/// Two interfaces of a namespace, joined.
fn joined() -> Netns {
    let netns = Netns::new();
    netns.ip("link add t0 type veth peer name t1");
    netns.ip("link set t0 up");
    netns.ip("link set t1 up");
    netns.wait_for_links(&["t0", "t1"]);
    netns
}

#[test]
fn the_software_cable_is_measured_in_each_mode_by_an_ordinary_command() {
    for mode in ["loopback", "forward"] {
        for (tx, rx) in [("frame", "copy"), ("frame", "in-place"), ("preloaded", "copy"), ("preloaded", "in-place")] {
            let run = raw(None, &["-m", mode, "-T", tx, "-R", rx, "--json", "-"]);
            let row = rows(&run).remove(0);
            assert_eq!((row["tx"].as_str(), row["rx"].as_str()), (Some(tx), Some(rx)));
            assert_eq!(row["times"]["samples"], 20000);
            let timing = &run.json()["timing"];
            assert!(timing["own_ns"].as_f64() > Some(0.0) && timing["error_ppm"].as_f64() < Some(1000.0), "{timing}");
        }
    }
    let table = raw(None, &[]);
    assert!(table.stdout.contains("software cable") && table.stdout.contains("greatest"), "{}", table.stdout);
    let sizes = raw(None, &["--sizes", "60..1514", "--json", "-"]);
    assert_eq!(rows(&sizes).iter().map(|row| row["bytes"].as_u64().unwrap()).collect::<Vec<_>>().len(), 8);
    assert!(sizes.json()["slope"]["ns_per_byte"].is_f64(), "{}", sizes.stdout);
}

#[test]
fn the_layout_and_the_cycles_are_those_of_exanic_perf_test() {
    let exanic = raw(None, &["--layout", "exanic"]);
    let mut lines = exanic.stdout.lines();
    assert!(lines.next().unwrap().starts_with("CPU GHz = "), "{}", exanic.stdout);
    let percentiles: Vec<&str> = lines.collect();
    assert_eq!(percentiles.len(), 11, "{percentiles:?}");
    assert!(percentiles.iter().all(|line| line.starts_with("Percentile ") && line.ends_with("ns")), "{percentiles:?}");
    let cycles = raw(None, &["-a", "-s", "128"]);
    assert_eq!(cycles.stdout.lines().filter(|line| line.parse::<u64>().is_ok_and(|n| n > 0)).count(), 20000);
    let plan = linerate(&["latency", "raw", "--plan", "latency-raw-preloaded", "-c", "20000", "-w", "10"]);
    assert!(plan.stdout.contains("published") && plan.stdout.contains("629"), "{}", plan.stdout);
}

#[test]
fn every_kind_of_port_has_a_latency() {
    require(&[Needs::Root, Needs::Network]);
    let netns = joined();
    for (ports, method) in [
        (["eth:t0,driver=af_packet", "eth:t1,driver=af_packet"], "AF_PACKET mmap"),
        (["eth:t0,driver=af_xdp", "eth:t1,driver=af_xdp"], "AF_XDP copy"),
        (["socket:t0", "socket:t1"], "AF_PACKET sockets"),
        (["eth:t0,driver=af_packet", "eth:t1,driver=af_xdp"], "AF_PACKET mmap to AF_XDP copy"),
    ] {
        for (tx, rx) in [("frame", "copy"), ("preloaded", "in-place")] {
            let flags =
                ["--port", ports[0], "--port", ports[1], "--tx", tx, "--rx", rx, "--sizes", "60,1514", "--json", "-"];
            let run = raw(Some(&netns), &flags);
            let rows = rows(&run);
            assert_eq!(rows.iter().map(|row| row["bytes"].as_u64().unwrap()).collect::<Vec<_>>(), [60, 1514]);
            assert_eq!(rows[0]["method"], method, "{}", run.stderr);
            assert!(ns(&rows[0], 50.0) > 200.0, "a system call takes longer: {}", rows[0]);
        }
    }
    let stamped =
        raw(Some(&netns), &["--port", "socket:t0", "--port", "socket:t1", "--stamps", "software", "--json", "-"]);
    let row = rows(&stamped).remove(0);
    assert_eq!((row["span"].as_str(), row["unstamped"].as_u64()), (Some("driver-to-driver"), Some(0)));
    assert!(ns(&row, 50.0) < 1e6, "{row}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m").display().to_string();
    for (ports, method) in [
        ([format!("memif:{path}0"), format!("memif:{path}0,role=server")], "memif"),
        ([format!("vhost:{path}1"), format!("virtio:{path}1")], "vhost-user"),
    ] {
        let run = raw(None, &["--port", &ports[0], "--port", &ports[1], "--json", "-"]);
        assert_eq!(rows(&run)[0]["method"], method);
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "no socket is left");
}

#[test]
fn a_delay_in_the_path_is_found() {
    let _machine = exclusive();
    let netns = Netns::new();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let median = |name: &str, delay: &[&str]| {
        let (a, b) = (path(&format!("{name}a")), path(&format!("{name}b")));
        let ports = [format!("memif:{a},role=server"), format!("memif:{b},role=server")];
        let flags =
            [&["l2", "--cpus", "0", "--name", name, "--port", &ports[0], "--port", &ports[1]][..], delay].concat();
        let _forwarder = Forwarder::start(&netns, &flags);
        let (a, b) = (format!("memif:{a}"), format!("memif:{b}"));
        let flags = ["--port", &a, "--port", &b, "--cpu", "1", "--json", "-"];
        let run = raw(Some(&netns), &flags);
        ns(&rows(&run)[0], 50.0)
    };
    for (name, text, delay) in [("short", "delay=20us", 20_000.0), ("long", "delay=500us", 500_000.0)] {
        // The cores of a virtual machine change places, and a frame between them then takes a microsecond more: what
        // counts is a measurement between two without the delay that agree.
        let mut before = median("plain", &[]);
        let mut seen = Vec::new();
        let found = (0..20).any(|_| {
            let (with, after) = (median(name, &["--impair", text]), median("plain", &[]));
            seen.push((before, with, after));
            let without = std::mem::replace(&mut before, after);
            let off = (with - without.min(after) - delay).abs();
            (without - after).abs() <= 100.0 && off <= (delay * 0.02).max(200.0)
        });
        assert!(found, "{text}, medians before, with and after: {seen:?}");
    }
}

#[test]
fn frames_that_do_not_come_are_an_answer_in_a_line() {
    require(&[Needs::Root, Needs::Network]);
    let netns = Netns::new();
    netns.ip("link add t0 type veth peer name x0");
    netns.ip("link add t1 type veth peer name x1");
    ["t0", "t1", "x0", "x1"].iter().for_each(|name| netns.ip(&format!("link set {name} up")));
    netns.wait_for_links(&["t0", "t1"]);
    let small = joined();
    for (netns, flags, code, says) in [
        (Some(&netns), &["--port", "socket:t0", "--port", "socket:t1"][..], 4, "no frame of 60 B came"),
        (Some(&netns), &["--port", "eth:t0", "--port", "eth:t1"], 4, "join the two ports"),
        (Some(&netns), &["-m", "forward", "--port", "eth:t0", "--port", "eth:t1"], 4, "no frame"),
        (Some(&small), &["--port", "socket:t0", "--port", "socket:t1", "--sizes", "9014"], 2, "carries at most 1514 B"),
        (Some(&netns), &["--port", "socket:t0", "--port", "socket:none"], 2, "no interface none"),
        (Some(&netns), &["--port", "eth:none", "--port", "eth:t1"], 2, "none"),
        (Some(&small), &["--port", "socket:t0", "--port", "socket:t1", "--hw"], 4, "hardware time stamps of t0"),
        (None, &["--hw"], 2, "socket:IFACE"),
        (None, &["--zero-copy"], 2, "AF_XDP"),
        (
            Some(&small),
            &["--port", "eth:t0,driver=af_xdp", "--port", "eth:t1,driver=af_xdp", "--zero-copy"],
            4,
            "no zero-copy",
        ),
        (None, &["-m", "forward", "--background", "1k"], 2, "--background"),
        (None, &["--port", "eth:t0"], 2, "1 --port given"),
        (None, &["--port", "null", "--port", "eth:t0"], 2, "no latency"),
        (None, &["--sizes", "59"], 2, "60 to 9014"),
        (None, &["--sizes", "100..60"], 2, "60 to 9014"),
        (None, &["--until", "1%"], 2, "ci="),
        (None, &["--plan", "latency-udp"], 2, "latency-raw-loopback"),
        (None, &["--cpu", "4000"], 2, "4000"),
        (None, &["--descriptors", "100"], 2, "power of two"),
        (None, &["--json", "/nowhere/at/all.json"], 2, "/nowhere"),
    ] {
        let run = raw(netns, flags);
        assert!(
            run.code == code || (flags.contains(&"eth:none") && run.code == 4),
            "{flags:?}: {} {}",
            run.code,
            run.stderr
        );
        assert_eq!(
            (run.stdout.as_str(), run.stderr.lines().count()),
            ("", 1),
            "{flags:?}: {}{}",
            run.stdout,
            run.stderr
        );
        assert!(run.stderr.contains(says), "{flags:?}: {}", run.stderr);
    }
}

#[test]
fn every_method_of_this_machine_is_compared() {
    require(&[Needs::Root, Needs::Network]);
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (json, svg, markdown, csv) = (file("c.json"), file("c.svg"), file("c.md"), file("c.csv"));
    let before = crate::support::run(&["ip", "link", "show"]);
    let flags = ["--duration", "300ms", "--json", &json, "--svg", &svg, "--markdown", &markdown, "--csv", &csv];
    let run = linerate(&[&["latency", "compare"], &flags[..]].concat());
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let result: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(result["missing"].as_array().map(Vec::len), Some(0), "{}", result["missing"]);
    let rows = result["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 18);
    let spans = |span: &str| rows.iter().filter(|row| row["span"] == span).count();
    assert_eq!((spans("send-to-receive"), spans("round-trip")), (12, 6));
    for row in rows {
        assert!(ns(row, 0.0) > 0.0 && row["times"]["samples"].as_u64() > Some(10), "{row}");
        assert!(run.stdout.contains(row["method"].as_str().unwrap()), "{}", run.stdout);
    }
    let svg = std::fs::read_to_string(&svg).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("UDP, blocking"), "{svg}");
    assert!(std::fs::read_to_string(&markdown).unwrap().contains("| memif"));
    assert_eq!(std::fs::read_to_string(&csv).unwrap().lines().count(), 1 + 18 * 14);
    assert_eq!(crate::support::run(&["ip", "link", "show"]), before, "nothing is left");
}
