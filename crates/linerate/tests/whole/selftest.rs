//! The self-test as its user meets it: over each kind of pair, and what it leaves behind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::{path::Path, time::Duration};

use support::{
    exclusive,
    tester::{linerate, start},
};

/// Sockets of self-tests in the directory that Linerate uses.
fn sockets() -> Vec<String> {
    let names = |dir: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let mut all = names(&control::private_directory().unwrap());
    all.retain(|name| name.starts_with("selftest-"));
    all
}

#[test]
fn each_kind_of_pair_has_a_range_and_leaves_no_socket() {
    let _machine = exclusive();
    for kind in ["software-cable", "memif", "vhost-user", "veth"] {
        let ended = linerate(&["selftest", "--pair", kind, "--frame-sizes", "64", "--json"]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let point = ended.json()[0].clone();
        let pair = &point["pair"];
        assert_eq!((&pair["kind"], pair.get("fallback")), (&kind.into(), None), "{point}");
        let [lower, upper] = ["lower_fps", "upper_fps"].map(|name| pair[name].as_f64().unwrap());
        assert!(lower > 0.0 && lower <= upper, "{point}");
        if pair["stable"] == true {
            assert!(lower >= 0.98 * upper, "{point}");
        }
        assert!(pair["passes"].as_u64().unwrap() >= 3, "{point}");
        let most = point["max_fps"].as_f64().unwrap();
        assert!(kind != "software-cable" || most == upper, "{point}");
        assert_eq!(sockets(), [""; 0], "{kind}");
    }
}

#[test]
fn the_socket_of_a_killed_self_test_is_removed_by_the_next() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let args = ["selftest", "--pair", "memif", "--json"];
    let mut run = start(&args, None, &dir.path().join("log"));
    support::wait_until("the pair's socket", Duration::from_secs(20), || !sockets().is_empty());
    run.signal("KILL");
    run.wait_end(Duration::from_secs(5)).unwrap();
    assert_eq!(linerate(&["selftest", "--pair", "memif", "--frame-sizes", "64"]).code, 0);
    assert_eq!(sockets(), [""; 0]);
}

/// Interfaces where Linerate is started.
fn interfaces() -> Vec<String> {
    let entries = std::fs::read_dir("/sys/class/net").unwrap().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

#[test]
fn nobody_else_sees_the_interfaces_of_a_veth_pair_and_none_stays_after_a_kill() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let before = interfaces();
    let mut run = start(&["selftest", "--pair", "veth", "--json"], None, &dir.path().join("log"));
    let namespaces = || {
        let fds = std::fs::read_dir(format!("/proc/{}/fd", run.id())).into_iter().flatten().flatten();
        let links = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("net:[")).count()
    };
    support::wait_until("the pair's namespace", Duration::from_secs(20), || namespaces() > 0);
    assert_eq!(interfaces(), before);
    run.signal("KILL");
    run.wait_end(Duration::from_secs(5)).unwrap();
    assert_eq!(interfaces(), before);
}
