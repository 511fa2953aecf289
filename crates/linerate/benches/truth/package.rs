//! The peer: MLRsearch of PyPI, over trials that `linerate trial` makes.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    time::Instant,
};

use serde_json::Value;

use crate::{runs::Run, support::tester::Ended};

/// One search of the package: trials of 100 ms, no loss, half a percent.
///
/// # Panics
/// If the package cannot be installed or the pipe breaks.
pub fn search(device: &[&str], run: &dyn Fn(&[&str]) -> Ended, truth: &dyn Fn() -> f64) -> (Run, f64) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let python = Command::new(format!("{root}/scripts/mlrsearch.sh")).output().expect("scripts/mlrsearch.sh runs");
    assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
    let python = String::from_utf8_lossy(&python.stdout).trim().to_owned();
    let begun = Instant::now();
    let truth = truth();
    let mut process = Command::new(python)
        .args([&format!("{root}/crates/linerate/benches/truth/package.py"), &(truth * 3.0).to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python runs");
    let mut to = process.stdin.take().expect("a pipe");
    let mut interval = None;
    for line in BufReader::new(process.stdout.take().expect("a pipe")).lines() {
        let line: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        if let Some(bounds) = line["found"].as_array() {
            interval = bounds[0].as_f64().zip(bounds[1].as_f64());
            break;
        }
        let load = format!("{}pps", line["load"].as_f64().expect("a load").round());
        let duration = format!("{}ms", (line["duration"].as_f64().expect("a duration") * 1e3).round());
        let flags = ["trial", "--json", "-", "-q", "--load", &load, "--duration", &duration];
        // The whole trial counts, whoever disturbed it: the package knows loss alone.
        let device: Vec<&str> = without(device, &["--upper"]);
        let ended = run(&[&flags[..], &device].concat());
        let counts = &ended.json()["trials"][0]["directions"][0];
        let of = |name: &str| counts[name].as_u64().unwrap_or(0);
        writeln!(to, "{} {} {}", of("intended"), of("sent"), of("received")).expect("the pipe holds");
    }
    let _ = process.wait();
    let outcome = if interval.is_some() { "found" } else { "irregular" }.to_owned();
    (
        Run {
            outcome,
            interval: interval.map(|(lower, upper)| (lower, Some(upper))),
            core_to_core_ns: None,
            time: begun.elapsed(),
        },
        truth,
    )
}

/// The flags without these and their values; `trial` has `--frame-size` for `--frame-sizes`.
fn without<'a>(flags: &[&'a str], gone: &[&str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    let mut each = flags.iter();
    while let Some(&flag) = each.next() {
        if gone.contains(&flag) {
            each.next();
        } else {
            kept.push(if flag == "--frame-sizes" { "--frame-size" } else { flag });
        }
    }
    kept
}
