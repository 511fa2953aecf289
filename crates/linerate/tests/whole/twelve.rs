//! Twelve flow loggers side by side on one machine, one display of them all, and nothing left when they have ended.

// The helpers below are test code too; clippy knows only functions marked as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, missing_docs)]

#[path = "../flowlog/logger.rs"]
#[allow(dead_code)]
mod logger;
use crate::support;

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use logger::{directory, Logger};
use serde_json::Value;
use support::{
    ending::Ending,
    exclusive,
    frames::{eth, ip4, mac, udp, IPV4, UDP},
    tester::{linerate, BINARY},
    wait_until,
    words::loggers_read,
    Process,
};

const LOGGERS: usize = 12;
const PATIENCE: Duration = Duration::from_secs(120);

/// Names in a directory.
fn files(dir: &str) -> BTreeSet<String> {
    fs::read_dir(dir).map_or_else(
        |_| BTreeSet::new(),
        |all| all.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect(),
    )
}

/// A capture of `n + 1` flows of one packet each.
fn capture(path: &Path, n: usize) {
    let mut writer = packet::pcap::Writer::new(fs::File::create(path).unwrap()).unwrap();
    for i in 0..=n {
        let src = format!("10.{n}.0.{}", i + 1);
        let body = ip4(&src, "192.0.2.1", UDP, &udp(&src, "192.0.2.1", 53, &[7; 30]));
        let frame = eth(mac("02:4c:52:00:00:01"), mac("02:4c:52:00:00:00"), IPV4, &body);
        writer.write(Duration::from_micros(i as u64), &frame).unwrap();
    }
}

/// Logger `n`: even ones read a capture once, odd ones see nothing.
fn start(dir: &Path, n: usize) -> Process {
    let file = dir.join(format!("in{n}.pcap"));
    let ports = if n.is_multiple_of(2) {
        capture(&file, n);
        // As DPDK names it: read once, and the logger goes on.
        [format!("raw:net_pcap0,rx_pcap={},tx_pcap=/dev/null", file.display()), "null,no-rx=1".to_owned()]
    } else {
        ["null,no-rx=1".to_owned(), "null,no-rx=1".to_owned()]
    };
    let (name, cpu) = (format!("logger{n}"), (n % 2).to_string());
    let args = ["--port", &ports[0], "--port", &ports[1], "--name", &name, "--flows", "1k", "--cpus", &cpu];
    let more = ["--memory", "no-hugepages", "--memory-mib", "128", "--check-pools", "--idle", "1h", "--active", "1h"];
    // They poll, and there are fewer CPUs than loggers: everybody else goes first, and whatever becomes of this test, they
    // do not poll for ever.
    Logger::spawn(&["nice", "-n", "19"], None, dir, &[&args[..], &more, &["--duration", "5m"]].concat())
}

/// What the display has drawn, without the escapes that place it. Blanks are not always drawn.
fn drawn(out: &str) -> String {
    let mut parts = out.split('\u{1b}');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(['[', '?']).trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        text += rest.get(1..).unwrap_or_default();
    }
    text.replace(' ', "")
}

#[test]
fn twelve_loggers_are_read_in_one_display_and_leave_nothing() {
    let _machine = exclusive();
    let dir = directory();
    let before = ["/run/dpdk", "/dev/hugepages"].map(files);
    let started: Vec<_> = (0..LOGGERS).map(|n| start(dir.path(), n)).collect();
    let loggers: Vec<_> = started.into_iter().map(|process| Logger::ready(process, None, dir.path())).collect();
    let ids: Vec<_> = loggers.iter().map(|l| l.process.id()).collect();
    let addresses: Vec<_> = loggers.iter().map(|l| l.address().to_string()).collect();
    let mut clients: Vec<_> = loggers.iter().map(Logger::client).collect();
    for n in (0..LOGGERS).step_by(2) {
        wait_until("its capture is read", PATIENCE, || clients[n].flows().len() == n + 1);
    }
    drop(clients);

    let mut args = vec!["flows", "--json", "--count", "2", "--top", "20"];
    args.extend(addresses.iter().map(String::as_str));
    let ended = linerate(&args);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
    let lines: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2 * LOGGERS);
    for (n, address) in addresses.iter().enumerate() {
        let own: Vec<_> = lines.iter().filter(|l| l["logger"] == address.as_str()).collect();
        assert_eq!(own.len(), 2, "{address}");
        let flows = if n % 2 == 0 { n + 1 } else { 0 };
        for line in own {
            assert_eq!((&line["state"], &line["name"]), (&"connected".into(), &format!("logger{n}").into()));
            let interfaces = line["totals"]["interfaces"].as_array().unwrap();
            assert_eq!(interfaces.len(), 2, "{line}");
            assert_eq!((&interfaces[0]["packets"], &interfaces[1]["packets"]), (&flows.into(), &0.into()), "{line}");
            assert_eq!((&line["totals"]["table"]["flows"], &line["top"]["matching"]), (&flows.into(), &flows.into()));
            let named = if n % 2 == 0 { "raw:net_pcap0" } else { "null" };
            assert!(interfaces[0]["name"].as_str().unwrap().starts_with(named), "{line}");
        }
    }
    on_a_terminal(dir.path(), &addresses);

    // All are told at once, and each ends by itself.
    loggers.iter().for_each(|logger| logger.process.signal("TERM"));
    for (n, logger) in loggers.into_iter().enumerate() {
        let mut process = logger.process;
        let status = process.wait_end(PATIENCE);
        assert_eq!(status.and_then(|s| s.code()), Some(0), "logger{n}: {}", process.output());
        let flows = if n % 2 == 0 { n + 1 } else { 0 };
        let ending = Ending::of(&process.output());
        assert_eq!((ending.left, ending.forced), (0, flows as u64), "{}", process.output());
    }
    assert_eq!(files(dir.path().join("linerate").to_str().unwrap()), BTreeSet::new(), "control sockets");
    for (name, before) in ["/run/dpdk", "/dev/hugepages"].iter().zip(before) {
        let ours = |file: &&String| ids.iter().any(|id| file.contains(&id.to_string()));
        let left: Vec<_> = files(name).difference(&before).filter(ours).cloned().collect();
        assert!(left.is_empty(), "{name}: {left:?}");
    }
    assert!(ids.iter().all(|id| !Path::new(&format!("/proc/{id}")).exists()), "processes");
    // Whoever asks is told that nobody is there.
    let gone =
        linerate(&[&["flows", "--once"][..], &addresses.iter().map(String::as_str).collect::<Vec<_>>()].concat());
    assert_eq!(gone.code, 4, "{}{}", gone.stdout, gone.stderr);
}

/// The display shows a panel for each, once, and ends by a key.
fn on_a_terminal(dir: &Path, addresses: &[String]) {
    let code = dir.join("code");
    let flows = format!("{BINARY} flows {}", addresses.join(" "));
    let inside = format!("stty rows 40 cols 100; {flows}; echo $? > {}", code.display());
    let argv = ["script", "-q", "-f", "-c", &inside, "/dev/null"].map(str::to_owned);
    let env = [("TERM", Path::new("xterm-256color")), ("SHELL", Path::new("/bin/sh"))];
    let mut shown = Process::spawn(&argv, None, &env, &dir.join("screen"));
    let all_read = loggers_read(LOGGERS, LOGGERS).replace(' ', "");
    let panels = |out: &str| {
        let text = drawn(out);
        (0..LOGGERS).all(|n| text.contains(&format!("logger{n}")) && text.contains(&addresses[n]))
            && text.contains(&all_read)
    };
    // Only what changes is drawn, so Ctrl-L asks for everything.
    wait_until("twelve panels", PATIENCE, || {
        assert!(shown.alive(), "{}", shown.tail());
        shown.say("\u{c}");
        std::thread::sleep(Duration::from_millis(500));
        panels(&shown.output())
    });
    shown.say("q");
    shown.wait_end(PATIENCE);
    assert_eq!(fs::read_to_string(&code).unwrap_or_default().trim(), "0", "{}", drawn(&shown.output()));
}
