//! Latency through the logger beside that through `null`: every frame's, over software cables.

use std::process::Command;

use serde_json::Value;

use crate::contest::{bound, LINERATE};

const DUTS: [&str; 2] = ["null", "flowlog"];
/// Loads, and how long to send: short enough for some trials to be valid on a shared machine.
const LOADS: [(&str, &str); 3] = [("100kpps", "200ms"), ("1Mpps", "50ms"), ("5Mpps", "20ms")];
const PERCENTILES: [(&str, &str); 4] = [("p50", "p50_ns"), ("p90", "p90_ns"), ("p99", "p99_ns"), ("p99.9", "p99_9_ns")];
/// Trials of one kind until one is valid.
const TRIES: u32 = 10;

/// What a trial showed.
struct Seen {
    /// By percentile, in ns; none when the clock jumped.
    ns: [Option<u64>; PERCENTILES.len()],
    lost: u64,
    valid: bool,
}

/// Prints the median of each percentile over some runs of each in turn.
pub fn compare(rounds: usize) {
    println!(
        "\nlatency of every 64-byte frame, 1k flows, one way, tester and DUT on a CPU each, transmit now; medians of \
         {rounds}"
    );
    let names: String = PERCENTILES.iter().map(|(name, _)| cell(Some((*name).to_owned()))).collect();
    println!("{:<8} {:<8}{names} {:>9}", "load", "us", "lost");
    for (load, duration) in LOADS {
        let mut seen = DUTS.map(|_| Vec::new());
        for _ in 0..rounds {
            for (dut, seen) in DUTS.iter().zip(&mut seen) {
                seen.push(run(dut, load, duration));
            }
        }
        let mut medians = Vec::new();
        for (dut, seen) in DUTS.iter().zip(&seen) {
            let ns: Vec<_> = (0..PERCENTILES.len()).map(|p| middle(seen.iter().filter_map(|s| s.ns[p]))).collect();
            let us: String = ns.iter().map(|ns| cell(ns.map(|ns| format!("{:.2}", ns as f64 / 1e3)))).collect();
            let lost = cell(middle(seen.iter().map(|s| s.lost)).map(|n| n.to_string()));
            let invalid = seen.iter().filter(|s| !s.valid).count();
            let note = if invalid > 0 {
                format!("   {invalid} of {rounds} not valid in {TRIES} tries")
            } else {
                String::new()
            };
            println!("{load:<8} {dut:<8}{us}{lost}{note}");
            medians.push(ns);
        }
        let apart = |(a, b): (&Option<u64>, &Option<u64>)| {
            cell(a.zip(*b).map(|(a, b)| format!("{:+.2}", (a as f64 - b as f64) / 1e3)))
        };
        let more: String = medians[1].iter().zip(&medians[0]).map(apart).collect();
        println!("{load:<8} {:<8}{more}", "more");
    }
}

fn middle(all: impl Iterator<Item = u64>) -> Option<u64> {
    let mut all: Vec<_> = all.collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}

fn cell(text: Option<String>) -> String {
    format!(" {:>9}", text.unwrap_or_else(|| "-".to_owned()))
}

/// A trial, again until it is valid; the last one if none is.
fn run(dut: &str, load: &str, duration: &str) -> Seen {
    let mut last = None;
    for _ in 0..TRIES {
        let seen = trial(dut, load, duration);
        if seen.valid {
            return seen;
        }
        last = Some(seen);
    }
    last.expect("there were some")
}

fn trial(dut: &str, load: &str, duration: &str) -> Seen {
    let mut command: Command = bound(LINERATE);
    command.args(["trial", "--dut", dut, "--load", load, "--flows", "1000", "--frame-size", "64"]);
    command.args(["--duration", duration, "--residual", "200ms", "--json", "-", "--quiet"]);
    let ended = command.output().expect("linerate runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(matches!(ended.status.code(), Some(0 | 3)), "{dut} at {load}: {said}");
    let result: Value = serde_json::from_slice(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
    let trial = &result["trials"][0];
    let direction = &trial["directions"][0];
    let number = |v: &Value| v.as_u64().unwrap_or_else(|| panic!("{v} in {trial:#}"));
    let ns = PERCENTILES.map(|(_, field)| direction["latency"][field].as_u64());
    let valid = trial["violations"].as_array().is_some_and(Vec::is_empty) && ns.iter().all(Option::is_some);
    Seen { ns, lost: number(&direction["lost"]), valid }
}
