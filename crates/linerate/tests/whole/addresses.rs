//! The address tests of RFC 2889 (§5.7, §5.8) between three ports of the kernel's bridge, and of the built-in one.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::support;

use serde_json::Value;
use support::{
    tester::{linerate, linerate_in, until_trusted, Ended},
    words::lines_with,
    Netns, Words,
};

const PLAN: &str = r#"
name = "addresses"
frame_sizes = [64]
tests = ["address-caching", "address-learning"]
[addresses]
most = 40
initial = 40
learning_rate = "2kpps"
most_rate = "2kpps"
test_rate = "2kpps"
age = "AGE"
[trust]
residual = "100ms"
"#;

/// The plan, which waits this long for a bridge to forget.
fn plan(dir: &tempfile::TempDir, age: &str) -> String {
    let path = dir.path().join("addresses.toml");
    std::fs::write(&path, PLAN.replace("AGE", age)).unwrap();
    path.display().to_string()
}

/// The kernel's bridge, which forgets after so many hundredths of a second, and the tester's three ports.
fn bridge(ageing: u32) -> [Netns; 2] {
    let [tester, dut] = [Netns::new(), Netns::new()];
    dut.ip(&format!("link add br0 type bridge stp_state 0 mcast_snooping 0 ageing_time {ageing}"));
    dut.ip("link set br0 up");
    for port in 0..3 {
        tester.ip(&format!("link add t{port} type veth peer name d{port} netns {}", dut.name()));
        tester.ip(&format!("link set t{port} up"));
        dut.ip(&format!("link set d{port} master br0"));
        dut.ip(&format!("link set d{port} up"));
    }
    tester.wait_for_links(&["t0", "t1", "t2"]);
    dut.wait_for_links(&["d0", "d1", "d2"]);
    [tester, dut]
}

fn through(ageing: u32, age: &str, tests: &str) -> Ended {
    let dir = tempfile::tempdir().unwrap();
    let [tester, _dut] = bridge(ageing);
    let plan = plan(&dir, age);
    let ports = ["--port", "eth:t0", "--port", "eth:t1", "--port", "eth:t2"];
    let args = [&["bench", "--plan", &plan, "--tests", tests, "--json", "-"][..], &ports].concat();
    until_trusted(3, || linerate_in(&tester, &args))
}

fn rounds(test: &Value) -> impl Iterator<Item = &Value> {
    test["found"]["addresses"]["rounds"].as_array().unwrap().iter().filter(|r| r["verdict"] != "invalid")
}

#[test]
fn a_bridge_that_learns_holds_them_all() {
    let ended = through(200, "4s", "address-caching,address-learning");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let result = ended.json();
    for test in result["tests"].as_array().unwrap() {
        assert_eq!((&test["outcome"], &test["found"]["addresses"]["addresses"]), (&"at_maximum".into(), &40.into()));
        for round in rounds(test) {
            let counts = &round["counts"];
            let seen =
                ["learned", "tested", "forwarded", "flooded", "returned"].map(|name| counts[name].as_u64().unwrap());
            assert_eq!((seen, &round["verdict"]), ([40, 40, 40, 0, 0], &"held".into()), "{round}");
        }
    }
    assert_eq!(result["tests"][1]["found"]["addresses"]["learning_fps"], 2000.0);
}

#[test]
fn a_bridge_that_forgets_at_once_floods() {
    let ended = through(0, "2500ms", "address-caching");
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let test = &ended.json()["tests"][0];
    assert_eq!((&test["outcome"], &test["found"]["addresses"]["addresses"]), (&"below_minimum".into(), &Value::Null));
    assert_eq!(test["found"]["addresses"]["overflow_addresses"], 1);
    for round in rounds(test) {
        assert_eq!(round["counts"]["flooded"], round["round"]["addresses"], "{round}");
    }
}

#[test]
fn the_built_in_bridge_takes_three_cables() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(&dir, "4s");
    let run = || linerate(&["bench", "--plan", &plan, "--tests", "address-caching", "--dut", "bridge", "--verbose"]);
    let ended = until_trusted(5, run);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    insta::assert_snapshot!(lines_with(&ended.stdout, &["over wire", "wire2", "at least 40"]));
}

#[test]
fn what_cannot_be_is_said() {
    let mut words = Words::new();
    for args in [
        &["--tests", "address-caching", "--port", "null", "--port", "null"][..],
        &["--tests", "address-caching", "--dut", "l3"],
        &["--tests", "address-caching", "--dut", "sim:capacity=3M"],
        &["--tests", "address-caching", "--dry-run"],
        &["--tests", "address-caching,frame-loss"],
    ] {
        words.refused_in_a_line(2, args, &linerate(&[&["bench"], args].concat()));
    }
    insta::assert_snapshot!(words);
}
