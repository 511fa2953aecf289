//! `bench --repeat`: whole runs of a plan, one table, one result; what cannot be repeated; Ctrl-C.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::{fs, path::Path, thread::sleep, time::Duration};

use serde_json::Value;
use support::{
    tester::{linerate, start},
    words::{lines_with, without_figures},
    Words,
};

/// A device whose capacity is lower in some trials than in others, by its seed.
const SIM: [&str; 7] =
    ["bench", "--dut", "sim:capacity=3M,accidents=30%:50", "--quick", "-q", "--frame-sizes", "64,1518"];

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn whole_runs_are_one_table_and_one_result() {
    let dir = tempfile::tempdir().unwrap();
    let paths = ["r.json", "r.csv", "r.md", "again.json"].map(|name| dir.path().join(name));
    let [all, csv, markdown, again] = paths.each_ref().map(|path| path.to_str().unwrap());
    // An accident decides a search by whole trials: some runs are far from the others.
    let whole = ["--evidence", "whole-trial"];
    let args = [&SIM[..], &whole, &["--repeat", "5", "--json", all, "--csv", csv, "--markdown", markdown]].concat();
    let ended = linerate(&args);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
    assert!(ended.stdout.lines().count() <= 40);
    let result = json(&paths[0]);
    assert_eq!(
        (&result["schema"], &result["planned"], &result["standing"]),
        (&"linerate-repeat/1".into(), &5.into(), &"completed".into())
    );
    let runs = result["runs"].as_array().unwrap();
    let seeds: Vec<_> = runs.iter().map(|run| run["device"]["setup"].as_str().unwrap()).collect();
    assert!(seeds.len() == 5 && seeds[0].ends_with("seed=1") && seeds[4].ends_with("seed=5"), "{seeds:?}");
    for size in result["sizes"].as_array().unwrap() {
        assert_eq!((&size["made"], &size["answered"]), (&5.into(), &5.into()));
        let [min, median, max] =
            ["min_fps", "median_fps", "max_fps"].map(|name| size["figures"][name].as_f64().unwrap());
        assert!(1e6 < min && min <= median && median <= max && max < 3.1e6, "{size}");
    }
    let csv = fs::read_to_string(csv).unwrap();
    assert_eq!(csv.lines().count(), 3, "{csv}");
    // What is stored is shown again, the same.
    let shown = linerate(&["runs", "show", all, "--json", again, "--csv", "/dev/null"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let table = |text: &str| text.lines().take_while(|l| !l.starts_with("written")).collect::<Vec<_>>().join("\n");
    assert_eq!(table(&shown.stdout), table(&ended.stdout));
    assert_eq!(json(&paths[3]), result);
    assert_eq!(linerate(&["runs", "show", all, "--layout", "onp"]).code, 0);
    let mut words = Words::new();
    words.add("table", &without_figures(&table(&ended.stdout)));
    let against = linerate(&["runs", "show", all, "--baseline", all]);
    assert_eq!((against.code, against.stderr.as_str()), (0, ""));
    let lines = lines_with(&against.stdout, &["new against old", "frame", "noise"]);
    words.add("compared", &without_figures(&lines));
    let one = dir.path().join("one.json").display().to_string();
    assert_eq!(linerate(&[&SIM[..], &["--json", &one]].concat()).code, 0);
    for refused in [&["--svg", "p.svg"][..], &["--baseline", &one]] {
        let args = [&["runs", "show", all][..], refused].concat();
        words.refused_in_a_line(2, &args, &linerate(&args));
    }
    insta::assert_snapshot!(words);
}

#[test]
fn what_cannot_be_repeated_is_refused_in_a_line() {
    let mut words = Words::new();
    for args in [
        &["--repeat", "1"][..],
        &["--repeat", "-3"],
        &["--repeat", "1001"],
        &["--repeat", "3", "--sweep", "flows=1,2"],
        &["--repeat", "3", "--svg", "p.svg"],
        &["--repeat", "3", "--csv-tests", "t.csv"],
        &["--repeat", "3", "--layout", "onp"],
        &["--repeat", "3", "--baseline", "old.json"],
        &["--repeat", "3", "--plan", "router-all"],
        &["--repeat", "3", "--tests", "soak", "--throughput", "1Mpps"],
        &["--repeat", "3", "--json", "/nowhere/at/all.json"],
    ] {
        let args = [&SIM[..], args].concat();
        words.refused_in_a_line(2, &args, &linerate(&args));
    }
    for bad in ["x", "2.5"] {
        assert_eq!(linerate(&[&SIM[..], &["--repeat", bad]].concat()).code, 2, "{bad}");
    }
    assert_eq!(linerate(&[&SIM[..], &["--repeat", "3", "--dry-run"]].concat()).code, 2);
    insta::assert_snapshot!(words);
}

#[test]
fn ctrl_c_keeps_the_runs_made() {
    let dir = tempfile::tempdir().unwrap();
    let (all, log) = (dir.path().join("all.json"), dir.path().join("log"));
    let args = [&SIM[..], &["--repeat", "1000", "--json", all.to_str().unwrap()]].concat();
    let mut run = start(&args, None, &log);
    sleep(Duration::from_secs(3));
    run.signal("INT");
    let status = run.wait_end(Duration::from_secs(15)).unwrap();
    assert_eq!(status.code(), Some(130), "{}", run.output());
    let result = json(&all);
    let made = result["runs"].as_array().unwrap().len();
    assert!((1..1000).contains(&made), "{made}");
    assert_eq!((&result["planned"], &result["standing"]), (&1000.into(), &"stopped".into()));
}
