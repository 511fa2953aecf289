//! Single trials as their user meets them: what is written of them, and what is left of one that Ctrl-C ends.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::{fs, time::Duration};

use support::{
    exclusive,
    tester::{linerate, start, total},
    words::{as_asked, lines_with, without_figures},
    Words,
};

const TRIAL: [&str; 7] = ["trial", "--dut", "l2", "--load", "20kpps", "--residual", "100ms"];

/// Each column of the second line of a CSV by its name in the first.
fn row(csv: &str) -> Vec<(&str, &str)> {
    let mut lines = csv.lines().map(|line| line.split(','));
    lines.next().unwrap().zip(lines.next().expect("a row of figures")).collect()
}

#[test]
fn a_trial_s_figures_are_a_row_of_its_csv() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let [csv, json] = ["t.csv", "t.json"].map(|name| dir.path().join(name).to_str().unwrap().to_owned());
    let ended = linerate(&[&TRIAL[..], &["--duration", "200ms", "-q", "--csv", &csv, "--json", &json]].concat());
    assert!(matches!(ended.code, 0 | 3), "{}", ended.stderr);
    let written = fs::read_to_string(&csv).unwrap();
    let row = row(&written);
    let figure = |name: &str| row.iter().find(|(column, _)| *column == name).unwrap_or_else(|| panic!("{written}")).1;
    let result: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!((figure("frame_size_bytes"), figure("load_fps")), ("64", "20000"));
    for count in ["sent", "received", "lost"] {
        assert_eq!(figure(count), total(&result, count).to_string(), "{written}");
    }
    assert!(total(&result, "sent") > 0, "{result}");
    let tests = [&TRIAL[..], &["--csv-tests", &csv]].concat();
    let mut words = Words::new();
    words.refused_in_a_line(2, &tests, &linerate(&tests));
    insta::assert_snapshot!(words);
}

#[test]
fn ctrl_c_keeps_what_was_counted() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let [json, slices] = ["t.json", "t.csv"].map(|name| dir.path().join(name));
    let files = ["--json", json.to_str().unwrap(), "--slices", slices.to_str().unwrap()];
    let args = [&TRIAL[..], &["--duration", "10m"], &files].concat();
    let mut run = start(&args, None, &dir.path().join("log"));
    // Long enough to have begun to send, however busy the machine.
    std::thread::sleep(Duration::from_secs(4));
    run.signal("INT");
    let status = run.wait_end(Duration::from_secs(30)).unwrap();
    assert_eq!(status.code(), Some(130), "{}", run.output());
    let result: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!((&result["standing"], &result["warnings"][0]["kind"]), (&"stopped".into(), &"stopped".into()));
    let [sent, received, lost] = ["sent", "received", "lost"].map(|count| total(&result, count));
    assert!(sent > 1000 && received > 1000 && sent == received + lost, "{result}");
    let trial = &result["trials"][0];
    assert!(trial["real_duration_s"].as_f64().unwrap() < 60.0, "{trial}");
    assert_eq!(trial["violations"][0]["rule"], "stretched");
    assert_eq!(trial["spec"]["duration_s"], 600.0);
    // The slices until then, too.
    let rows: Vec<Vec<f64>> = fs::read_to_string(&slices)
        .unwrap()
        .lines()
        .skip(1)
        .map(|row| row.split(',').map(|cell| cell.parse().unwrap_or(f64::NAN)).collect())
        .collect();
    assert_eq!(rows.iter().map(|row| row[2]).sum::<f64>(), sent as f64);
    assert!(rows.iter().all(|row| row[1] < trial["real_duration_s"].as_f64().unwrap()), "{:?}", rows.last());
    insta::assert_snapshot!(without_figures(&as_asked(&lines_with(
        &run.output(),
        &["Trial 1", "stopped by", "stopped before"]
    ))));
}

#[test]
fn what_is_wrong_is_named_as_it_was_typed() {
    let mut words = Words::new();
    for args in [
        &["--duration", "1ms"][..],
        &["--residual", "31d"],
        &["--ip", "v6"],
        &["--flows", "0"],
        &["--frame-size", "imix=aax"],
    ] {
        words.refused(2, args, &linerate(&[&["trial", "--load", "1kpps"], args].concat()));
    }
    insta::assert_snapshot!(words);
}

#[test]
fn real_time_priority_is_recorded_and_refused_without_the_right() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    // Whoever runs this may not have the right.
    let may = dpdk::check_realtime().is_ok();
    let scheduling = |realtime: &str, duration: &str| {
        let ended =
            linerate(&[&TRIAL[..], &["--duration", duration, "-q", "--json", "-", "--realtime", realtime]].concat());
        assert!(matches!(ended.code, 0 | 3), "{}", ended.stderr);
        let lcores = ended.json()["trials"][0]["interference"]["lcores"].clone();
        [0, 1].map(|i| lcores[i]["scheduling"] == "realtime")
    };
    assert_eq!(scheduling("auto", "200ms"), [may; 2]);
    assert_eq!(scheduling("auto", "1200ms"), [false; 2]);
    assert_eq!(scheduling("off", "200ms"), [false; 2]);
    if may {
        assert_eq!(scheduling("on", "1200ms"), [true; 2]);
    }
    // Where anybody may run it from, and without the right.
    let copy = dir.path().join("linerate");
    fs::copy(support::tester::BINARY, &copy).unwrap();
    std::process::Command::new("chmod").args(["-R", "a+rx"]).arg(dir.path()).status().unwrap();
    let refused = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--"])
        .arg(&copy)
        .args(TRIAL)
        .args(["--duration", "200ms", "--memory", "no-hugepages", "--realtime", "on"])
        .current_dir("/")
        .output()
        .unwrap();
    let forward = ["forward", "l2", "--port", "null", "--port", "null", "--realtime", "on"];
    let mut words = Words::new();
    words.refused_in_a_line(4, &[&TRIAL[..], &["--realtime", "on"]].concat(), &support::tester::ended(&refused));
    words.refused_in_a_line(2, &forward, &linerate(&forward));
    insta::assert_snapshot!(words);
}

#[test]
fn ctrl_c_ends_a_trial_with_real_time_priority() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    if dpdk::check_realtime().is_err() {
        return;
    }
    let args = [&TRIAL[..], &["--duration", "10s", "--realtime", "on"]].concat();
    let mut run = start(&args, None, &dir.path().join("log"));
    std::thread::sleep(Duration::from_secs(3));
    run.signal("INT");
    let status = run.wait_end(Duration::from_secs(5)).unwrap();
    assert_eq!(status.code(), Some(130), "{}", run.output());
}
