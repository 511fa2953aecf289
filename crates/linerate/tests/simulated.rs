//! `--dut sim:`: whole runs against a device that is not there. No DPDK, no rights, no time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::{Duration, Instant};

use support::tester::{linerate, Ended};

fn bench(args: &[&str]) -> Ended {
    linerate(&[&["bench"], args].concat())
}

fn rate(value: &serde_json::Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no rate: {value}"))
}

#[test]
fn every_search_finds_the_truth_and_says_that_it_is_simulated() {
    for method in ["rfc2544", "tst009", "mlrsearch"] {
        let begun = Instant::now();
        let ended = bench(&["--dut", "sim:capacity=3M,queue=64", "--method", method, "--json", "-"]);
        assert_eq!(ended.code, 0, "{method}: {}", ended.stderr);
        assert!(begun.elapsed() < Duration::from_secs(20), "hours of virtual time");
        let result = ended.json();
        assert!(result["dut"].as_str().unwrap().starts_with("simulated sim:capacity=3M,queue=64"));
        assert_eq!(result["warnings"][0]["kind"], "simulated");
        for size in result["sizes"].as_array().unwrap() {
            let (low, high) = (rate(&size["throughput_fps"]), rate(&size["upper_bound_fps"]));
            assert!(low <= 3.001e6 && high >= 2.999e6 && high - low <= 0.021 * high, "{method}: {low} {high}");
            assert!(size["standard"]["name"].as_str().unwrap().starts_with("simulation of "));
            assert!(size["standard"]["departures"][0].as_str().unwrap().starts_with("simulated"));
        }
    }
}

#[test]
fn the_report_has_a_row_for_each_goal() {
    let ended =
        bench(&["--dut", "sim:capacity=3M", "--method", "mlrsearch", "--frame-sizes", "64,1518", "--link", "10G"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let rows =
        |goal: &str| ended.stdout.lines().filter(|l| l.contains(&format!(" {goal} ")) && l.contains("egular")).count();
    assert_eq!((rows("NDR"), rows("PDR")), (2, 2), "{}", ended.stdout);
    assert!(ended.stdout.contains("irregular: at highest load"), "1518 bytes at line rate: {}", ended.stdout);
    assert!(ended.stdout.contains("simulated"));
}

#[test]
fn a_goal_that_cannot_be_met_fails_the_run() {
    let dead = bench(&["--dut", "sim:capacity=3M,dead=0-100000s", "--method", "mlrsearch", "--frame-sizes", "64"]);
    assert_eq!(dead.code, 1, "{}{}", dead.stdout, dead.stderr);
    let stalls = "sim:capacity=3M,accidents=100%:5";
    let lossy = bench(&["--dut", stalls, "--method", "mlrsearch", "--frame-sizes", "64", "--json", "-"]);
    let result = lossy.json();
    assert_eq!((lossy.code, &result["sizes"][0]["goals"][0]["regularity"]), (1, &"below_minimum".into()));
    assert_eq!(result["sizes"][0]["goals"][1]["regularity"], "regular");
}

#[test]
fn what_is_wrong_with_it_is_said_in_one_line() {
    for (dut, says) in
        [("sim:capacity=0", "sim.capacity"), ("sim:colour=red", "sim.colour"), ("sim:drift=9", "sim.drift")]
    {
        let ended = bench(&["--dut", dut]);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
        assert!(ended.stderr.contains(says) && ended.stderr.trim_end().lines().count() == 1, "{}", ended.stderr);
    }
}
