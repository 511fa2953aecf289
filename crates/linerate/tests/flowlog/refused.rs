//! What is typed wrong.

use crate::logger::{directory, flowlog};
use crate::support::{words::without_figures, Words};

#[track_caller]
fn refused(words: &mut Words, code: i32, args: &[&str]) {
    let dir = directory();
    let ended = flowlog(dir.path(), args);
    words.hide(dir.path().display(), "runtime");
    words.refused(code, args, &ended);
}

#[test]
fn wrong_values_name_what_is_legal() {
    let mut words = Words::new();
    refused(&mut words, 2, &[]);
    refused(&mut words, 2, &["--port", "what"]);
    refused(&mut words, 2, &["--port", "null", "--once"]);
    refused(&mut words, 2, &["--port", "pcap:/nowhere.pcap", "--once"]);
    refused(&mut words, 2, &["--port", "lo"]);
    refused(&mut words, 2, &["--port", "null", "tcp port 80"]);
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text");
    std::fs::write(&text, "root:x:0:0:root:/root:/bin/sh\n").unwrap();
    refused(&mut words, 2, &["--port", &format!("pcap:{}", text.display()), "--once"]);
    refused(&mut words, 2, &["--port", text.to_str().unwrap()]);
    let mut with = |more: &[&'static str]| {
        refused(&mut words, 2, &[&["--port", "null,no-rx=1", "--port", "null,no-rx=1"], more].concat());
    };
    with(&["--flows", "17M"]);
    with(&["--flows", "999"]);
    with(&["--idle", "500ms"]);
    with(&["--idle", "soon"]);
    with(&["--idle", "10m"]);
    with(&["--table-full", "panic"]);
    with(&["--biflow", "both"]);
    with(&["--full", "refuse"]);
    with(&["--directions", "apart"]);
    with(&["--distinguish", "mac"]);
    with(&["--vxlan-port", "0"]);
    with(&["--listen", "0.0.0.0:9395"]);
    with(&["--listen", "9395"]);
    with(&["--token-file", "/nowhere/token"]);
    with(&["--tls-cert", "/nowhere.pem"]);
    with(&["--ipfix", "127.0.0.1:4739"]);
    with(&["--ipfix", "udp://127.0.0.1:4739,rate=0"]);
    with(&["--json", "/nowhere/flows.jsonl"]);
    with(&["--json", "f,rotate=never"]);
    with(&["--tx", "later"]);
    with(&["--mtu", "100"]);
    with(&["--memory-mib", "5"]);
    with(&["--duration", "soon"]);
    with(&["--name", "a b", "--listen", "off", "--memory", "no-hugepages"]);
    insta::assert_snapshot!(words);
}

#[test]
fn a_cpu_that_is_not_there_is_refused() {
    let ended = flowlog(directory().path(), &["--port", "null,no-rx=1", "--port", "null,no-rx=1", "--cpus", "4000"]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.lines().count()), (2, "", 1), "{}", ended.stderr);
    // This machine's CPUs are figures.
    insta::assert_snapshot!(without_figures(&ended.stderr));
}

#[test]
fn a_printed_configuration_is_one() {
    let mut words = Words::new();
    let dir = directory();
    words.hide(dir.path().display(), "dir");
    let args =
        "--port eth:a --port eth:b --flows 64k --ipfix udp://127.0.0.1:4739 --memory no-hugepages --memory-mib 64 \
                --descriptors 512 --no-clocks --duration 5s --once --quiet --print-config";
    let first = flowlog(dir.path(), &args.split_whitespace().collect::<Vec<_>>());
    assert_eq!((first.code, first.stderr.as_str()), (0, ""));
    assert!(first.stdout.contains("idle = \"30s\"") && first.stdout.contains("listen = \"127.0.0.1:9395\""));
    let path = dir.path().join("flowlog.toml");
    std::fs::write(&path, &first.stdout).unwrap();
    let path = path.to_str().unwrap();
    let second = flowlog(dir.path(), &["--config", path, "--print-config"]);
    assert_eq!(first.stdout, second.stdout, "{}", second.stderr);
    for on in ["once", "no_clocks", "quiet"] {
        assert!(first.stdout.contains(&format!("{on} = true")), "{}", first.stdout);
    }
    // A flag goes over the file.
    let third = flowlog(dir.path(), &["--config", path, "--memory", "auto", "--duration", "7s", "--print-config"]);
    for (file, flag) in [("memory = \"no-hugepages\"", "memory = \"auto\""), ("duration = \"5s\"", "duration = \"7s\"")]
    {
        assert!(first.stdout.contains(file) && third.stdout.contains(flag), "{}", third.stdout);
    }
    std::fs::write(path, "flows = \"1k\"\nidel = \"3s\"").unwrap();
    refused(&mut words, 2, &["--config", path]);
    std::fs::write(path, "flows = \"1k\"\ndirections = \"apart\"").unwrap();
    refused(&mut words, 2, &["--config", path]);
    std::fs::write(path, "flows = \"1k\"\nidle = 30").unwrap();
    refused(&mut words, 2, &["--config", path]);
    insta::assert_snapshot!(words);
}

#[test]
fn nobody_to_ask() {
    let mut words = Words::new();
    refused(&mut words, 4, &["show", "runtime"]);
    refused(&mut words, 4, &["stop", "--name", "gone"]);
    insta::assert_snapshot!(words);
}
