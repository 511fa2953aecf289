//! Plans of the source documents, run whole; their tables, and results against older ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::{fs, path::Path, time::Duration};

use support::{
    exclusive,
    tester::{linerate, start, Ended},
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

/// One line on standard error, nothing on standard output, and exit code 2.
#[track_caller]
fn refused(ended: &Ended, says: &[&str]) {
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{}", ended.stderr);
    assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
    for part in says {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
}

#[test]
fn every_plan_is_listed_with_its_needs_and_runs_to_its_end() {
    let list = bench(&["--list"]).stdout;
    let names: Vec<&str> = list.lines().filter(|l| !l.starts_with(' ')).map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(list.lines().filter(|l| l.starts_with("    needs ")).count(), names.len());
    for name in ["nfvi-two-vm-2q4pmd", "router-b4", "router-all", "onp-vxlan", "onp-40g-scenario-3", "flowlog-64b"] {
        assert!(names.contains(&name), "{name}: {list}");
    }
    assert!(list.contains("topology PHY-VM-VM-PHY, 2 VMs, 2 cores of the device, links of 25Gbit/s"), "{list}");
    assert!(list.contains("runs  1-flow, 1000-flows"), "{list}");
    for name in names {
        let ended = bench(&[&["--plan", name], &SIM[..]].concat());
        if name == "rfc2889-addresses" {
            refused(&ended, &["a simulated device learns no addresses"]);
            continue;
        }
        assert_eq!(ended.code, 0, "{name}: {}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn a_plan_of_several_runs_ends_in_one_table_and_leaves_a_result_each() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("all.json");
    let ended = bench(&[&["--plan", "router-all", "--json", json.to_str().unwrap()], &SIM[..]].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let table = ended.stdout.split("Load tests (layout").nth(1).expect("a table at the end");
    for row in ["U1: Unidirectional 1514b", "U4: Unidirectional 64b MPLS", "B3: Bidirectional 64b Single"] {
        assert_eq!(table.matches(row).count(), 1, "{table}");
    }
    assert!(ended.stdout.contains("8 of 8: router-b4"));
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
    refused(&bench(&["--plan", "router-all", "--json", "-"]), &["8 runs", "all.router-u1.json"]);
    refused(&bench(&["--plan", "router-all:nope"]), &["must be one of router-u1"]);
}

#[test]
fn generation_against_generation() {
    let dir = tempfile::tempdir().unwrap();
    let old = result(dir.path(), "old.json", "3M", &[]);
    let new = result(dir.path(), "new.json", "4M", &["--layout", "nfvi"]);
    let (markdown, csv) = (dir.path().join("c.md"), dir.path().join("c.csv"));
    let files = ["--markdown", markdown.to_str().unwrap(), "--csv", csv.to_str().unwrap()];
    let shown = linerate(&[&["runs", "show", &new, "--baseline", &old][..], &files].concat());
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let csv = fs::read_to_string(csv).unwrap();
    let small: Vec<f64> = csv.lines().nth(1).unwrap().split(',').map(|f| f.parse().unwrap()).collect();
    let [size, pps, .., old_pps, _, _, improvement] = small[..] else { panic!("{csv}") };
    assert_eq!(size, 64.0);
    // Both were found to 1 %: the improvement is a third, and follows from the figures beside it.
    assert!((improvement - 33.3).abs() < 3.0 && ((pps / old_pps - 1.0) * 100.0 - improvement).abs() < 0.01, "{csv}");
    assert!(fs::read_to_string(markdown).unwrap().contains("| Improvement % |"));
    assert!(shown.stdout.contains("Improvement"), "{}", shown.stdout);

    // The same while measuring: against the old one again, which is what it was.
    let again = ["--dut", "sim:capacity=3M", "--quick", "-q", "--link", "25G", "--both-ways", "--baseline", &old];
    let again = bench(&[&again[..], &["--layout", "onp"]].concat());
    assert_eq!(again.code, 0, "{}", again.stderr);
    for part in ["new against old", "0.00", "lat. (ns)"] {
        assert!(again.stdout.contains(part), "{part}: {}", again.stdout);
    }
}

#[test]
fn what_does_not_compare_is_refused_before_it_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let old = result(dir.path(), "old.json", "3M", &[]);
    let few = result(dir.path(), "few.json", "3M", &["--frame-sizes", "64", "--flows", "9"]);
    let shown = linerate(&["runs", "show", &few, "--baseline", &old]);
    refused(&shown, &["do not compare", "frame sizes 64 B against 64, 128", "traffic.flows 9 against 1"]);
    let against = ["--quick", "--link", "25G", "--both-ways", "--baseline", &old];
    refused(&bench(&against), &["the old one was simulated, the new one measured"]);
    refused(
        &bench(&["--dut", "sim", "--baseline", &old]),
        &["does not compare", "plan rfc2544 against rfc2544 (quick)"],
    );
}

#[test]
fn files_that_are_no_results_are_refused_in_a_line() {
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
    for (name, text, says) in [
        ("empty", &b""[..], "JSON object"),
        ("binary", &[0xff, 0x00, 0x1b][..], "JSON object"),
        ("list", b"[]", "JSON object"),
        ("other", b"{\"schema\": \"linerate-flowbench/1\"}", "its schema is"),
        ("none", b"{}", "has no schema"),
        ("bare", b"{\"schema\": \"linerate-result/1\"}", "complete result"),
        ("cut", &whole.as_bytes()[..whole.len() / 2], "JSON object"),
        ("size", size.as_bytes(), "64 to 9216"),
        ("negative", negative.as_bytes(), "complete result"),
    ] {
        let bad = file(name, text);
        for args in [&["runs", "show", &bad][..], &["runs", "show", &good, "--baseline", &bad]] {
            refused(&linerate(args), &[says, name]);
        }
    }
    refused(&linerate(&["runs", "show", "/dev/zero"]), &["regular file"]);
    refused(&linerate(&["runs", "show", &good, &good]), &["--layout"]);
    refused(&linerate(&["runs", "show", &good, &good, "--layout", "onp", "--baseline", &good]), &["give one file"]);
    let shown = linerate(&["runs", "show", &good]);
    assert!(shown.code == 0 && shown.stdout.contains("pps each way"), "{}", shown.stderr);
}

#[test]
fn a_plan_of_several_runs_is_stopped_once_and_keeps_what_was_measured() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("all.json");
    let args = ["bench", "--plan", "router-all", "--json", json.to_str().unwrap(), "--upper", "100kpps"];
    let mut run = start(&args, None, &dir.path().join("log"));
    run.wait_output("the first run", Duration::from_secs(20), |out| out.contains("1 of 8: router-u1"));
    std::thread::sleep(Duration::from_secs(4));
    run.signal("TERM");
    let status = run.wait_end(Duration::from_secs(15)).unwrap();
    assert_eq!(status.code(), Some(130), "{}", run.output());
    let first: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.path().join("all.router-u1.json")).unwrap()).unwrap();
    assert_eq!(first["standing"], "stopped");
    assert!(!run.output().contains("2 of 8"), "{}", run.output());
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
    let list = bench(&["--list"]).stdout;
    for plan in list.lines().filter(|l| !l.starts_with(' ')).map(|l| l.split(' ').next().unwrap()) {
        let dir = tempfile::tempdir().unwrap();
        let json = dir.path().join("r.json");
        // Shortened: few frames, one size that holds a VXLAN tunnel's headers, few repeats. A busy machine makes it
        // inconclusive; what is checked is that frames come through, that each test ends, and that the needs are told.
        let short = ["--quick", "-q", "--upper", "20kpps", "--frame-sizes", "128", "--max-repeats", "2"];
        let ended = bench(&[&["--plan", plan, "--json", json.to_str().unwrap()], &short[..]].concat());
        assert!(matches!(ended.code, 0 | 3), "{plan}: {} {}", ended.code, ended.stderr);
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
            assert_eq!(
                told.contains("but ran against the built-in"),
                needs["vms"].is_number() || told.contains("OVS"),
                "{name}: {told}"
            );
        }
    }
}
