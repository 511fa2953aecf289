//! `linerate check` over the real cores: its codes, and whether its figures agree with each other.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::Value;
use support::{
    exclusive,
    tester::{linerate, start},
    words::without_figures,
    Words,
};

/// The CPUs that this process may use, as the kernel lists them.
fn allowed() -> Vec<u64> {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.parse().unwrap()..=last.parse::<u64>().unwrap()
    };
    list.split(',').flat_map(range).collect()
}

fn numbers(array: &Value, key: &str) -> Vec<u64> {
    array.as_array().unwrap().iter().map(|entry| entry[key].as_u64().unwrap()).collect()
}

/// Every field whose name ends in `_share` is null or 0 to 1, wherever it stands.
#[track_caller]
fn shares_are_shares(value: &Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if name.ends_with("_share") || name == "share" {
                    assert!(
                        field.is_null() || field.as_f64().is_some_and(|s| (0.0..=1.0).contains(&s)),
                        "{name}: {field}"
                    );
                }
                shares_are_shares(field);
            }
        }
        Value::Array(entries) => entries.iter().for_each(|entry| shares_are_shares(entry)),
        _ => {}
    }
}

#[track_caller]
fn core_agrees(core: &Value, duration_s: f64) {
    let figure = |key: &str| core[key].as_f64().unwrap();
    assert!(figure("seconds") > 0.0 && figure("seconds") <= duration_s, "{core}");
    assert!(figure("longest_clean_s") <= figure("seconds") + 1e-3, "{core}");
    assert!(figure("absence_share") <= figure("away_share") && figure("absences") <= figure("gaps"), "{core}");
    let lengths: Vec<u64> = ["p50_ns", "p99_ns", "largest_ns"].iter().filter_map(|key| core[key].as_u64()).collect();
    assert!(lengths.is_sorted() && (lengths.is_empty() == (core["gaps"] == 0)), "{core}");
}

#[test]
fn a_check_says_what_this_machine_can_measure() {
    let _machine = exclusive();
    let begun = Instant::now();
    let ended = linerate(&["check", "--duration", "4s", "--json", "-"]);
    assert!(matches!(ended.code, 0 | 3), "{} {}", ended.code, ended.stderr);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    let result = ended.json();
    assert_eq!((&result["schema"], result["duration_s"].as_f64()), (&"linerate-check/1".into(), Some(4.0)));
    let answer = &result["answer"];
    let standing = if ended.code == 0 { "completed" } else { "not_trustworthy" };
    assert_eq!((answer["standing"].as_str(), answer["good_for"].is_number()), (Some(standing), ended.code == 0));
    shares_are_shares(&result);
    assert_eq!(numbers(&result["cores"], "cpu"), allowed());
    let cores = result["cores"].as_array().unwrap().iter().chain(result["together"]["cores"].as_array().unwrap());
    cores.for_each(|core| core_agrees(core, 4.0));
    assert!(result["together"]["longest_clean_s"].as_f64().unwrap() <= 4.0);
    let loads = result["trials"]["loads"].as_array().unwrap();
    let rates: Vec<f64> = loads.iter().map(|load| load["load_fps"].as_f64().unwrap()).collect();
    assert!(rates.is_sorted() && !rates.is_empty(), "{rates:?}");
    assert!(loads.iter().all(|load| load["passed"].as_u64() <= load["trials"].as_u64()), "{loads:?}");
    if let Some(clean) = answer["clean_load_fps"].as_f64() {
        assert!(rates.contains(&clean), "{clean} {rates:?}");
    }
    let costs: Vec<f64> =
        result["causes"].as_array().unwrap().iter().map(|c| c["share"].as_f64().unwrap_or(0.0)).collect();
    assert!(costs.is_sorted_by(|a, b| a >= b), "{costs:?}");
}

#[test]
fn the_text_is_short_and_ends_with_the_conclusion() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("c.json");
    let ended = linerate(&["check", "--duration", "2s", "--memory", "no-hugepages", "--json", json.to_str().unwrap()]);
    assert!(matches!(ended.code, 0 | 3), "{} {}", ended.code, ended.stderr);
    assert!(ended.stdout.lines().count() <= 25, "{}", ended.stdout);
    let result: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert!(ended.stdout.contains(result["answer"]["conclusion"].as_str().unwrap()), "{}", ended.stdout);
    assert_eq!(result["state"]["hugepages"], false);
    let causes = result["causes"].as_array().unwrap();
    assert!(causes.iter().any(|cause| cause["kind"] == "no_hugepages"), "{causes:?}");
}

#[test]
fn one_cpu_is_listened_to_and_makes_no_trial() {
    let _machine = exclusive();
    let last = allowed().last().unwrap().to_string();
    let ended = linerate(&["check", "--cpus", &last, "--duration", "1s", "--json", "-"]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    let result = ended.json();
    assert_eq!((result["cores"].as_array().unwrap().len(), result.get("trials")), (1, None));
    assert_eq!(result["causes"][0]["kind"], "one_cpu");
    core_agrees(&result["cores"][0], 1.0);
}

#[test]
fn ctrl_c_ends_a_check_at_once_with_what_was_found() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("c.json");
    let args = ["check", "--duration", "10min", "--json", json.to_str().unwrap()];
    let mut run = start(&args, None, &dir.path().join("log"));
    // Long enough to have begun to poll, however busy the machine.
    std::thread::sleep(Duration::from_secs(4));
    run.signal("INT");
    let status = run.wait_end(Duration::from_secs(20)).unwrap();
    assert_eq!(status.code(), Some(130), "{}", run.output());
    let result: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(result["answer"]["standing"], "stopped");
    assert!(result["cores"][0]["seconds"].as_f64().unwrap() < 30.0, "{result}");
    assert!(run.output().contains(result["answer"]["conclusion"].as_str().unwrap()), "{}", run.output());
}

#[test]
fn wrong_flags_of_a_check_are_refused() {
    let mut words = Words::new();
    for args in [
        &["--duration", "500ms"][..],
        &["--duration", "11min"],
        &["--duration", "soon"],
        &["--duration", "-1s"],
        &["--cpus", "0,0"],
        &["--json", "/nowhere/c.json"],
    ] {
        let args = [&["check"], args].concat();
        words.refused(2, &args, &linerate(&args));
    }
    // This machine's CPUs are figures.
    let absent = linerate(&["check", "--cpus", "4000"]);
    assert_eq!((absent.code, absent.stdout.as_str(), absent.stderr.lines().count()), (2, "", 1), "{}", absent.stderr);
    words.add("a CPU that is not there", &without_figures(&absent.stderr));
    insta::assert_snapshot!(words);
}
