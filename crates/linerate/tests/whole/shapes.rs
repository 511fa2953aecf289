//! Bursts, steps and windows of a trial over the built-in data plane, whose policer is the known truth: a bucket of a
//! known depth that fills at a known rate.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use serde_json::Value;
use support::{
    exclusive,
    tester::{linerate, total},
    words::{as_asked, lines_with},
    Words,
};

fn args<'a>(of: &[&'a str]) -> Vec<&'a str> {
    [&["trial", "--residual", "100ms", "--json", "-", "-q", "--dut", "l2"], of].concat()
}

/// A trial, whatever disturbed it.
#[track_caller]
fn trial(of: &[&str]) -> Value {
    let ended = linerate(&args(of));
    assert!(matches!(ended.code, 0 | 3), "{of:?}: {}", ended.stderr);
    ended.json()
}

/// A trial of which the tester sent all but so many frames in time: what the device did with them is exact, whatever else
/// disturbed it.
#[track_caller]
fn sent_but(most_skipped: u64, of: &[&str]) -> Value {
    let mut tries = (0..100).map(|_| trial(of));
    tries
        .find(|r| total(r, "skipped") <= most_skipped)
        .unwrap_or_else(|| panic!("{of:?}: too much was skipped each time"))
}

fn direction(result: &Value) -> &Value {
    &result["trials"][0]["directions"][0]
}

#[test]
fn a_burst_loses_what_the_bucket_does_not_hold() {
    let _machine = exclusive();
    // Short, since a trial begins at a fixed distance from the timer's ticks, each of which may take 40 us on a virtual
    // machine; the bucket fills by far less than a frame meanwhile.
    let bucket = ["--impair", "rate=1pps,burst=200", "--load", "1Mpps"];
    for (frames, lost) in [("200", 0), ("201", 1), ("0.2k", 0), ("240", 40)] {
        let result = sent_but(0, &[&bucket[..], &["--burst", frames]].concat());
        assert_eq!(total(&result, "lost"), lost, "{frames}: {result}");
        let last = &direction(&result)["last_lost"];
        match lost {
            0 => assert_eq!((last, &direction(&result)["outage"]), (&Value::Null, &Value::Null)),
            _ => {
                assert_eq!(last["sequence"], 199 + lost, "{result}");
                // What is lost at the end has nobody behind it.
                let outage = &direction(&result)["outage"];
                assert_eq!((&outage["lost"], &outage["to_s"]), (&lost.into(), &Value::Null), "{result}");
            }
        }
        let spec = &result["trials"][0]["spec"];
        assert_eq!(spec["duration_s"].as_f64().unwrap(), total(&result, "intended") as f64 / 1e6);
        assert_eq!(spec["shape"]["burst"]["frames"], total(&result, "intended"));
    }
}

#[test]
fn a_burst_is_shown_as_one() {
    let _machine = exclusive();
    let file = tempfile::tempdir().unwrap();
    let markdown = file.path().join("trial.md");
    let burst = ["--load", "1Mpps", "--burst", "240", "--impair", "rate=1pps,burst=200", "--windows", "1ms"];
    let common = ["trial", "--residual", "200ms", "-q", "--dut", "l2", "--markdown", markdown.to_str().unwrap()];
    let mut tries = (0..100).map(|_| linerate(&[&common[..], &burst].concat()));
    // Sent whole, whatever else is said of it.
    let number = "last lost: number                              239";
    let ended = tries.find(|ended| ended.stdout.contains(number)).expect("one of a hundred is sent whole");
    let markdown = std::fs::read_to_string(&markdown).unwrap();
    let mut words = Words::new();
    for (what, text) in [("terminal", &ended.stdout), ("Markdown", &markdown)] {
        assert!(text.contains("239"), "{what}: {text}");
        let lines = lines_with(text, &["burst of", "last lost", "outage", "Windows"]);
        words.add_without_figures(what, &as_asked(&lines));
    }
    insta::assert_snapshot!(words);
}

#[test]
fn bursts_come_at_their_distance() {
    let _machine = exclusive();
    // A burst of a millisecond every 100 ms.
    let asked = ["--load", "10kpps", "--bursts", "1k@1Mpps", "--duration", "300ms", "--windows", "10ms"];
    let result = sent_but(500, &asked);
    let windows = direction(&result)["windows"].as_array().unwrap();
    let received: Vec<u64> = windows.iter().map(|w| w["received"].as_u64().unwrap()).collect();
    assert_eq!((received.len(), received.iter().sum::<u64>()), (30, total(&result, "received")));
    assert_eq!(total(&result, "intended"), 3000);
    // However late they are, half of the time between them is quiet.
    let quiet = (0..30).filter(|i| i % 10 >= 5);
    assert!(quiet.clone().all(|i| received[i] == 0), "{received:?}");
    assert!((0..3).all(|i| received[i * 10..i * 10 + 5].iter().sum::<u64>() >= 500), "{received:?}");
}

#[test]
fn a_step_down_ends_the_loss() {
    let _machine = exclusive();
    // What comes late after the step finds a bucket that filled meanwhile. Short, so that the tester goes before other programs.
    let step = ["--load", "200kpps", "--step", "20kpps@300ms", "--duration", "600ms"];
    let result = sent_but(12_000, &[&step[..], &["--impair", "rate=100kpps,burst=10000"]].concat());
    assert_eq!(total(&result, "intended"), 66_000);
    let (lost, departed_s) = (total(&result, "lost"), direction(&result)["last_lost"]["departed_s"].as_f64().unwrap());
    // Half of the first part but for the depth of the bucket, and for what the tester skipped.
    assert!((5_000..=21_000).contains(&lost), "{lost}");
    assert!((0.2..0.33).contains(&departed_s), "{departed_s}");
}

#[test]
fn windows_add_up_to_the_whole() {
    let _machine = exclusive();
    let result = trial(&[
        "--load",
        "200kpps",
        "--duration",
        "500ms",
        "--windows",
        "70ms",
        "--impair",
        "loss=1%,reorder=1%,distance=5,dup=1%,seed=9",
    ]);
    let d = direction(&result);
    let windows = d["windows"].as_array().unwrap();
    let sum = |field: &str| windows.iter().map(|w| w[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(
        (windows.len(), sum("received"), sum("missing")),
        (8, total(&result, "received"), total(&result, "lost"))
    );
    assert!(total(&result, "lost") > 100 && total(&result, "reordered") > 100, "{result}");
    let came = |w: &&Value| w["received"] != 0;
    let extreme = |field: &'static str| windows.iter().filter(came).map(move |w| w[field].as_u64().unwrap());
    let latency = &d["latency"];
    assert_eq!(extreme("min_ns").min(), latency["min_ns"].as_u64());
    assert_eq!(extreme("max_ns").max(), latency["max_ns"].as_u64());
    let pairs = windows.iter().filter_map(|w| w["ipdv"]["pairs"].as_u64()).sum::<u64>();
    assert_eq!(Some(pairs), latency["ipdv"]["pairs"].as_u64());
    assert!((windows[7]["from_s"].as_f64().unwrap() - 0.49).abs() < 1e-9);
    assert_eq!(windows[7]["to_s"], 0.5);
}

#[test]
fn what_makes_no_sense_is_said_in_one_line() {
    let mut words = Words::new();
    for flags in [
        &["--bursts", "64"][..],
        &["--bursts", "64@1kpps"],
        &["--bursts", "64@20Gbps", "--link", "10G"],
        &["--step", "1kpps@5s"],
        &["--burst", "1T", "--load", "1kpps"],
        &["--windows", "10us"],
        &["--windows", "1ms", "--duration", "90s"],
    ] {
        let load = if flags.contains(&"--load") { &[][..] } else { &["--load", "1Mpps"] };
        words.refused_in_a_line(2, flags, &linerate(&[&["trial", "-q"], flags, load].concat()));
    }
    insta::assert_snapshot!(words);
    for flags in [&["--burst", "0"][..], &["--burst", "5", "--duration", "1s"], &["--step", "1Mpps"]] {
        assert_eq!(linerate(&[&["trial", "--load", "1Mpps"], flags].concat()).code, 2, "{flags:?}");
    }
}
