//! The tests of the standards as a user runs them: against simulated devices, whose truth is known and which take no
//! time, and against the built-in device.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::time::Instant;

use serde_json::Value;
use support::{
    exclusive,
    tester::{linerate, until_trusted, Ended, PATIENCE},
    words::lines_with,
    Words,
};

fn bench(args: &[&str]) -> Ended {
    linerate(&[&["bench"], args].concat())
}

/// The full length of the standard.
const FULL: [&str; 2] = ["--plan", "rfc2544"];

/// A whole run against `--dut sim:`, 64 bytes over 10 Gbit/s.
fn simulated(dut: &str, tests: &str, more: &[&str]) -> Ended {
    let args = ["--dut", dut, "--tests", tests, "--frame-sizes", "64", "--link", "10G", "--json", "-"];
    bench(&[&FULL[..], &args, more].concat())
}

/// The answer of a test.
#[track_caller]
fn answer<'a>(result: &'a Value, test: &str) -> &'a Value {
    let all = result["tests"].as_array().unwrap_or_else(|| panic!("no tests in {result}"));
    all.iter().find(|t| t["test"] == test).unwrap_or_else(|| panic!("no {test} in {all:?}"))
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

const ALL: &str = "throughput, frame-loss,back-to-back,recovery,bursty,forwarding-rate,latency-profile,pdv,soak";

#[test]
fn every_test_runs_to_its_end_and_lists_its_departures() {
    let mut words = Words::new();
    let ended = simulated("sim:capacity=10M,queue=1024", ALL, &[]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let result = ended.json();
    let tests = result["tests"].as_array().unwrap();
    assert_eq!(tests.len(), 8);
    for test in tests {
        assert_eq!(test["outcome"], "done", "{test}");
        assert_eq!((&test["compliance"], test["invalid_trials"].as_u64()), (&"departs".into(), Some(0)));
        assert!(!test["trials"].as_array().unwrap().is_empty());
        words.add(test["test"].as_str().unwrap(), test["standard"]["name"].as_str().unwrap());
    }
    assert_eq!(result["sizes"].as_array().unwrap().len(), 1);
    insta::assert_snapshot!(words);
}

#[test]
fn an_overload_cut_by_the_highest_load_is_a_departure() {
    let result = simulated("sim:capacity=9.5M", "recovery", &["--upper", "10Mpps"]).json();
    let recovery = answer(&result, "recovery");
    let found = &recovery["found"]["recovery"];
    let overload = number(&found["overload_fps"]) / number(&found["throughput_fps"]);
    assert!((1.05..1.06).contains(&overload), "{found}");
    let departures = recovery["standard"]["departures"].as_array().unwrap();
    insta::assert_snapshot!(departures.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"));
}

#[test]
fn back_to_back_finds_the_known_queue() {
    for queue in [256.0, 4096.0] {
        let dut = format!("sim:capacity=10M,queue={queue}");
        let result = simulated(&dut, "back-to-back", &["--precision", "0.01%"]).json();
        let found = &answer(&result, "back-to-back")["found"]["back_to_back"];
        assert_eq!(found["bursts"].as_array().unwrap().len(), 50);
        let frames = number(&found["corrected_buffer_frames"]);
        assert!((frames - queue).abs() < queue * 0.01 + 2.0, "{frames} of {queue}");
        let (buffer_s, true_s) = (number(&found["actual_buffer_s"]), queue / 10e6);
        assert!((buffer_s / true_s - 1.0).abs() < 0.02, "{buffer_s} s, not {true_s}");
    }
}

#[test]
fn a_queue_that_takes_longer_to_empty_than_a_trial_waits_is_found_whole() {
    let (dut, more) = ("sim:capacity=1M,queue=5M", ["--throughput", "1Mpps"]);
    let result = simulated(dut, "back-to-back", &more).json();
    let found = &answer(&result, "back-to-back")["found"]["back_to_back"];
    assert!((number(&found["corrected_buffer_frames"]) / 5e6 - 1.0).abs() < 1e-4, "{found}");
    assert!(number(&found["longest_drain_s"]) > 5.0 && found["drain_cut"] == false, "{found}");
    assert!(result["trials"].as_array().unwrap().iter().all(|t| number(&t["spec"]["drain_s"]) > 0.0));
}

#[test]
fn the_truth_of_a_simulated_device_is_found() {
    let result = simulated("sim:capacity=10M,queue=64,recovery=50ms", ALL, &["--precision", "0.1%"]).json();
    let found = |test: &str, kind: &str| answer(&result, test)["found"][kind].clone();
    let points = found("frame-loss", "frame_loss")["points"].clone();
    let loss = number(&points[0]["loss_ratio"]);
    assert!((loss - (1.0 - 10e6 / 14_880_952.0)).abs() < 0.001, "{loss}");
    assert_eq!(points.as_array().unwrap().len(), 6, "100, 90, 80 and 70 % lose, 60 and 50 do not: {points}");
    let recovery = number(&found("recovery", "recovery")["recovery_s"]["mean"]);
    assert!((recovery - 0.05).abs() < 0.001, "{recovery}");
    let rates = found("forwarding-rate", "forwarding_rate");
    assert!((number(&rates["frmol_fps"]) / 10e6 - 1.0).abs() < 0.001, "{rates}");
    let profile = found("latency-profile", "latency_profile");
    assert_eq!(profile["points"].as_array().unwrap().len(), 5);
    assert_eq!(profile["tagged_ns"]["n"], 20);
    let soak = found("soak", "soak");
    assert_eq!((&soak["lost"], soak["segments"].as_array().unwrap().len()), (&0.into(), 12));
    assert_eq!(found("pdv", "pdv")["directions"][0]["windows"]["min_ns"]["n"], 120);
}

#[test]
fn a_loss_curve_with_a_device_that_was_away_is_inconclusive() {
    let mut words = Words::new();
    for dead in ["100s-400s", "100s-100000s"] {
        let dut = format!("sim:capacity=10M,dead={dead}");
        let args = ["--dut", &dut, "--tests", "frame-loss", "--throughput", "5Mpps", "--link", "10G"];
        let ended = bench(&[&FULL[..], &args, &["--frame-sizes", "64", "--json", "-"]].concat());
        assert_eq!(ended.code, 3, "{}", ended.stderr);
        let result = ended.json();
        let test = answer(&result, "frame-loss");
        assert_eq!(test["outcome"], "inconclusive");
        words.add(dead, test["reason"].as_str().unwrap());
        assert!(test["found"]["frame_loss"]["points"].as_array().unwrap().len() >= 8, "the curve is kept");
    }
    insta::assert_snapshot!(words);
}

#[test]
fn a_reset_is_rehearsed_with_a_device_that_dies() {
    let args = ["--dut", "sim:capacity=10M,dead=20s-22s", "--tests", "reset", "--throughput", "1Mpps"];
    let ended = bench(&[&FULL[..], &args, &["--frame-sizes", "64", "--json", "-"]].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let result = ended.json();
    let reset = &answer(&result, "reset")["found"]["reset"];
    for way in ["by_loss_s", "by_timestamps_s"] {
        assert!((number(&reset[way]["mean"]) - 2.0).abs() < 0.001, "{way}: {reset}");
        assert_eq!(reset[way]["n"], 3, "{way}: {reset}");
    }
    assert!(result["sizes"].as_array().unwrap().is_empty(), "no search");
    // A plan with a command is rehearsed without it.
    let dir = tempfile::tempdir().unwrap();
    let (plan, ran) = (dir.path().join("plan.toml"), dir.path().join("ran"));
    let text = format!("tests = ['reset']\nframe_sizes = [64]\nreset.command = ['touch', '{}']", ran.display());
    std::fs::write(&plan, text).unwrap();
    let ended =
        bench(&[&["--plan", plan.to_str().unwrap(), "--json", "-", "--link", "10G"], &args[..2], &args[4..]].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(answer(&ended.json(), "reset")["found"]["reset"]["by_loss_s"]["n"], 3);
    assert!(!ran.exists());
}

#[test]
fn a_reset_whose_command_fails_is_inconclusive_with_its_words() {
    let mut words = Words::new();
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plan.toml");
    let reset = |command: &str| {
        let text = format!(
            "tests = ['reset']\nframe_sizes = [64]\nthroughput = '5kpps'\n[trust]\nsettle = '10ms'\nresidual = '50ms'\n\
             max_repeats = 100\n[reset]\ncommand = {command}\nat = '100ms'\nduration = '1s'\nrepetitions = 1\n"
        );
        std::fs::write(&plan, text).unwrap();
        let ended = bench(&["--plan", plan.to_str().unwrap(), "--dut", "l2", "--json", "-"]);
        let test = answer(&ended.json(), "reset").clone();
        (ended.code, test["outcome"].clone(), test["reason"].as_str().unwrap_or("").to_owned())
    };
    let (code, outcome, reason) = reset("['sh', '-c', 'echo no such unit; exit 3']");
    assert_eq!((code, outcome), (3, "inconclusive".into()), "{reason}");
    words.add_without_figures("exit 3", &reason);
    let (code, outcome, reason) = reset("['/nowhere/at-all']");
    assert_eq!((code, outcome), (3, "inconclusive".into()), "{reason}");
    words.add_without_figures("no such program", &reason);
    insta::assert_snapshot!(words);
}

#[test]
fn a_tester_that_cannot_overload_the_device_says_so() {
    let mut words = Words::new();
    let ended = simulated("sim:capacity=30M,tester=5M", "back-to-back,recovery", &[]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    for test in ["back-to-back", "recovery"] {
        let answer = &answer(&ended.json(), test).clone();
        assert_eq!(answer["outcome"], "inconclusive");
        let reason = answer["reason"].as_str().unwrap();
        assert!(!reason.contains("§6.1"), "{reason}");
        words.add(test, reason);
    }
    insta::assert_snapshot!(words);
}

#[test]
fn devices_that_lose_always_or_never_end_clearly() {
    let mut words = Words::new();
    let lossy = simulated("sim:capacity=10M,accidents=100%:5", "back-to-back,bursty", &[]);
    assert_eq!(lossy.code, 1, "{}", lossy.stderr);
    assert_eq!(answer(&lossy.json(), "back-to-back")["outcome"], "not_run", "no throughput to go by");
    assert_eq!(answer(&lossy.json(), "bursty")["outcome"], "below_minimum");

    let fast = simulated("sim:capacity=20M", "back-to-back,recovery,frame-loss,forwarding-rate", &[]);
    assert_eq!(fast.code, 0, "{}", fast.stderr);
    let result = fast.json();
    for test in ["back-to-back", "recovery"] {
        let answer = answer(&result, test);
        assert_eq!(answer["outcome"], "not_run");
        words.add(test, answer["reason"].as_str().unwrap());
    }
    assert_eq!(answer(&result, "frame-loss")["trials"].as_array().unwrap().len(), 2);

    let budget = simulated("sim:capacity=10M,stalls=0.05/s:2000", "soak", &["--throughput", "5Mpps"]);
    assert_eq!(budget.code, 1, "{}", budget.stderr);
    assert_eq!(answer(&budget.json(), "soak")["outcome"], "failed");
    insta::assert_snapshot!(words);
}

#[test]
fn the_report_has_a_table_a_picture_and_a_line_a_figure() {
    let mut words = Words::new();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (svg, csv, markdown) = (path("a.svg"), path("a.csv"), path("a.md"));
    let files = ["--svg", &svg, "--csv-tests", &csv, "--markdown", &markdown, "--verbose"];
    let args = ["--dut", "sim:capacity=10M", "--tests", ALL, "--frame-sizes", "64,1518", "--link", "10G"];
    let ended = bench(&[&FULL[..], &args, &files].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let written = std::fs::read_to_string(&markdown).unwrap();
    let titles: Vec<_> = written.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    for title in titles.iter().filter(|title| !["Run", "Trust"].contains(title)) {
        assert!(ended.stdout.contains(title), "{title}: {}", ended.stdout);
    }
    words.add("titles", &titles.join("\n"));
    words.add("left out", &lines_with(&ended.stdout, &["1518 B: "]));
    words.add("picture", &lines_with(&std::fs::read_to_string(&svg).unwrap().replace('<', "\n<"), &["Frame loss"]));
    let figures = std::fs::read_to_string(&csv).unwrap();
    assert!(figures.contains("64,back-to-back,done,departs,frames.mean,"), "{figures}");
    assert!(figures.contains("1518,frame-loss,done,departs,points.0.loss_ratio,0.0\n"));
    insta::assert_snapshot!(words);
}

#[test]
fn a_dry_run_knows_the_tests() {
    let mut words = Words::new();
    for plan in ["rfc2544-all", "rfc9004", "soak"] {
        let ended = bench(&["--plan", plan, "--quick", "--dry-run", "--link", "10G"]);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{plan}");
        words.add_without_figures(plan, &ended.stdout);
    }
    insta::assert_snapshot!(words);
}

#[test]
fn what_is_wrong_with_a_test_is_said_in_one_line() {
    let mut words = Words::new();
    for args in [
        &["--tests", "jitter"][..],
        &["--tests", "soak", "--throughput", "20Mpps", "--link", "10G", "--dut", "sim"],
        &["--tests", "throughput", "--throughput", "1Mpps"],
        &["--tests", "reset"],
    ] {
        words.refused(2, args, &bench(args));
    }
    insta::assert_snapshot!(words);
}

#[test]
fn the_policer_of_the_built_in_device_is_found_by_its_bursts_and_its_losses() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plan.toml");
    let text = "frame_sizes = [64]\ntests = ['bursty']\nthroughput = '200kpps'\nsearch.upper = '1Mpps'\n\
                [frame_loss]\nduration = '10ms'\n[back_to_back]\nlimit = '4ms'\nrepetitions = 3\n\
                [forwarding_rate]\nduration = '10ms'\nstep = '40%'\n\
                [trust]\nresidual = '20ms'\nsettle = '5ms'\nmax_repeats = 100\n";
    std::fs::write(&plan, text).unwrap();
    let plan = plan.to_str().unwrap();
    let run = |test: &str| {
        let dut = ["--dut", "l2", "--impair", "rate=200kpps,burst=500"];
        let args = [&["--plan", plan, "--tests", test, "--json", "-", "-q"][..], &dut].concat();
        let ended = until_trusted(10, || bench(&args));
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
        answer(&ended.json(), test).clone()
    };
    // A bucket of 500 that fills at a fifth of the burst's rate lets 625 frames pass: the buffer, corrected, is 500.
    agrees("back-to-back", || {
        let answer = run("back-to-back");
        let b2b = &answer["found"]["back_to_back"];
        let bursts = b2b["bursts"].as_array();
        let mut frames: Vec<u64> = bursts.into_iter().flatten().filter_map(Value::as_u64).collect();
        frames.sort_unstable();
        let right =
            answer["outcome"] == "done" && frames.get(frames.len() / 2).is_some_and(|f| (590..=660).contains(f));
        right.then_some(()).ok_or(answer.to_string())
    });
    // 200 kpps for 10 ms, and 500 saved up; loads that a busy machine cannot offer are left out.
    agrees("frame-loss", || {
        let answer = run("frame-loss");
        let points = answer["found"]["frame_loss"]["points"].as_array().cloned().unwrap_or_default();
        let right = points.iter().all(|point| {
            let lost = (1.0 - 2_500.0 / (number(&point["load_fps"]) * 0.01)).max(0.0);
            (number(&point["loss_ratio"]) - lost).abs() < 0.01
        });
        (right && points.len() >= 2).then_some(()).ok_or(answer.to_string())
    });
    agrees("forwarding-rate", || {
        let answer = run("forwarding-rate");
        let rate = answer["found"]["forwarding_rate"]["mfr_fps"].as_f64();
        let right = rate.is_some_and(|fps| (200e3 * 0.999..=250e3 * 1.001).contains(&fps));
        right.then_some(()).ok_or(answer.to_string())
    });
}

#[test]
fn the_jitter_of_the_built_in_device_is_its_delay_variation() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plan.toml");
    let text =
        "frame_sizes = [64]\ntests = ['pdv']\nthroughput = '200kpps'\n[pdv]\nduration = '50ms'\nwindow = '10ms'\n\
                [trust]\nresidual = '20ms'\nsettle = '5ms'\nmax_repeats = 100\n";
    std::fs::write(&plan, text).unwrap();
    let plan = plan.to_str().unwrap();
    // Delays of 100 to 300 us, any as likely: all but a thousandth are within 199.8 us of the least.
    agrees("pdv", || {
        let dut = ["--dut", "l2", "--impair", "delay=100us,jitter=200us"];
        let ended = until_trusted(10, || bench(&[&["--plan", plan, "--json", "-", "-q"][..], &dut].concat()));
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
        let answer = answer(&ended.json(), "pdv").clone();
        let direction = &answer["found"]["pdv"]["directions"][0];
        let pdv = |value: &Value| value.as_f64().unwrap_or(0.0);
        // The machine's stalls add to it; one window of five without them is enough.
        let (whole, windows) = (pdv(&direction["pdv_p99_9_ns"]), &direction["windows"]);
        let right = (100e3..=110e3).contains(&pdv(&direction["min_ns"]))
            && (195e3..=205e3).contains(&pdv(&windows["pdv_p99_9_ns"]["min"]))
            && whole >= 195e3
            && windows["pdv_p99_9_ns"]["n"] == 5;
        right.then_some(()).ok_or(answer.to_string())
    });
}

/// A device that shares two cores with its tester loses milliseconds at times: it has more to forward, or less, than
/// the arithmetic says, and nothing tells on it. What the arithmetic says comes out once in some tens then; what it does not
/// say, never.
#[track_caller]
fn agrees(test: &str, mut measure: impl FnMut() -> Result<(), String>) {
    let mut last = String::new();
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match measure() {
            Ok(()) => return,
            Err(answer) => last = answer,
        }
    }
    panic!("{test}: not once in {PATIENCE:?} what the device is known to do: {last}");
}
