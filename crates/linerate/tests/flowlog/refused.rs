//! What is typed wrong.

use crate::logger::{directory, flowlog};

#[track_caller]
fn refused(code: i32, args: &[&str], says: &[&str]) {
    let dir = directory();
    let ended = flowlog(dir.path(), args);
    assert_eq!((ended.code, ended.stdout.as_str()), (code, ""), "{args:?}: {}", ended.stderr);
    for part in says {
        assert!(ended.stderr.contains(part), "{args:?} says {:?}, not {part:?}", ended.stderr);
    }
    if ended.stderr.starts_with("linerate: ") {
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
    }
}

#[test]
fn wrong_values_name_what_is_legal() {
    let with = |more: &[&'static str], says: &[&str]| {
        let args = [&["--port", "null,no-rx=1", "--port", "null,no-rx=1"], more].concat();
        refused(2, &args, says);
    };
    refused(2, &[], &["linerate: no --port given", "pairs"]);
    refused(2, &["--port", "what"], &["what", "memif:PATH"]);
    refused(2, &["--port", "null", "--once"], &["--once", "pcap:FILE"]);
    refused(2, &["--port", "pcap:/nowhere.pcap", "--once"], &["/nowhere.pcap"]);
    refused(2, &["--port", "pcap:/etc/passwd", "--once"], &["/etc/passwd: must be a capture", "is text that begins"]);
    with(&["--flows", "17M"], &["17M", "1k to 16M"]);
    with(&["--flows", "999"], &["999", "1k to 16M"]);
    with(&["--idle", "500ms"], &["idle 500ms", "1s to 24h"]);
    with(&["--idle", "soon"], &["idle", "soon"]);
    with(&["--idle", "10m"], &["idle 10m", "active", "5m"]);
    with(&["--table-full", "panic"], &["drop-new", "evict"]);
    with(&["--biflow", "both"], &["on", "off"]);
    with(&["--full", "refuse"], &["linerate: --full refuse is now --table-full drop-new"]);
    with(&["--directions", "apart"], &["linerate: --directions apart is now --biflow off"]);
    with(&["--distinguish", "mac"], &["vlan", "vni", "label"]);
    with(&["--vxlan-port", "0"], &["vxlan_port 0", "65535"]);
    with(&["--listen", "0.0.0.0:9395"], &["0.0.0.0:9395", "--token-file", "loopback"]);
    with(&["--listen", "9395"], &["9395", "ADDRESS:PORT"]);
    with(&["--token-file", "/nowhere/token"], &["/nowhere/token"]);
    with(&["--tls-cert", "/nowhere.pem"], &["--tls-key"]);
    with(&["--ipfix", "127.0.0.1:4739"], &["127.0.0.1:4739", "udp://HOST:PORT"]);
    with(&["--ipfix", "udp://127.0.0.1:4739,rate=0"], &["rate=0", "100 to 100M", "unlimited"]);
    with(&["--json", "/nowhere/flows.jsonl"], &["mkdir -p /nowhere"]);
    with(&["--json", "f,rotate=never"], &["rotate=never", "64k to 1T"]);
    with(&["--tx", "later"], &["later"]);
    with(&["--cpus", "4000"], &["--cpus 4000"]);
    with(&["--mtu", "100"], &["576 to 9600"]);
    with(&["--memory-mib", "5"], &["memory_mib 5", "64 to 65536"]);
    with(&["--duration", "soon"], &["duration", "soon"]);
    with(&["--name", "a b", "--listen", "off", "--memory", "no-hugepages"], &["--name", "a b"]);
}

#[test]
fn a_printed_configuration_is_one() {
    let dir = directory();
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
    refused(2, &["--config", path], &["line 2", "idel"]);
    std::fs::write(path, "flows = \"1k\"\ndirections = \"apart\"").unwrap();
    refused(2, &["--config", path], &["line 2: directions = \"apart\" is now biflow = \"off\""]);
    std::fs::write(path, "flows = \"1k\"\nidle = 30").unwrap();
    refused(2, &["--config", path], &["line 2: idle: ", "in quotes, such as \"30s\""]);
}

#[test]
fn nobody_to_ask() {
    refused(4, &["show", "runtime"], &["no linerate forward or flowlog runs"]);
    refused(4, &["stop", "--name", "gone"], &["gone.sock", "none runs here"]);
}
