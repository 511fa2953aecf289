//! `linerate flowlog score` as a whole: softflowd on a veth as the logger, and loggers that do not answer.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, missing_docs)]

use crate::support;

use std::net::UdpSocket;

use serde_json::Value;
use support::{
    exclusive, require, run,
    tester::{linerate, linerate_in, Ended},
    words::{FLOWS_AT, READY},
    Needs, Netns, Process, Words,
};

/// Two cables in one namespace, joined by a bridge: the tester's ends are `t0` and `t1`, a logger watches `d0`.
fn bridged() -> Netns {
    let ns = Netns::new();
    ns.ip("link set lo up");
    ns.ip("link add br0 type bridge stp_state 0 mcast_snooping 0");
    for port in 0..2 {
        ns.ip(&format!("link add t{port} address 02:4c:52:00:00:0{port} type veth peer name d{port}"));
        for name in [format!("t{port}"), format!("d{port}")] {
            ns.run(&["ethtool", "-K", &name, "tso", "off", "gso", "off", "gro", "off", "tx", "off", "rx", "off"]);
            ns.ip(&format!("link set {name} up"));
        }
        ns.ip(&format!("link set d{port} master br0"));
    }
    ns.ip("link set br0 up");
    ns.wait_for_links(&["t0", "d0", "t1", "d1", "br0"]);
    ns
}

/// softflowd on `d0`, exporting IPFIX to this port of the namespace.
fn softflowd(ns: &Netns, dir: &std::path::Path, port: u16) -> Process {
    let at = |name: &str| dir.join(name).display().to_string();
    let to = format!("127.0.0.1:{port}");
    let (pid, control) = (at("pid"), at("control"));
    let mut argv = vec!["softflowd", "-d", "-i", "d0", "-v", "10", "-A", "milli", "-n", &to, "-m", "100000"];
    argv.extend(["-p", &pid, "-c", &control]);
    for timeout in ["udp=2", "tcp=2", "tcp.fin=2", "tcp.rst=2", "general=2", "expint=1"] {
        argv.extend(["-t", timeout]);
    }
    let argv: Vec<String> = argv.into_iter().map(str::to_owned).collect();
    Process::spawn(&argv, Some(ns), &[], &dir.join("softflowd.log"))
}

/// Other traffic past the logger: softflowd's libpcap hands frames over only when a block of some 2,000 is full.
fn other_traffic(ns: &Netns, dir: &std::path::Path) -> Process {
    ns.ip("addr add 10.9.9.1/24 dev br0");
    ns.ip("neigh add 10.9.9.9 lladdr 02:00:00:00:09:09 dev br0 nud permanent");
    let send = "while :; do for i in {1..100}; do echo > /dev/udp/10.9.9.9/9; done; sleep 0.05; done";
    let argv = ["bash", "-c", send].map(str::to_owned);
    Process::spawn(&argv, Some(ns), &[], &dir.join("other.log"))
}

fn bench(ns: &Netns, port: u16, more: &[&str]) -> Ended {
    let logger = format!("ipfix=udp://127.0.0.1:{port}");
    let common =
        ["flowlog", "score", "--logger", &logger, "--port", "eth:t0", "--port", "eth:t1", "--json", "-", "--quiet"];
    linerate_in(ns, &[&common[..], &["--memory", "no-hugepages"], more].concat())
}

fn score(result: &Value) -> &Value {
    &result["flow_logger"]["scores"][0]["score"]
}

fn count(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {path} in {value}"))
}

#[test]
fn softflowd_records_what_was_sent_and_nothing_else() {
    require(&[Needs::Root, Needs::Network]);
    run(&["softflowd", "-h"]);
    let _machine = exclusive();
    let (ns, dir) = (bridged(), tempfile::tempdir().unwrap());
    let _other = other_traffic(&ns, dir.path());
    let duration = ["--duration", "1s", "--flow-wait", "25s"];
    for (program, load, l4) in [
        ("zipf:200,s=1.1", Some("2kpps"), "udp"),
        ("churn:300,packets=3", None, "tcp"),
        ("scan:20,40", Some("500pps"), "tcp"),
    ] {
        // A new one each time: its first message has the template.
        let mut logger = softflowd(&ns, dir.path(), 4739);
        let load = load.map_or_else(Vec::new, |load| vec!["--load", load]);
        let ended = bench(&ns, 4739, &[&["--flows", program, "--l4", l4], &load[..], &duration[..]].concat());
        assert!(logger.alive());
        // A busy machine makes a trial invalid; what was sent is known all the same.
        assert!([0, 1, 3].contains(&ended.code), "{program}: {} {}", ended.code, ended.stderr);
        let result = ended.json();
        let score = score(&result);
        let sent = count(score, "/flows/sent");
        let classes =
            ["exact", "missed", "duplicated", "miscounted"].map(|class| count(score, &format!("/flows/{class}")));
        assert_eq!(sent, classes.iter().sum::<u64>(), "{score}");
        let direction = &result["trials"][0]["directions"][0];
        assert_eq!(count(score, "/packets/sent"), count(direction, "/sent"), "{program}");
        // Not every frame need get through a busy machine's bridge, but what softflowd saw it recorded as it was.
        assert!(classes[0] * 10 >= sent * 9, "{program}: {score}");
        assert_eq!(count(score, "/invented/records"), 0, "{program}: {score}");
        assert_eq!(count(score, "/packets/extra"), 0, "{program}: {score}");
        assert_eq!(score["octets"], "ip", "{program}");
        if count(direction, "/lost") == 0 {
            assert_eq!(count(score, "/packets/missed"), 0, "{program}: {score}");
        }
    }
}

#[test]
fn a_logger_that_says_nothing_is_no_verdict() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let ns = bridged();
    let ended =
        bench(&ns, 4740, &["--flows", "constant:10", "--load", "1kpps", "--duration", "200ms", "--flow-wait", "1s"]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    let result = ended.json();
    assert_eq!(count(score(&result), "/flows/missed"), 10);
    insta::assert_snapshot!(result["flow_logger"]["conclusion"].as_str().unwrap());
}

#[test]
fn wrong_words_are_answered_before_anything_is_opened() {
    let logger = ["flowlog", "score", "--logger", "ipfix=udp://127.0.0.1:0"];
    let mut words = Words::new();
    let mut refused = |code: i32, args: &[&str]| words.refused(code, args, &linerate(args));
    for more in [
        &[][..],
        &["--flows", "100"],
        &["--flows", "constant:0", "--load", "1kpps"],
        &["--flows", "constant:9", "--l4", "none"],
        &["--flows", "constant:9", "--both-ways"],
        &["--flows", "constant:9", "--csv", "x.csv"],
        &["--flows", "constant:9", "--plan", "flowlog-64b"],
        &["--flows", "constant:9", "--quick"],
        &["--flows", "constant:9", "--method", "mlrsearch"],
        &["--flows", "constant:9", "--frame-sizes", "64", "--l4", "tcp", "--load", "1kpps"],
    ] {
        refused(2, &[&logger[..], more].concat());
    }
    refused(2, &["trial", "--load", "1kpps", "--flows", "constant:9"]);
    let score = |logger: &str| {
        ["flowlog", "score", "--logger", logger, "--flows", "constant:9", "--load", "1kpps"].map(str::to_owned)
    };
    let nobody = score("ours=127.0.0.1:1");
    refused(4, &nobody.each_ref().map(String::as_str));
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    let busy = score(&format!("ipfix=udp://{at}"));
    words.hide(at, "address");
    let busy = busy.each_ref().map(String::as_str);
    words.refused(4, &busy, &linerate(&busy));
    insta::assert_snapshot!(words);
}

/// `linerate flowlog` between two memif sockets, and what it said of itself.
fn ours(dir: &std::path::Path, more: &[&str]) -> (Process, String) {
    let port = |name: &str| format!("memif:{},role=server", dir.join(name).display());
    let (x, y) = (port("x"), port("y"));
    let fixed = ["--port", &x, "--port", &y, "--memory", "no-hugepages", "--cpus", "0", "--quiet"];
    let argv = [&[support::tester::BINARY, "flowlog", "--flows", "256k"][..], &fixed, more].concat();
    let argv: Vec<String> = argv.into_iter().map(str::to_owned).collect();
    let mut process = Process::spawn(&argv, None, &[("XDG_RUNTIME_DIR", dir)], &dir.join("flowlog.log"));
    process.wait_output("logging", std::time::Duration::from_secs(60), |text| text.contains(READY));
    let said = process.output();
    (process, said)
}

/// Our own logger is right to the packet, asked over its protocol or listened to as an exporter.
#[test]
fn our_own_logger_records_every_flow_exactly() {
    require(&[Needs::Root]);
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let more = ["--listen", "127.0.0.1:0", "--idle", "60s"];
    let (mut process, said) = ours(dir.path(), &more);
    let address = said.split_once(FLOWS_AT).and_then(|(_, rest)| rest.split(';').next()).unwrap();
    let read = format!("ours={address}");
    let sockets = ["x", "y"].map(|name| format!("memif:{}", dir.path().join(name).display()));
    let score_of = |logger: &str, program: &[&str]| {
        let fixed = ["flowlog", "score", "--logger", logger, "--port", &sockets[0], "--port", &sockets[1], "--quiet"];
        let rest = ["--json", "-", "--memory", "no-hugepages", "--tester-cpu", "1", "--flow-wait", "60s"];
        let result = linerate(&[&fixed[..], &rest, program].concat()).json();
        let score = score(&result).clone();
        assert!(count(&score, "/flows/sent") > 0, "{program:?}: {score}");
        assert_eq!(count(&score, "/flows/exact"), count(&score, "/flows/sent"), "{program:?}: {score}");
        for none in ["flows/missed", "flows/duplicated", "flows/miscounted", "invented/flows"] {
            assert_eq!(count(&score, &format!("/{none}")), 0, "{program:?}: {score}");
        }
    };
    // A loaded machine may make the trial invalid. The flows that were sent are known even then.
    for program in [
        &["--flows", "constant:20k", "--load", "100kpps", "--duration", "500ms"][..],
        &["--flows", "zipf:5k,s=1.1", "--load", "100kpps", "--duration", "300ms", "--l4", "tcp"],
        &["--flows", "churn:50k,packets=3", "--duration", "500ms", "--ip", "v6"],
        &["--flows", "scan:20,100", "--load", "50kpps", "--duration", "200ms", "--l4", "tcp"],
        // As before, and the flows of before are still there.
        &["--flows", "constant:20k", "--load", "100kpps", "--duration", "500ms"],
        &["--flows", "scan:20,100", "--load", "50kpps", "--duration", "200ms", "--l4", "tcp"],
    ] {
        score_of(&read, program);
    }
    let end = |process: &mut Process| {
        process.signal("TERM");
        assert!(process.wait_end(std::time::Duration::from_secs(60)).is_some_and(|status| status.success()));
    };
    end(&mut process);
    // The same as an exporter, whose collector comes later than it.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let collector = format!("tcp://{free}");
    let (mut process, _) = ours(dir.path(), &["--listen", "off", "--idle", "1s", "--ipfix", &collector]);
    let program = ["--flows", "churn:10k,packets=2", "--duration", "500ms"];
    score_of(&format!("ipfix={collector}"), &program);
    end(&mut process);
}
