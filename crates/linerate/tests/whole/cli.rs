//! What is typed wrong gets one clear line and the right exit code; what is asked about is answered.

#![allow(clippy::unwrap_used)]

use crate::support;

use support::tester::linerate;

/// Exit code 2 (or 4 where the machine lacks something), nothing on standard output, one line that says what and what is
/// legal.
#[track_caller]
fn refused(code: i32, args: &[&str], says: &[&str]) {
    let ended = linerate(args);
    assert_eq!(ended.code, code, "{args:?}: {}", ended.stderr);
    assert_eq!(ended.stdout, "", "{args:?}");
    for part in says {
        assert!(ended.stderr.contains(part), "{args:?} says {:?}, not {part:?}", ended.stderr);
    }
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    if ended.stderr.starts_with("linerate: ") {
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
    }
}

#[test]
fn wrong_values_name_the_legal_range() {
    refused(2, &["bench", "--frame-sizes", "63"], &["63", "64 to 9216"]);
    refused(2, &["bench", "--frame-sizes", "64", "--vlan", "5"], &["64", "68"]);
    refused(2, &["bench", "--frame-sizes", "64", "--ip", "v6"], &["64", "84"]);
    refused(2, &["bench", "--tolerated-loss", "2"], &["0% to 100%"]);
    refused(2, &["bench", "--precision", "0"], &["search.precision"]);
    refused(2, &["bench", "--duration", "0s"], &["duration", "60s"]);
    refused(2, &["bench", "--retries", "3"], &["tst009"]);
    let mlr = ["bench", "--method", "mlrsearch"];
    for flag in [["--precision", "0.5%"], ["--duration", "60s"], ["--tolerated-loss", "0"]] {
        refused(2, &[&mlr[..], &flag].concat(), &[flag[0], "each goal's own", "--goals"]);
    }
    refused(2, &["bench", "--goals", "csit"], &["search.goals", "mlrsearch"]);
    refused(2, &["bench", "--plan", "router-u1", "--method", "mlrsearch"], &["search.tolerated_loss"]);
    refused(2, &["bench", "--lower", "2Mpps", "--upper", "1Mpps"], &["search.lower"]);
    refused(2, &["bench", "--upper", "50%"], &["search.upper", "--link 10G"]);
    refused(2, &["bench", "--flows", "0"], &["traffic.flows"]);
    refused(2, &["bench", "--field", "src_port:shuffle:1:2"], &["NAME:increment"]);
    refused(2, &["bench", "--field", "ttl:random:1:2"], &["ttl"]);
    refused(2, &["bench", "--src-ip", "300.1.1.1"], &["--src-ip", "IPv4"]);
    refused(2, &["bench", "--src-ip", "2001:2::1"], &["traffic.src_ip", "v4"]);
    refused(2, &["bench", "--dst-mac", "zz"], &["02:00:00:00:00:01"]);
    refused(2, &["bench", "--dut", "l4"], &["null, pass, l2, l2:macswap, bridge, l3, mpls, vxlan, flowlog or sim:"]);
    refused(2, &["bench", "--impair", "speed=1"], &["speed"]);
    refused(2, &["trial", "--load", "fast"], &["1Mpps"]);
    refused(2, &["trial", "--load", "20Mpps", "--link", "10G"], &["beyond the link", "14.88 Mpps"]);
    refused(2, &["bench", "--link", "10G", "--upper", "20Mpps"], &["search.upper"]);
    refused(2, &["bench", "--descriptors", "1000"], &["power of two"]);
    refused(2, &["forward", "null", "--descriptors", "1000"], &["power of two"]);
    refused(2, &["flowlog", "--port", "null:", "--descriptors", "1000"], &["power of two"]);
    refused(2, &["bench", "--tester-cpu", "4000"], &["--tester-cpu 4000"]);
    refused(2, &["forward", "l2", "--port", "null"], &["two or more"]);
    let stations = "02:00:00:00:00:01,02:00:00:00:00:02";
    refused(2, &["forward", "bridge", "--port", "null", "--stations", stations], &["--stations", "bridge has none"]);
    refused(2, &["forward", "route", "add"], &["linerate: route \"add\": must be", "route add 203.0.113.0/24 via"]);
    refused(2, &["forward", "fdb"], &["fdb add 02:00:00:00:00:09 1"]);
    refused(2, &["forward", "l3", "--port", "null", "--port", "null", "--route", "x"], &["--route", "198.19.0.0/16"]);
}

#[test]
fn plans_are_checked_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let plan = |text: &str| {
        let path = dir.path().join("plan.toml");
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    refused(2, &["bench", "--plan", &plan("frame_size = [64]")], &["plan.toml", "line 1", "frame_size"]);
    refused(2, &["bench", "--plan", &plan("[search]\ntolerated_loss = 1.5")], &["plan.toml", "0 to 1"]);
    refused(2, &["bench", "--plan", &plan("frame_sizes = [")], &["plan.toml", "line 1"]);
    refused(2, &["bench", "--plan", &plan("\u{0}\u{1}")], &["plan.toml"]);
    refused(2, &["bench", "--plan", "/nowhere/plan.toml"], &["no such file", "rfc2544"]);
    refused(2, &["bench", "--plan", "/dev/zero"], &["regular file"]);
    refused(2, &["bench", "--plan", dir.path().to_str().unwrap()], &["regular file"]);
}

#[test]
fn ports_that_cannot_be_are_named() {
    refused(2, &["bench", "--port", "null"], &["1 --port given", "two ports"]);
    refused(2, &["bench", "--port", "what", "--port", "null"], &["what", "memif:PATH"]);
    refused(2, &["bench", "--port", "eth:nope0", "--port", "eth:nope1"], &["eth:nope0", "no such interface"]);
    refused(2, &["bench", "--port", "0000:ff:1f.7", "--port", "null"], &["0000:ff:1f.7", "dpdk-devbind.py"]);
    refused(2, &["bench", "--port", "pcap:/nowhere.pcap", "--port", "null"], &["/nowhere.pcap"]);
    refused(2, &["bench", "--port", "eth:lo", "--port", "eth:lo"], &["given twice"]);
    refused(4, &["bench", "--port", "memif:/nowhere/a.sock", "--port", "null"], &["/nowhere/a.sock"]);
    refused(4, &["bench", "--port", "virtio:/nowhere/a.sock", "--port", "null"], &["/nowhere/a.sock"]);
}

#[test]
fn a_busy_vhost_socket_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("busy.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let port = format!("vhost:{}", path.display());
    refused(4, &["bench", "--port", &port, "--port", "null"], &["busy.sock", "another process listens"]);
    drop(listener);
    assert!(path.exists(), "a socket that is not ours stays");
}

#[test]
fn files_that_cannot_be_written_are_refused_before_measuring() {
    refused(2, &["bench", "--quick", "--json", "/nowhere/r.json"], &["/nowhere/r.json", "mkdir -p"]);
    refused(2, &["bench", "--quick", "--svg", "/"], &["is a directory"]);
    refused(2, &["bench", "--quick", "--json", "/tmp/x.json", "--csv", "/tmp/x.json"], &["named twice"]);
}

#[test]
fn memory_that_is_not_there_is_asked_for() {
    let args = ["bench", "--memory", "hugepages", "--memory-mib", "65536"];
    refused(4, &args, &["huge pages", "sysctl -w vm.nr_hugepages="]);
}

#[test]
fn what_is_asked_about_is_answered() {
    let config = linerate(&["bench", "--quick", "--print-config", "--flows", "1000"]);
    assert_eq!((config.code, config.stderr.as_str()), (0, ""));
    let plan: toml::Table = config.stdout.parse().unwrap();
    assert_eq!(plan["traffic"]["flows"].as_integer(), Some(1000));
    assert_eq!(plan["search"]["duration"].as_str(), Some("100ms"));

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
