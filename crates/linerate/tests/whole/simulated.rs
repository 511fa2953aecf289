//! `--dut sim:`: whole runs against a device that is not there. No DPDK, no rights, no time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::time::{Duration, Instant};

use support::{
    tester::{linerate, Ended},
    words::{lines_with, without_figures},
    Words,
};

fn bench(args: &[&str]) -> Ended {
    linerate(&[&["bench"], args].concat())
}

#[track_caller]
fn rate(value: &serde_json::Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn every_search_finds_the_truth_and_says_that_it_is_simulated() {
    let mut words = Words::new();
    for method in ["rfc2544", "tst009", "mlrsearch"] {
        let begun = Instant::now();
        let ended =
            bench(&["--plan", "rfc2544", "--dut", "sim:capacity=3M,queue=64", "--method", method, "--json", "-"]);
        assert_eq!(ended.code, 0, "{method}: {}", ended.stderr);
        assert!(begun.elapsed() < Duration::from_secs(20), "hours of virtual time");
        let result = ended.json();
        assert_eq!(
            (&result["device"]["kind"], &result["warnings"][0]["kind"]),
            (&"simulated".into(), &"simulated".into())
        );
        for size in result["sizes"].as_array().unwrap() {
            let (low, high) = (rate(&size["throughput_fps"]), rate(&size["upper_bound_fps"]));
            assert!(rate(&size["at_throughput"][0]["latency"]["p50_ns"]) > 0.0, "{method}: the latency trial counts");
            assert!(low <= 3.001e6 && high >= 2.999e6 && high - low <= 0.021 * high, "{method}: {low} {high}");
            assert!(!size["standard"]["departures"].as_array().unwrap().is_empty());
            // The trial at the throughput has a standard of its own, whichever trial the search took for its answer.
            assert_eq!((&size["compliance"], &size["latency_compliance"]), (&"departs".into(), &"departs".into()));
        }
        let size = &result["sizes"][0];
        for standard in ["standard", "latency_standard"] {
            let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
            let departures = size[standard]["departures"].as_array().unwrap().iter().map(text);
            let all: Vec<_> = [text(&size[standard]["name"])].into_iter().chain(departures).collect();
            words.add(&format!("{method}: {standard}"), &all.join("\n"));
        }
    }
    insta::assert_snapshot!(words);
}

#[test]
fn the_report_has_a_row_for_each_goal() {
    let ended = bench(&[
        "--plan",
        "rfc2544",
        "--dut",
        "sim:capacity=3M",
        "--method",
        "mlrsearch",
        "--frame-sizes",
        "64,1518",
        "--link",
        "10G",
    ]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let rows =
        |goal: &str| ended.stdout.lines().filter(|l| l.contains(&format!(" {goal} ")) && l.contains("egular")).count();
    assert_eq!((rows("NDR"), rows("PDR")), (2, 2), "{}", ended.stdout);
    // 1518 bytes at line rate are irregular.
    insta::assert_snapshot!(without_figures(&lines_with(&ended.stdout, &["egular", "simulated"])));
}

#[test]
fn a_goal_that_cannot_be_met_fails_the_run() {
    let full = ["--plan", "rfc2544", "--method", "mlrsearch", "--frame-sizes", "64"];
    let dead = bench(&[&full[..], &["--dut", "sim:capacity=3M,dead=0-100000s"]].concat());
    assert_eq!(dead.code, 1, "{}{}", dead.stdout, dead.stderr);
    let stalls = "sim:capacity=3M,accidents=100%:5";
    let lossy = bench(&[&full[..], &["--dut", stalls, "--json", "-"]].concat());
    let result = lossy.json();
    assert_eq!((lossy.code, &result["sizes"][0]["goals"][0]["regularity"]), (1, &"below_minimum".into()));
    assert_eq!(result["sizes"][0]["goals"][1]["regularity"], "regular");
}

#[test]
fn a_device_that_dies_and_comes_back_gets_its_own_throughput_or_none() {
    let mut words = Words::new();
    for (method, dead) in
        [("rfc2544", "60s-300s"), ("tst009", "60s-300s"), ("mlrsearch", "20s-60s"), ("mlrsearch", "20s-9h")]
    {
        let dut = format!("sim:capacity=10M,dead={dead}");
        let full = ["--plan", "rfc2544", "--link", "10G", "--frame-sizes", "64", "--method", method];
        let ended = bench(&[&full[..], &["--dut", &dut, "--json", "-"]].concat());
        let size = &ended.json()["sizes"][0];
        let told = size["diagnosis"].as_str().unwrap_or_else(|| panic!("{method}: nothing told of {size}"));
        words.add(&format!("{method} {dead}"), told);
        if dead == "20s-9h" {
            assert_eq!((ended.code, &size["outcome"]), (3, &"inconclusive".into()), "{method}: {told}");
            continue;
        }
        assert_eq!((ended.code, &size["outcome"]), (0, &"found".into()), "{method}: {told}");
        let (low, high) = (rate(&size["throughput_fps"]), rate(&size["upper_bound_fps"]));
        assert!(low <= 10.001e6 && high >= 9.999e6 && high - low <= 0.021 * high, "{method}: {low} {high}");
    }
    insta::assert_snapshot!(words);
}

#[test]
fn what_is_wrong_with_it_is_said_in_one_line() {
    let mut words = Words::new();
    for dut in ["sim:capacity=0", "sim:colour=red", "sim:drift=9"] {
        words.refused_in_a_line(2, &[dut], &bench(&["--dut", dut]));
    }
    insta::assert_snapshot!(words);
}

#[test]
fn the_ci_plan_ends_well_within_two_minutes() {
    for dut in ["sim:capacity=3M", "sim:capacity=3M,accidents=5%:50,tester-stalls=30%", "sim:capacity=3M,onset=0.1%"] {
        let ended = bench(&["--plan", "ci", "--dut", dut, "--json", "-"]);
        assert_eq!(ended.code, 0, "{dut}: {}", ended.stderr);
        let result = ended.json();
        for size in result["sizes"].as_array().unwrap() {
            let goals = size["goals"].as_array().unwrap();
            assert!(goals.iter().all(|g| g["regularity"] == "regular"), "{dut}: {size}");
            let ndr = rate(&goals[0]["lower_fps"]);
            assert!((2.9e6..=3.01e6).contains(&ndr), "{dut}: {ndr}");
        }
        let trials = result["trials"].as_array().unwrap();
        let seconds: f64 = trials.iter().map(|t| rate(&t["real_duration_s"]) + 0.02).sum();
        assert!(seconds < 115.0, "{dut}: {seconds} s");
    }
}

#[test]
fn a_dry_run_says_what_a_plan_takes() {
    let mut words = Words::new();
    let ended = bench(&["--plan", "ci", "--dry-run", "--dut", "sim:capacity=3M,seed=5"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    words.add("ci", &ended.stdout);
    let assumed =
        bench(&["--plan", "rfc2544", "--dry-run", "--port", "eth:nope0", "--port", "eth:nope1", "--link", "10G"]);
    assert_eq!((assumed.code, assumed.stderr.as_str()), (0, ""));
    words.add_without_figures("an assumed device", &assumed.stdout);
    assert_eq!(bench(&["--dry-run", "--upper", "50%"]).code, 2);
    insta::assert_snapshot!(words);
}

#[test]
fn plans_are_listed_with_what_they_need() {
    let ended = bench(&["--list"]);
    let mut lines = ended.stdout.lines();
    let ci = lines.by_ref().find(|l| l.starts_with("ci ")).unwrap();
    insta::assert_snapshot!(format!("{ci}\n{}", lines.next().unwrap()));
}
