//! Sweeps, run whole: one table, one result, one curve; what cannot be swept; and routes of the built-in device.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::{fs, path::Path, time::Duration};

use serde_json::Value;
use support::{
    exclusive,
    tester::{linerate, start, Ended},
    words::{lines_with, nth, SWEEP_TABLE, WRITTEN},
    Words,
};

const SIM: [&str; 7] = ["--dut", "sim:capacity=3M", "--quick", "-q", "--link", "10G", "--no-latency"];

fn bench(args: &[&str]) -> Ended {
    linerate(&[&["bench"], args].concat())
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

fn json(path: &str) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The words of a picture, a line each, without figures and what draws them.
fn titles(svg: &str) -> String {
    let texts = svg.split("<text").skip(1).filter_map(|part| part.split_once('>')?.1.split_once('<'));
    let words = texts.map(|(text, _)| text.trim()).filter(|text| text.contains(char::is_alphabetic));
    words.collect::<Vec<_>>().join("\n")
}

/// A refused benchmark: one line for the snapshot.
#[track_caller]
fn refused(words: &mut Words, args: &[&str]) {
    words.refused_in_a_line(2, args, &bench(args));
}

#[test]
fn every_combination_is_a_row_of_one_table_and_of_one_result() {
    let dir = tempfile::tempdir().unwrap();
    let [all, csv, svg, markdown, tests] = ["s.json", "s.csv", "s.svg", "s.md", "t.csv"].map(|f| path(dir.path(), f));
    let files = ["--json", &all, "--csv", &csv, "--svg", &svg, "--markdown", &markdown, "--csv-tests", &tests];
    let sweep = ["--sweep", "flows=1,1k", "--sweep", "frame-sizes=64,512"];
    let ended = bench(&[&SIM[..], &sweep, &files].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
    let (begins, table) = ended.stdout.split_once(SWEEP_TABLE).expect("a table");
    assert!(!table.contains(SWEEP_TABLE), "one table");
    let mut words = Words::new();
    words.add("begins", &begins.lines().take(2).collect::<Vec<_>>().join("\n"));
    words.add_without_figures("table", table.split(WRITTEN).next().unwrap());
    let rows: Vec<Vec<&str>> = table.lines().skip(4).take(4).map(|l| l.split_whitespace().collect()).collect();
    let keys: Vec<_> = rows.iter().map(|row| (row[0], row[1])).collect();
    assert_eq!(keys, [("1", "64"), ("1", "512"), ("1,000", "64"), ("1,000", "512")], "{table}");
    let rate: f64 = rows[0][2].parse().unwrap();
    assert!((2.9..=3.0).contains(&rate) && rows[1].contains(&"100.00"), "{table}");

    let result = json(&all);
    assert_eq!((&result["schema"], &result["standing"]), (&"linerate-sweep/2".into(), &"completed".into()));
    assert_eq!(result["keys"], serde_json::json!(["flows", "frame_sizes"]));
    let points = result["points"].as_array().unwrap();
    assert_eq!((points.len(), &result["planned"]), (4, &4.into()));
    for (point, values) in points.iter().zip([(1, 64), (1, 512), (1000, 64), (1000, 512)]) {
        assert_eq!(point["values"], serde_json::json!({ "flows": values.0, "frame_sizes": values.1 }));
        let plan = &point["result"]["effective_plan"];
        assert_eq!(
            (&plan["traffic"]["flows"], &plan["frame_sizes"]),
            (&values.0.into(), &serde_json::json!([values.1]))
        );
        assert_eq!(point["result"]["device"]["kind"], "simulated");
        assert!(plan.get("sweep").is_none() && !point["result"]["trials"].as_array().unwrap().is_empty());
    }
    let csv_text = fs::read_to_string(&csv).unwrap();
    let lines: Vec<&str> = csv_text.lines().collect();
    assert!(lines[0].starts_with("flows,frame_size_bytes,outcome,throughput_fps,"), "{}", lines[0]);
    assert!(lines.len() == 5 && lines[4].starts_with("1000,512,at_maximum,"), "{csv_text}");
    let picture = fs::read_to_string(svg).unwrap();
    assert!(picture.matches("<polyline").count() >= 2, "a line for each size: {picture}");
    words.add("picture", &titles(&picture));
    assert!(fs::read_to_string(markdown).unwrap().contains("| 1,000 | 512 |"));
    assert!(fs::read_to_string(tests).unwrap().starts_with("flows,frame_size_bytes,test,"));

    // The same from the file, in a document's layout, and against itself.
    let again = path(dir.path(), "again.csv");
    let shown = linerate(&["runs", "show", &all, "--csv", &again]);
    let (table, files) = shown.stdout.split_once(WRITTEN).unwrap();
    assert!(shown.code == 0 && ended.stdout.contains(table.trim()), "{}{}", shown.stdout, shown.stderr);
    assert!(files.contains("again.csv"), "{}", shown.stdout);
    assert_eq!(fs::read_to_string(again).unwrap(), csv_text);
    let onp = linerate(&["runs", "show", &all, "--layout", "onp"]).stdout;
    assert!(onp.contains("flows-1000.frame_sizes-64"), "{onp}");
    words.add_without_figures("layout", &onp);
    let against = linerate(&["runs", "show", &all, "--baseline", &all]);
    assert!(
        against.code == 0 && against.stdout.matches("0.00  within noise\n").count() == 2,
        "two are at line rate: {}",
        against.stdout
    );
    let of_one = ["runs", "show", &all, "--layout", "onp", "--baseline", &all];
    words.refused_in_a_line(2, &of_one, &linerate(&of_one));
    insta::assert_snapshot!(words);
}

#[test]
fn json_on_standard_output_is_alone_there() {
    let ended = bench(&[&SIM[..], &["--sweep", "flows=1,9", "--json", "-"]].concat());
    assert_eq!((ended.code, ended.json()["points"].as_array().unwrap().len()), (0, 2), "{}", ended.stderr);
}

#[test]
fn a_dry_run_says_what_all_points_take() {
    let ended = bench(&["--dut", "sim:capacity=3M", "--quick", "--dry-run", "--sweep", "flows=1,1k,64k"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let figures = |name: &str| -> (f64, f64) {
        let line = ended.stdout.lines().find(|l| l.starts_with(name)).unwrap_or_else(|| panic!("{}", ended.stdout));
        let words: Vec<&str> = line.trim_start_matches(name).split_whitespace().collect();
        (words[0].parse().unwrap(), words[1].parse().unwrap())
    };
    let points = ["flows 1 ", "flows 1000 ", "flows 64000 "].map(figures);
    let sum = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    let together = figures("together ");
    // The device is quiet, so every seed takes the same; a duration is shown with three digits.
    assert!(together.0 == sum.0 && (together.1 / sum.1 - 1.0).abs() < 0.06, "{}", ended.stdout);
    let several = bench(&["--plan", "router-all", "--dut", "sim", "--quick", "--dry-run"]);
    assert!(several.stdout.contains("router-b4 "), "{}", several.stdout);
    let mut words = Words::new();
    words.add_without_figures("points", &ended.stdout);
    words.add_without_figures("plans", &several.stdout);
    insta::assert_snapshot!(words);
}

#[test]
fn every_goal_has_its_row_and_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let svg = path(dir.path(), "s.svg");
    let goals = ["--method", "mlrsearch", "--frame-sizes", "64", "--svg", &svg, "--sweep", "flows=1,1k"];
    let ended = bench(
        &[&["--plan", "rfc2544", "--dut", "sim:capacity=3M,onset=0.1%", "-q", "--no-latency"], &goals[..]].concat(),
    );
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
    let (lines, table) = ended.stdout.split_once(SWEEP_TABLE).expect("a table");
    assert_eq!(lines.matches("  PDR\n").count(), 2, "{lines}");
    let rows: Vec<Vec<&str>> = table.lines().skip(4).take(4).map(|l| l.split_whitespace().collect()).collect();
    let keys: Vec<_> = rows.iter().map(|row| [row[0], row[1], row[2]]).collect();
    assert_eq!(keys, [["1", "64", "NDR"], ["1", "64", "PDR"], ["1,000", "64", "NDR"], ["1,000", "64", "PDR"]]);
    let rate = |row: &[&str]| row[3].parse::<f64>().unwrap();
    assert!(rows.chunks(2).all(|of| rate(&of[0]) <= rate(&of[1]) && rate(&of[0]) > 2.0), "{table}");
    let picture = fs::read_to_string(svg).unwrap();
    assert!(picture.matches("<polyline").count() >= 2, "a line for each goal: {picture}");
    insta::assert_snapshot!(titles(&picture));
}

#[test]
fn a_rehearsal_is_written_as_json_and_as_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let [one, all] = ["one.json", "all.json"].map(|f| path(dir.path(), f));
    let fixed = ["--dut", "sim:capacity=3M", "--quick", "--frame-sizes", "64", "--dry-run"];
    let ended = bench(&[&fixed[..], &["--json", &one]].concat());
    assert!(ended.code == 0 && ended.stdout.contains(&format!("{WRITTEN}{one}")), "{}{}", ended.stdout, ended.stderr);
    let sweep = bench(&[&fixed[..], &["--sweep", "flows=1,9", "--json", &all]].concat());
    assert_eq!(sweep.code, 0, "{}", sweep.stderr);
    for (file, names) in [(&one, &[""][..]), (&all, &["flows 1", "flows 9"])] {
        let result = json(file);
        assert_eq!(result["schema"], "linerate-dry-run/1");
        let plans = result["plans"].as_array().unwrap();
        assert_eq!(plans.iter().map(|p| p["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
        for run in plans.iter().flat_map(|p| p["runs"].as_array().unwrap()) {
            assert!(run["trials"].as_u64() > Some(1) && run["duration_s"].as_f64() > Some(0.1), "{run}");
            assert_eq!(run["standing"], "completed");
        }
        assert_eq!(plans[0]["runs"].as_array().unwrap().len(), 100);
    }
    let alone = bench(&[&fixed[..], &["--json", "-"]].concat());
    assert_eq!(alone.json()["plans"][0]["runs"], json(&one)["plans"][0]["runs"]);
    let mut words = Words::new();
    refused(&mut words, &[&fixed[..], &["--csv", "t.csv"]].concat());
    insta::assert_snapshot!(words);
}

#[test]
fn what_cannot_be_swept_is_refused_in_a_line() {
    let mut words = Words::new();
    for args in [
        &["--sweep", "cores=1,2"][..],
        &["--sweep", "queues=2"],
        &["--sweep", "routes=2"],
        &["--sweep", "flows=0"],
        &["--sweep", "flows=1k,1000"],
        &["--sweep", "flows="],
        &["--sweep", "colour=red"],
        &["--sweep", "flows=1", "--sweep", "flows=2"],
        &["--sweep", "flows=1", "--flows", "2"],
        &["--sweep", "frame-sizes=64", "--frame-sizes", "64"],
        &["--sweep", "frame-sizes=64", "--ip", "v6"],
        &["--sweep", "flows=1,2,3,4,5,6,7,8,9", "--sweep", "frame-sizes=64,65,66,67,68,69,70,71"],
        &["--sweep-command", "true"],
        &["--sweep", "flows=1", "--sweep-command", " "],
        &["--sweep", "flows=1", "--sweep-command", "set {foo}"],
        &["--sweep", "frame-sizes=64,imix"],
        &["--sweep", "flows=1", "--baseline", "old.json"],
        &["--sweep", "flows=1", "--plan", "router-all"],
        &["--sweep", "flows=1", "--json", "/nowhere/at/all.json"],
    ] {
        refused(&mut words, &[&SIM[..], args].concat());
    }
    refused(&mut words, &["--sweep", "cores=1,2"]);
    refused(&mut words, &["--dut", "l2", "--sweep", "routes=1"]);
    refused(&mut words, &["--port", "null", "--port", "null", "--sweep", "cores=1"]);
    insta::assert_snapshot!(words);
}

#[test]
fn a_plan_s_command_brings_the_device_to_each_point() {
    let dir = tempfile::tempdir().unwrap();
    let [plan, log, all] = ["plan.toml", "log", "all.json"].map(|f| path(dir.path(), f));
    let text = "name = 'scaling'\nframe_sizes = [64]\n[sweep]\nflows = [1, 5]\ncores = [1, 2]\n\
                command = ['sh', '-c', 'echo {cores} $LINERATE_FLOWS >> LOG; test {cores}{flows} != 25']";
    fs::write(&plan, text.replace("LOG", &log)).unwrap();
    // Printed, it is a plan again.
    let printed = bench(&["--plan", &plan, "--print-config"]);
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    fs::write(&plan, printed.stdout).unwrap();
    let ended = bench(&[&SIM[..], &["--plan", &plan, "--json", &all]].concat());
    assert_eq!(fs::read_to_string(&log).unwrap(), "1 1\n2 1\n1 5\n2 5\n");
    // The last one failed: the others are kept, and it says so.
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    let result = json(&all);
    assert_eq!((result["points"].as_array().unwrap().len(), &result["planned"]), (3, &4.into()));
    let mut words = Words::new();
    words.add_without_figures("error", &ended.stderr);
    words.add("verdict", &lines_with(&ended.stdout, &["3 of 4"]));
    insta::assert_snapshot!(words);
}

#[test]
fn ctrl_c_keeps_the_points_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let [all, log] = ["all.json", "log"].map(|f| path(dir.path(), f));
    let args = ["bench", "--sweep", "flows=1,2,3", "--sweep-command", "test {flows} = 1 || sleep 60", "--json", &all];
    let mut run = start(&[&args, &SIM[..]].concat(), None, Path::new(&log));
    run.wait_output("the second point", Duration::from_secs(30), |out| out.contains(&nth(2, 3, "flows 2")));
    run.signal("INT");
    let status = run.wait_end(Duration::from_secs(15)).unwrap();
    assert_eq!(status.code(), Some(130), "{}", run.output());
    let result = json(&all);
    assert_eq!((result["points"].as_array().unwrap().len(), &result["standing"]), (1, &"stopped".into()));
    insta::assert_snapshot!(lines_with(&run.output(), &["1 of 3"]));
    assert!(!std::env::temp_dir().join(format!("linerate-runs-{}", run.id())).exists());
}

#[test]
fn a_printed_sweep_has_the_points_in_the_same_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("printed.toml");
    let points = |ended: &Ended| -> Vec<Value> {
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let result = ended.json();
        let values = result["points"].as_array().unwrap().iter().map(|point| point["values"].clone());
        [result["keys"].clone()].into_iter().chain(values).collect()
    };
    for typed in [["frame-sizes=512,64", "flows=1k,1"], ["flows=1k,1", "frame-sizes=512,64"]] {
        let args = [&SIM[..], &["--sweep", typed[0], "--sweep", typed[1]]].concat();
        let printed = bench(&[&args[..], &["--print-config"]].concat());
        assert_eq!(printed.code, 0, "{}", printed.stderr);
        std::fs::write(&path, &printed.stdout).unwrap();
        let first = points(&bench(&[&args[..], &["--json", "-"]].concat()));
        let file = ["--dut", "sim:capacity=3M", "--plan", path.to_str().unwrap(), "--json", "-"];
        assert_eq!(points(&bench(&file)), first, "{}", printed.stdout);
        assert_eq!((first.len(), &first[0][0]), (5, &typed[0].split_once('=').unwrap().0.replace('-', "_").into()));
    }
}

#[test]
fn the_built_in_router_has_the_routes_that_its_flows_go_to() {
    let _machine = exclusive();
    let args =
        ["--quick", "-q", "--frame-sizes", "64", "--upper", "50kpps", "--both-ways", "--no-latency", "--json", "-"];
    // A busy machine makes it inconclusive; what is checked is where frames went.
    let ended =
        bench(&[&args[..], &["--max-repeats", "2", "--sweep", "routes=1,5k", "--sweep", "flows=1,1k"]].concat());
    assert!(matches!(ended.code, 0 | 3), "{}{}", ended.stdout, ended.stderr);
    let result = ended.json();
    let points = result["points"].as_array().unwrap();
    assert_eq!(points.len(), 4, "{}", ended.stderr);
    for (point, (routes, words)) in
        points.iter().zip([(1, "2 routes"), (1, "2 routes"), (5000, "10000 routes"), (5000, "10000 routes")])
    {
        assert_eq!(point["values"]["routes"], routes);
        let run = &point["result"];
        assert_eq!(run["dut"], format!("built-in l3 over wire, {words}"));
        let first = &run["trials"][0];
        for direction in first["directions"].as_array().unwrap() {
            assert!(direction["received"].as_u64().unwrap() > 1000, "{direction}");
        }
        let drops = first["dut"]["drops"].as_object().unwrap();
        assert!(drops.keys().all(|reason| !reason.contains("route")), "{drops:?}");
    }
}
