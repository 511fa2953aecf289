//! What is typed wrong gets one clear line and the right exit code; what is asked about is answered.

#![allow(clippy::unwrap_used)]

use crate::support;

use support::{tester::linerate, words::without_figures, Words};

/// Exit code 2 (or 4 where the machine lacks something), nothing on standard output, one line for the snapshot.
#[track_caller]
fn refused(words: &mut Words, code: i32, args: &[&str]) {
    words.refused(code, args, &linerate(args));
}

#[test]
fn wrong_values_name_the_legal_range() {
    let mut words = Words::new();
    refused(&mut words, 2, &["bench", "--frame-sizes", "63"]);
    refused(&mut words, 2, &["bench", "--frame-sizes", "64", "--vlan", "5"]);
    refused(&mut words, 2, &["bench", "--frame-sizes", "64", "--ip", "v6"]);
    refused(&mut words, 2, &["bench", "--tolerated-loss", "2"]);
    refused(&mut words, 2, &["bench", "--precision", "0"]);
    refused(&mut words, 2, &["bench", "--duration", "0s"]);
    refused(&mut words, 2, &["bench", "--retries", "3"]);
    let mlr = ["bench", "--method", "mlrsearch"];
    for flag in [["--precision", "0.5%"], ["--duration", "60s"], ["--tolerated-loss", "0"]] {
        refused(&mut words, 2, &[&mlr[..], &flag].concat());
    }
    refused(&mut words, 2, &["bench", "--goals", "csit"]);
    refused(&mut words, 2, &["bench", "--plan", "router-u1", "--method", "mlrsearch"]);
    refused(&mut words, 2, &["bench", "--lower", "2Mpps", "--upper", "1Mpps"]);
    refused(&mut words, 2, &["bench", "--upper", "50%"]);
    refused(&mut words, 2, &["bench", "--flows", "0"]);
    refused(&mut words, 2, &["bench", "--field", "src_port:shuffle:1:2"]);
    refused(&mut words, 2, &["bench", "--field", "ttl:random:1:2"]);
    refused(&mut words, 2, &["bench", "--src-ip", "300.1.1.1"]);
    refused(&mut words, 2, &["bench", "--src-ip", "2001:2::1"]);
    refused(&mut words, 2, &["bench", "--dst-mac", "zz"]);
    refused(&mut words, 2, &["bench", "--dut", "l4"]);
    refused(&mut words, 2, &["bench", "--impair", "speed=1"]);
    refused(&mut words, 2, &["trial", "--load", "fast"]);
    refused(&mut words, 2, &["trial", "--load", "20Mpps", "--link", "10G"]);
    refused(&mut words, 2, &["bench", "--link", "10G", "--upper", "20Mpps"]);
    refused(&mut words, 2, &["bench", "--descriptors", "1000"]);
    refused(&mut words, 2, &["forward", "null", "--descriptors", "1000"]);
    refused(&mut words, 2, &["flowlog", "--port", "null:", "--descriptors", "1000"]);
    refused(&mut words, 2, &["forward", "l2", "--port", "null"]);
    let stations = "02:00:00:00:00:01,02:00:00:00:00:02";
    refused(&mut words, 2, &["forward", "bridge", "--port", "null", "--stations", stations]);
    refused(&mut words, 2, &["forward", "route", "add"]);
    refused(&mut words, 2, &["forward", "fdb"]);
    refused(&mut words, 2, &["forward", "l3", "--port", "null", "--port", "null", "--route", "x"]);
    insta::assert_snapshot!(words);
}

#[test]
fn a_cpu_that_is_not_there_is_refused() {
    let ended = linerate(&["bench", "--tester-cpu", "4000"]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.lines().count()), (2, "", 1), "{}", ended.stderr);
    // This machine's CPUs are figures.
    insta::assert_snapshot!(without_figures(&ended.stderr));
}

#[test]
fn plans_are_checked_before_anything_starts() {
    let mut words = Words::new();
    let dir = tempfile::tempdir().unwrap();
    let plan = |text: &str| {
        let path = dir.path().join("plan.toml");
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    refused(&mut words, 2, &["bench", "--plan", &plan("frame_size = [64]")]);
    refused(&mut words, 2, &["bench", "--plan", &plan("[search]\ntolerated_loss = 1.5")]);
    refused(&mut words, 2, &["bench", "--plan", &plan("frame_sizes = [")]);
    refused(&mut words, 2, &["bench", "--plan", &plan("\u{0}\u{1}")]);
    refused(&mut words, 2, &["bench", "--plan", "/nowhere/plan.toml"]);
    refused(&mut words, 2, &["bench", "--plan", "/dev/zero"]);
    refused(&mut words, 2, &["bench", "--plan", dir.path().to_str().unwrap()]);
    insta::assert_snapshot!(words);
}

#[test]
fn ports_that_cannot_be_are_named() {
    let mut words = Words::new();
    refused(&mut words, 2, &["bench", "--port", "null"]);
    refused(&mut words, 2, &["bench", "--port", "what", "--port", "null"]);
    let absent = linerate(&["bench", "--port", "eth:nope0", "--port", "eth:nope1"]);
    let (text, interfaces) = absent.stderr.trim_end().rsplit_once(" are ").unwrap();
    assert!(interfaces.split(", ").any(|name| name == "lo"), "{interfaces}");
    assert_eq!((absent.code, absent.stdout.as_str(), absent.stderr.lines().count()), (2, "", 1), "{}", absent.stderr);
    words.add("no such interface", text);
    refused(&mut words, 2, &["bench", "--port", "0000:ff:1f.7", "--port", "null"]);
    refused(&mut words, 2, &["bench", "--port", "pcap:/nowhere.pcap", "--port", "null"]);
    refused(&mut words, 2, &["bench", "--port", "eth:lo", "--port", "eth:lo"]);
    refused(&mut words, 4, &["bench", "--port", "memif:/nowhere/a.sock", "--port", "null"]);
    refused(&mut words, 4, &["bench", "--port", "virtio:/nowhere/a.sock", "--port", "null"]);
    insta::assert_snapshot!(words);
}

#[test]
fn a_busy_vhost_socket_is_left_alone() {
    let mut words = Words::new();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("busy.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let port = format!("vhost:{}", path.display());
    refused(&mut words, 4, &["bench", "--port", &port, "--port", "null"]);
    drop(listener);
    assert!(path.exists(), "a socket that is not ours stays");
    insta::assert_snapshot!(words);
}

#[test]
fn files_that_cannot_be_written_are_refused_before_measuring() {
    let mut words = Words::new();
    refused(&mut words, 2, &["bench", "--quick", "--json", "/nowhere/r.json"]);
    refused(&mut words, 2, &["bench", "--quick", "--svg", "/"]);
    refused(&mut words, 2, &["bench", "--quick", "--json", "/tmp/x.json", "--csv", "/tmp/x.json"]);
    insta::assert_snapshot!(words);
}

#[test]
fn memory_that_is_not_there_is_asked_for() {
    let args = ["bench", "--memory", "hugepages", "--memory-mib", "65536"];
    let ended = linerate(&args);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.lines().count()), (4, "", 1), "{}", ended.stderr);
    insta::assert_snapshot!(without_figures(&ended.stderr));
}

#[test]
fn what_is_asked_about_is_answered() {
    let config = linerate(&["bench", "--quick", "--print-config", "--flows", "1000"]);
    assert_eq!((config.code, config.stderr.as_str()), (0, ""));
    let plan: toml::Table = config.stdout.parse().unwrap();
    assert_eq!(plan["traffic"]["flows"].as_integer(), Some(1000));
    assert_eq!(plan["search"]["duration"].as_str(), Some("100ms"));

    // Without a plan trials are short; the plan by its name has the length of the standard.
    let of = |args: &[&str]| linerate(&[&["bench", "--print-config"], args].concat()).stdout;
    assert_eq!(of(&[]), of(&["--quick"]));
    assert_eq!(of(&["--plan", "rfc2544", "--quick"]), of(&[]));
    let [quick, full]: [toml::Table; 2] = [&[][..], &["--plan", "rfc2544"]].map(|args| of(args).parse().unwrap());
    assert_eq!((quick["name"].as_str(), full["name"].as_str()), (Some("rfc2544 (quick)"), Some("rfc2544")));
    assert_eq!(full["search"]["duration"].as_str(), Some("60s"));

    let goals = linerate(&["bench", "--quick", "--print-config", "--method", "mlrsearch", "--goals", "tst009"]);
    let plan: toml::Table = goals.stdout.parse().unwrap();
    assert_eq!(plan["search"]["goals"][0]["final_duration"].as_str(), Some("100ms"), "{}", goals.stderr);
    assert!(plan["search"].get("duration").is_none());

    let list = linerate(&["bench", "--list"]);
    assert!(list.code == 0 && list.stdout.starts_with("rfc2544 "), "{}", list.stdout);
    for command in ["bench", "trial", "selftest", "forward"] {
        let help = linerate(&[command, "--help"]);
        assert!(help.code == 0 && help.stdout.contains("--memory"), "{command}: {}", help.stdout);
    }
    assert_eq!(linerate(&[]).code, 2);
    assert_eq!(linerate(&["bench", "--no-such-flag"]).code, 2);
}

#[test]
fn a_printed_plan_is_a_plan() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.toml");
    let first = linerate(&["bench", "--quick", "--print-config", "--both-ways", "--vlan", "7", "--frame-sizes", "128"]);
    std::fs::write(&path, &first.stdout).unwrap();
    let second = linerate(&["bench", "--plan", path.to_str().unwrap(), "--print-config"]);
    assert_eq!(first.stdout, second.stdout, "{}", second.stderr);
}
