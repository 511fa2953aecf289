//! Plans of the source documents, run whole; their tables, and results against older ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use support::{
    exclusive,
    tester::{linerate, start, Ended},
    words::{lines_with, nth, without_figures, SET_TABLE},
    Words,
};

const SIM: [&str; 4] = ["--dut", "sim:capacity=5M", "--quick", "-q"];

fn bench(args: &[&str]) -> Ended {
    linerate(&[&["bench"], args].concat())
}

/// A result file of a simulated device that forwards `capacity` frames/s.
fn result(dir: &Path, name: &str, capacity: &str, more: &[&str]) -> String {
    let path = dir.join(name).to_str().unwrap().to_owned();
    let dut = format!("sim:capacity={capacity}");
    let args = ["--dut", &dut, "--quick", "-q", "--link", "25G", "--both-ways", "--json", &path];
    let ended = bench(&[&args[..], more].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    path
}

#[test]
fn every_plan_is_listed_with_its_needs_and_runs_to_its_end() {
    let mut words = Words::new();
    let list = bench(&["--list"]).stdout;
    let names: Vec<&str> = list.lines().filter(|l| !l.starts_with(' ')).map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(list.lines().filter(|l| l.starts_with("    needs ")).count(), names.len());
    for name in ["nfvi-two-vm-2q4pmd", "router-b4", "router-all", "onp-vxlan", "onp-40g-scenario-3", "flowlog-64b"] {
        assert!(names.contains(&name), "{name}: {list}");
    }
    words.add("list", &list);
    for name in names {
        let ended = bench(&[&["--plan", name], &SIM[..]].concat());
        if name == "rfc2889-addresses" {
            words.refused_in_a_line(2, &[name], &ended);
            continue;
        }
        assert_eq!(ended.code, 0, "{name}: {}{}", ended.stdout, ended.stderr);
    }
    insta::assert_snapshot!(words);
}

#[test]
fn a_plan_of_several_runs_ends_in_one_table_and_leaves_a_result_each() {
    let mut words = Words::new();
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("all.json");
    let ended = bench(&[&["--plan", "router-all", "--json", json.to_str().unwrap()], &SIM[..]].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let table = ended.stdout.split(SET_TABLE).nth(1).expect("a table at the end");
    for row in ["U1: Unidirectional 1514b", "U4: Unidirectional 64b MPLS", "B3: Bidirectional 64b Single"] {
        assert_eq!(table.matches(row).count(), 1, "{table}");
    }
    assert!(ended.stdout.contains(&nth(8, 8, "router-b4")));
    let files: Vec<String> = ["u1", "u2", "u3", "u4", "b1", "b2", "b3", "b4"]
        .map(|run| dir.path().join(format!("all.router-{run}.json")).to_str().unwrap().to_owned())
        .to_vec();
    // The same table from the files, without measuring again.
    let mut args = vec!["runs", "show", "--layout", "router"];
    args.extend(files.iter().map(String::as_str));
    let shown = linerate(&args);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(table.contains(shown.stdout.lines().nth(4).unwrap()), "{}\n{table}", shown.stdout);
    // One run of it is the plan of that name, and still answers to the old one.
    let config = |plan: &str| bench(&["--plan", plan, "--print-config"]).stdout;
    assert!(config("router-all:router-u1").contains("name = \"router-u1\""));
    assert_eq!(config("router-all:router-u1"), config("small-router-u1"));
    assert_eq!(bench(&["--plan", "onp-phy-ovs-phy", "--print-config"]).stdout.matches("flows = ").count(), 2);
    for args in [&["--plan", "router-all", "--json", "-"][..], &["--plan", "router-all:nope"]] {
        words.refused_in_a_line(2, args, &bench(args));
    }
    insta::assert_snapshot!(words);
}

#[test]
fn generation_against_generation() {
    let mut words = Words::new();
    let dir = tempfile::tempdir().unwrap();
    let old = result(dir.path(), "old.json", "3M", &[]);
    let new = result(dir.path(), "new.json", "4M", &["--layout", "nfvi"]);
    let (markdown, csv) = (dir.path().join("c.md"), dir.path().join("c.csv"));
    let files = ["--markdown", markdown.to_str().unwrap(), "--csv", csv.to_str().unwrap()];
    let shown = linerate(&[&["runs", "show", &new, "--baseline", &old][..], &files].concat());
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let csv = fs::read_to_string(csv).unwrap();
    let small: Vec<&str> = csv.lines().nth(1).unwrap().split(',').collect();
    let [size, pps, .., old_pps, _, _, improvement, "beyond noise"] = small[..] else { panic!("{csv}") };
    let [size, pps, old_pps, improvement] = [size, pps, old_pps, improvement].map(|f| f.parse::<f64>().unwrap());
    assert_eq!(size, 64.0);
    // The improvement is a third, and follows from the figures beside it: both are as far below the likeliest loads.
    assert!((improvement - 33.3).abs() < 0.1 && ((pps / old_pps - 1.0) * 100.0 - improvement).abs() < 0.01, "{csv}");
    words.add_without_figures("markdown", &lines_with(&fs::read_to_string(markdown).unwrap(), &["%"]));
    let lines = ["against", "Packet", "size B", "line rate"];
    words.add_without_figures("terminal", &lines_with(&shown.stdout, &lines));

    // The same while measuring: against the old one again, which is what it was.
    let again = ["--dut", "sim:capacity=3M", "--quick", "-q", "--link", "25G", "--both-ways", "--baseline", &old];
    let again = bench(&[&again[..], &["--layout", "onp"]].concat());
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stdout.contains("0.00"), "{}", again.stdout);
    words.add_without_figures("while measuring", &lines_with(&again.stdout, &["against", "lat."]));
    insta::assert_snapshot!(words);
}

#[test]
fn what_does_not_compare_is_refused_before_it_is_measured() {
    let mut words = Words::new();
    let dir = tempfile::tempdir().unwrap();
    let old = result(dir.path(), "old.json", "3M", &[]);
    let few = result(dir.path(), "few.json", "3M", &["--frame-sizes", "64", "--flows", "9"]);
    let shown = linerate(&["runs", "show", &few, "--baseline", &old]);
    words.refused_in_a_line(2, &["few", "old"], &shown);
    for args in [
        &["--quick", "--link", "25G", "--both-ways", "--baseline", &old][..],
        &["--plan", "rfc2544", "--dut", "sim", "--baseline", &old],
    ] {
        words.refused_in_a_line(2, args, &bench(args));
    }
    insta::assert_snapshot!(words);
}

#[test]
fn files_that_are_no_results_are_refused_in_a_line() {
    let mut words = Words::new();
    let dir = tempfile::tempdir().unwrap();
    let good = result(dir.path(), "good.json", "3M", &["--frame-sizes", "64"]);
    let file = |name: &str, text: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let whole = fs::read_to_string(&good).unwrap();
    let with = |key: &str, was: &str, now: &str| {
        let changed = [":", ": "].iter().fold(whole.clone(), |text, colon| {
            text.replace(&format!("\"{key}\"{colon}{was}"), &format!("\"{key}\":{now}"))
        });
        assert_ne!(changed, whole, "{key}");
        changed
    };
    let (size, negative) = (with("frame_size_bytes", "64", "63"), with("throughput_fps", "", "-"));
    for (name, text) in [
        ("empty", &b""[..]),
        ("binary", &[0xff, 0x00, 0x1b][..]),
        ("list", b"[]"),
        ("other", b"{\"schema\": \"linerate-flowbench/1\"}"),
        ("none", b"{}"),
        ("bare", b"{\"schema\": \"linerate-result/1\"}"),
        ("cut", &whole.as_bytes()[..whole.len() / 2]),
        ("size", size.as_bytes()),
        ("negative", negative.as_bytes()),
    ] {
        let bad = file(name, text);
        for args in [&["runs", "show", &bad][..], &["runs", "show", &good, "--baseline", &bad]] {
            let ended = linerate(args);
            assert!(ended.stderr.contains(&bad), "{args:?}: {}", ended.stderr);
            // Where the text ends is of no interest.
            let ended = Ended { stderr: without_figures(&ended.stderr) + "\n", ..ended };
            // What it is cut in the middle of depends on the machine.
            let mut unkept = Words::new();
            let kept = if name == "cut" { &mut unkept } else { &mut words };
            kept.refused_in_a_line(2, args, &ended);
        }
    }
    for args in [
        &["runs", "show", "/dev/zero"][..],
        &["runs", "show", &good, &good],
        &["runs", "show", &good, &good, "--layout", "onp", "--baseline", &good],
    ] {
        words.refused_in_a_line(2, args, &linerate(args));
    }
    let shown = linerate(&["runs", "show", &good]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    words.add_without_figures("good", &lines_with(&shown.stdout, &["each way"]));
    insta::assert_snapshot!(words);
}

#[test]
fn a_plan_of_several_runs_is_stopped_once_and_keeps_what_was_measured() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("all.json");
    let args = ["bench", "--plan", "router-all", "--json", json.to_str().unwrap(), "--upper", "100kpps"];
    let mut run = start(&args, None, &dir.path().join("log"));
    run.wait_output("the first run", Duration::from_secs(20), |out| out.contains(&nth(1, 8, "router-u1")));
    std::thread::sleep(Duration::from_secs(4));
    run.signal("TERM");
    let status = run.wait_end(Duration::from_secs(15)).unwrap();
    assert_eq!(status.code(), Some(130), "{}", run.output());
    let first: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.path().join("all.router-u1.json")).unwrap()).unwrap();
    assert_eq!(first["standing"], "stopped");
    assert!(!run.output().contains(&nth(2, 8, "")), "{}", run.output());
    assert!(!std::env::temp_dir().join(format!("linerate-runs-{}", run.id())).exists());
}

/// Every result in these files, those of a sweep's points among them.
fn results(dir: &Path) -> Vec<serde_json::Value> {
    let files = fs::read_dir(dir).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
    let read = files.map(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).unwrap());
    let points = |result: serde_json::Value| match result["points"].as_array() {
        Some(points) => points.iter().map(|point| point["result"].clone()).collect(),
        None => vec![result],
    };
    read.flat_map(points).collect()
}

#[test]
fn every_plan_runs_over_the_built_in_device_to_its_end() {
    let _machine = exclusive();
    let mut all_told = BTreeSet::new();
    let list = bench(&["--list"]).stdout;
    // The router's eight runs are those of `router-all`.
    let plans = list.lines().filter(|l| !l.starts_with(' ')).map(|l| l.split(' ').next().unwrap());
    for plan in plans.filter(|plan| *plan == "router-all" || !plan.starts_with("router-")) {
        let dir = tempfile::tempdir().unwrap();
        let json = dir.path().join("r.json");
        // Shortened: few frames, one size that holds a VXLAN tunnel's headers, few repeats. A busy machine makes it
        // inconclusive; what is checked is that frames come through, that each test ends, and that the needs are told.
        let short = ["--quick", "-q", "--upper", "20kpps", "--frame-sizes", "128", "--max-repeats", "2"];
        let ended = bench(&[&["--plan", plan, "--json", json.to_str().unwrap()], &short[..]].concat());
        assert!(matches!(ended.code, 0 | 3), "{plan}: {} {}{}", ended.code, ended.stdout, ended.stderr);
        let results = results(dir.path());
        assert!(!results.is_empty(), "{plan}");
        for result in results {
            let name = result["plan_name"].as_str().unwrap();
            let all = |key: &str| result[key].as_array().cloned().unwrap_or_default();
            let ends: Vec<_> = [all("sizes"), all("tests")].concat().iter().map(|e| e["outcome"].clone()).collect();
            assert!(
                !ends.is_empty() && ends.iter().all(|end| end.is_string() && end != "interrupted"),
                "{name}: {ends:?}"
            );
            let trials = all("trials");
            let directions = trials.iter().flat_map(|t| t["directions"].as_array().unwrap());
            let received: u64 = directions.map(|d| d["received"].as_u64().unwrap()).sum();
            // The address tests have rounds instead of trials.
            let tests = all("tests");
            let rounds = tests.iter().filter_map(|t| t["found"]["addresses"]["rounds"].as_array()).flatten();
            let learned: u64 = rounds.map(|r| r["counts"]["learned"].as_u64().unwrap()).sum();
            assert!(received + learned > 1000, "{name}: {received} frames in {} trials", trials.len());
            let told: Vec<_> = all("warnings").into_iter().filter(|w| w["kind"] == "needs").collect();
            let told = told.iter().map(|w| w["text"].as_str().unwrap()).collect::<Vec<_>>().join("; ");
            let needs = &result["effective_plan"]["needs"];
            assert_eq!(!told.is_empty(), needs.is_object(), "{name}: {told}");
            all_told.insert(format!("{name}: {told}"));
        }
    }
    insta::assert_snapshot!(all_told.into_iter().collect::<Vec<_>>().join("\n"));
}
