//! Captures sent again: over the built-in data plane, whose impairments are the known truth, and over veth, where tcpdump
//! sees what was sent.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use packet::{capture::Capture, pcap::Writer};
use serde_json::Value;
use support::{
    exclusive,
    raw::{cable, RawPort},
    require,
    tester::{linerate, linerate_in, total, Ended},
    words::{as_asked, lines_with, without_figures},
    Needs, Netns, Process, Words,
};

/// Frame n: unlike every other, of an ethertype that nobody answers.
fn frame(n: usize, len: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    frame.extend((n as u32).to_be_bytes());
    frame.extend((frame.len()..len).map(|i| (i * 7 + n) as u8));
    frame
}

/// A capture of frames of these lengths, so many microseconds behind the one before.
fn write(path: &Path, frames: &[(u64, usize)]) {
    let mut writer = Writer::new(File::create(path).unwrap()).unwrap();
    let mut at = Duration::from_secs(1_700_000_000);
    for (n, &(gap_us, len)) in frames.iter().enumerate() {
        at += Duration::from_micros(gap_us);
        writer.write(at, &frame(n, len)).unwrap();
    }
}

/// 300 frames of 60 to 1500 bytes, 0.3 s, with a pause of 100 ms among them.
fn example(dir: &Path) -> PathBuf {
    let path = dir.join("example.pcap");
    let gap = |n| if n == 150 { 100_000 } else { [100, 400, 1500][n % 3] };
    let frames: Vec<_> = (0..300).map(|n| (gap(n), 60 + n * 37 % 1441)).collect();
    write(&path, &frames);
    path
}

/// A replay, whatever disturbed it: every frame is sent none the less.
#[track_caller]
fn replay(file: &Path, of: &[&str]) -> Value {
    let args = ["trial", "--replay", file.to_str().unwrap(), "--residual", "200ms", "--json", "-", "-q"];
    counted(&linerate(&[&args[..], of].concat()))
}

#[track_caller]
fn counted(ended: &Ended) -> Value {
    assert!(matches!(ended.code, 0 | 3), "{}", ended.stderr);
    ended.json()
}

#[track_caller]
fn pick(result: &Value, pointer: &str) -> f64 {
    let value = result.pointer(pointer).and_then(Value::as_f64);
    value.unwrap_or_else(|| panic!("no {pointer} in {result}"))
}

const DIRECTION: &str = "/trials/0/directions/0";

#[test]
fn every_frame_is_sent_and_comes_back() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let file = example(dir.path());
    let capture = Capture::read(File::open(&file).unwrap()).unwrap();
    let bytes = capture.total_bytes();
    // Gaps of 99 x 100, 100 x 400 and 100 x 1500 us, one less for the pause, the pause, and the mean gap at the end.
    let pass_s = |pause: f64| (0.0099 + 0.04 + 0.15 - 0.0001 + pause) / 299.0 * 300.0;
    for (flags, passes, speed, duration_s) in [
        (&[][..], 1, Some(1.0), pass_s(0.1)),
        (&["--speed", "2", "--count", "3"], 3, Some(2.0), 3.0 * pass_s(0.1) / 2.0),
        (&["--max-gap", "2ms"], 1, Some(1.0), pass_s(0.002)),
        (&["--load", "10kpps", "--count", "5"], 5, None, 0.15),
        (&["--load", "10kpps", "--duration", "60ms"], 2, None, 0.06),
    ] {
        let result = replay(&file, &[&["--dut", "l2"], flags].concat());
        let all = 300 * passes;
        let counts = ["intended", "sent", "received", "lost", "refused", "skipped"].map(|field| total(&result, field));
        assert_eq!(counts, [all, all, all, 0, 0, 0], "{flags:?}: {result}");
        assert_eq!(pick(&result, &format!("{DIRECTION}/received_bytes")), (bytes * passes) as f64);
        assert_eq!(pick(&result, &format!("{DIRECTION}/replay/sent_bytes")), (bytes * passes) as f64);
        assert_eq!(pick(&result, &format!("{DIRECTION}/replay/extra")), 0.0);
        assert_eq!(total(&result, "foreign"), 0, "{result}");
        let trial = &result["trials"][0];
        assert_eq!(trial["directions"][0]["latency"], Value::Null);
        let shape = &trial["spec"]["shape"]["replay"];
        assert_eq!((shape["speed"].as_f64(), shape["capture_frames"].as_u64()), (speed, Some(300)), "{flags:?}");
        assert_eq!((shape["frames"].as_u64(), shape["capture_bytes"].as_u64()), (Some(all), Some(bytes)));
        let asked = pick(&result, "/trials/0/spec/duration_s");
        assert!((asked - duration_s).abs() < 2e-9, "{flags:?}: {asked} and not {duration_s}");
        // Nothing leaves before its time.
        assert!(pick(&result, "/trials/0/real_duration_s") > duration_s * 0.999, "{result}");
    }
}

#[test]
fn what_is_lost_or_comes_twice_is_counted() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let file = example(dir.path());
    let fast = ["--dut", "l2", "--load", "50kpps", "--count", "10"];
    let lossy = replay(&file, &[&fast[..], &["--impair", "loss=10%,seed=7"]].concat());
    let lost = pick(&lossy, "/trials/0/dut/counters/impair-lost") as u64;
    assert!(lost > 100, "{lossy}");
    assert_eq!((total(&lossy, "sent"), total(&lossy, "lost")), (3000, lost), "{lossy}");
    assert_eq!(total(&lossy, "received"), 3000 - lost);
    let double = replay(&file, &[&fast[..], &["--impair", "dup=10%,seed=7", "--both-ways"]].concat());
    assert_eq!((total(&double, "received"), total(&double, "lost")), (6000, 0), "{double}");
    let extra = [0, 1].map(|way| pick(&double, &format!("/trials/0/directions/{way}/replay/extra")));
    assert!(extra.iter().all(|&extra| extra > 100.0), "{double}");
}

/// A namespace of the tester's with t0 and t1, and a bridge in another between their far ends, d0 and d1.
fn bridge() -> (Netns, Netns) {
    let (near, far) = (Netns::new(), Netns::new());
    far.ip("link add br0 type bridge stp_state 0 mcast_snooping 0");
    for port in [0, 1] {
        let macs = [format!("02:00:00:00:00:0{}", port + 1), format!("02:00:00:00:00:1{port}")];
        cable((&near, &format!("t{port}"), &macs[0]), (&far, &format!("d{port}"), &macs[1]));
        far.ip(&format!("link set d{port} master br0"));
    }
    far.ip("link set br0 up");
    (near, far)
}

#[test]
fn frames_that_are_not_the_capture_s_are_told() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let file = example(dir.path());
    let (near, far) = bridge();
    let args = ["trial", "--replay", file.to_str().unwrap(), "--count", "5", "--port", "eth:t0", "--port", "eth:t1"];
    let others = RawPort::open(&far, "d1");
    let over = AtomicBool::new(false);
    let result = std::thread::scope(|s| {
        s.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                others.send(&[0xee; 64]);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let ended = linerate_in(&near, &[&args[..], &["--json", "-", "-q"]].concat());
        over.store(true, Ordering::Relaxed);
        counted(&ended)
    });
    let foreign = total(&result, "foreign");
    // Whatever this machine lost, each frame that came is of one kind or of the other.
    let came = total(&result, "received") + pick(&result, &format!("{DIRECTION}/replay/extra")) as u64;
    assert!(foreign > 10 && came - foreign <= total(&result, "sent"), "{result}");
    let warning = result["warnings"].as_array().unwrap().iter().find(|w| w["kind"] == "foreign");
    let text = warning.expect("a warning")["text"].as_str().unwrap();
    assert!(text.contains("eth:t1") && text.contains(&foreign.to_string()), "{text}");
    insta::assert_snapshot!(without_figures(text));
}

#[test]
fn the_wire_has_the_bytes_the_order_and_the_gaps_of_the_capture() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let file = example(dir.path());
    let (near, far) = bridge();
    let seen = dir.path().join("seen.pcap");
    let tcpdump = ["tcpdump", "-i", "d0", "-Q", "in", "-U", "-c", "300", "--time-stamp-precision=nano", "-w"];
    let argv: Vec<String> = tcpdump.iter().map(ToString::to_string).chain([seen.display().to_string()]).collect();
    let mut tcpdump = Process::spawn(&argv, Some(&far), &[], &dir.path().join("tcpdump.log"));
    tcpdump.wait_output("capture", Duration::from_secs(20), |log| log.contains("listening on"));
    let args =
        ["trial", "--replay", file.to_str().unwrap(), "--port", "eth:t0", "--port", "eth:t1", "--json", "-", "-q"];
    let result = counted(&linerate_in(&near, &args));
    tcpdump.wait_end(Duration::from_secs(20));
    assert_eq!((total(&result, "sent"), total(&result, "received")), (300, 300), "{result}");

    let [asked, seen] = [&file, &seen].map(|path| Capture::read(File::open(path).unwrap()).unwrap());
    assert_eq!(seen.len(), 300);
    for n in 0..300 {
        assert_eq!(seen.frame(n), asked.frame(n), "frame {n}");
    }
    // No frame leaves before it is due, and the first not later than the latest.
    let late_ns = pick(&result, &format!("{DIRECTION}/replay/lateness_max_ns")) as u64;
    let since = |capture: &Capture, n: usize| capture.times()[n] - capture.times()[0];
    for n in 0..300 {
        // Both clocks, and the way through the kernel of the first.
        let earliest = since(&asked, n).saturating_sub(late_ns + 1_000_000);
        assert!(since(&seen, n) >= earliest, "frame {n} came {} ns after the first", since(&seen, n));
    }
    assert!(since(&seen, 299) >= 150_000_000, "the pause and most of the rest are there");
}

#[test]
fn a_replay_is_shown_as_one() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let (file, markdown) = (example(dir.path()), dir.path().join("trial.md"));
    let args = ["trial", "--replay", file.to_str().unwrap(), "--residual", "200ms", "-q", "--dut", "l2"];
    let ended = linerate(&[&args[..], &["--speed", "2", "--markdown", markdown.to_str().unwrap()]].concat());
    let markdown = std::fs::read_to_string(&markdown).unwrap();
    for (what, text) in [("terminal", &ended.stdout), ("Markdown", &markdown)] {
        assert!(!text.contains("reordered"), "{what}: nobody knows: {text}");
    }
    // Whatever disturbed it: what it is, what it counts, and what cannot be known.
    let lines = lines_with(&markdown, &["capture", "after due", "extra", "stamp"]);
    insta::assert_snapshot!(without_figures(&as_asked(&lines)));
}

#[test]
fn what_cannot_be_replayed_is_said_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let whole = example(dir.path());
    let bytes = std::fs::read(&whole).unwrap();
    std::fs::write(path("cut"), &bytes[..bytes.len() - 1]).unwrap();
    let mut radio = bytes.clone();
    radio[20] = 105;
    std::fs::write(path("radio"), radio).unwrap();
    std::fs::write(path("text"), "no capture\n").unwrap();
    write(&path("empty"), &[]);
    write(&path("one"), &[(0, 60)]);
    let mut writer = Writer::new(File::create(path("backwards")).unwrap()).unwrap();
    for (n, at) in [3, 2, 1].into_iter().enumerate() {
        writer.write(Duration::from_secs(at), &frame(n, 60)).unwrap();
    }
    drop(writer);
    write(&path("years"), &[(0, 60), (40 * 86_400 * 1_000_000, 60)]);
    let mut words = Words::new();
    for (name, flags) in [
        ("absent", &[][..]),
        ("cut", &[]),
        ("radio", &[]),
        ("text", &[]),
        ("empty", &[]),
        ("one", &[]),
        ("backwards", &[]),
        ("years", &[]),
        ("example.pcap", &["--count", "1000000000"]),
        ("example.pcap", &["--load", "10%"]),
        ("example.pcap", &["--load", "2Gbps", "--link", "1G"]),
        ("example.pcap", &["--load", "0"]),
        ("example.pcap", &["--max-gap", "soon"]),
    ] {
        let file = path(name);
        let args = [&["trial", "-q", "--replay", file.to_str().unwrap()], flags].concat();
        words.refused_in_a_line(2, &args, &linerate(&args));
    }
    insta::assert_snapshot!(words);
    for flags in [
        &["--speed", "0"][..],
        &["--speed", "2", "--load", "1Mpps"],
        &["--count", "2", "--duration", "1s"],
        &["--frame-size", "64"],
        &["--flows", "5"],
    ] {
        let ended = linerate(&[&["trial", "--replay", whole.to_str().unwrap()], flags].concat());
        assert_eq!(ended.code, 2, "{flags:?}");
    }
    // A pace without a capture.
    assert_eq!(linerate(&["trial", "--load", "1Mpps", "--count", "2"]).code, 2);
}
