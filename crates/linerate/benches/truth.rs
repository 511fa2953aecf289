//! Intervals of `linerate bench --quick` against devices whose truth is known: the share that holds it, the width, the time.
//!
//! `cargo bench -p linerate --bench truth -- [RUNS] [FILTER]` runs each device so many times (5) by slices, and as often by
//! whole trials. The devices are policers of the built-in data plane and `tc tbf` behind a kernel bridge; the latter need
//! root. It prints the tables of docs/performance.md.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use serde_json::Value;
use support::{
    tester::{linerate, linerate_in, Ended},
    KernelDut, Tbf,
};

/// One run: the ends of its interval over the truth, if it has an answer, and its seconds.
struct Run {
    ends: Option<(f64, f64)>,
    time: Duration,
}

/// Runs of one device by one rule.
#[derive(Default)]
struct Runs(Vec<Run>);

impl Runs {
    /// `answers, hold the truth, median width, largest miss, median and largest seconds`, as cells of a table.
    fn cells(&self) -> String {
        let all = self.0.len();
        let ends: Vec<(f64, f64)> = self.0.iter().filter_map(|r| r.ends).collect();
        let held = ends.iter().filter(|(lower, upper)| *lower <= 1.0 && 1.0 <= *upper).count();
        let miss = ends.iter().map(|(lower, upper)| (lower - 1.0).max(1.0 - upper)).fold(0.0, f64::max);
        let mut widths: Vec<f64> = ends.iter().map(|(lower, upper)| upper - lower).collect();
        widths.sort_unstable_by(f64::total_cmp);
        let width = widths.get(widths.len() / 2).map_or("-".to_owned(), |w| format!("{:.2} %", w * 100.0));
        let mut times: Vec<f64> = self.0.iter().map(|r| r.time.as_secs_f64()).collect();
        times.sort_unstable_by(f64::total_cmp);
        let most = times.last().copied().unwrap_or_default();
        format!(
            "{} of {all} | {held} | {width} | {:.2} % | {:.1} s, {most:.1} s",
            ends.len(),
            miss * 100.0,
            times[all / 2]
        )
    }
}

/// The interval of an answer over the truth.
fn ends(ended: &Ended, truth: f64) -> Option<(f64, f64)> {
    if !matches!(ended.code, 0 | 3) {
        panic!("exit code {}: {}", ended.code, ended.stderr);
    }
    let size = &ended.json()["sizes"][0];
    let figure = |of: &Value| of.as_f64();
    let (lower, upper) = match &size["answer"] {
        Value::Null => (figure(&size["throughput_fps"])?, figure(&size["upper_bound_fps"])?),
        answer => (figure(&answer["lower_fps"])?, figure(&answer["upper_fps"])?),
    };
    (size["outcome"] == "found").then_some((lower / truth, upper / truth))
}

fn device(name: &str, truth: f64, runs: usize, run: impl Fn(&[&str]) -> Ended) {
    let mut by = [Runs::default(), Runs::default()];
    for _ in 0..runs {
        for (rule, of) in ["slices", "whole-trial"].into_iter().zip(&mut by) {
            let begun = Instant::now();
            let ended = run(&["bench", "--quick", "--no-latency", "--json", "-", "-q", "--evidence", rule]);
            of.0.push(Run { ends: ends(&ended, truth), time: begun.elapsed() });
        }
    }
    println!("| {name} | slices | {} |", by[0].cells());
    println!("| | whole trials | {} |", by[1].cells());
}

/// Policers of the built-in data plane: function, rate in frames/s, further flags.
const POLICERS: [(&str, f64, &[&str]); 12] = [
    ("l2", 100_300.0, &["--frame-sizes", "64"]),
    ("l2", 333_000.0, &["--frame-sizes", "64"]),
    ("l3", 1_234_000.0, &["--frame-sizes", "64"]),
    ("l3", 2_200_000.0, &["--frame-sizes", "1518"]),
    ("l2", 3_330_000.0, &["--frame-sizes", "64"]),
    ("l3", 5_010_000.0, &["--frame-sizes", "512"]),
    ("l2", 6_100_000.0, &["--frame-sizes", "64", "--both-ways"]),
    ("l2", 7_777_000.0, &["--frame-sizes", "64"]),
    ("l2", 11_300_000.0, &["--frame-sizes", "64"]),
    ("l3", 15_500_000.0, &["--frame-sizes", "64"]),
    ("l2", 20_700_000.0, &["--frame-sizes", "64"]),
    ("l2", 24_900_000.0, &["--frame-sizes", "64"]),
];

/// Shapers: rate in bit/s, bytes of a frame with FCS, buffer in ms.
const SHAPERS: [(u64, u32, u32); 6] = [
    (10_000_000, 512, 10),
    (29_000_000, 1518, 20),
    (73_000_000, 1518, 10),
    (73_000_000, 128, 10),
    (131_000_000, 256, 50),
    (310_000_000, 1518, 100),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let runs = words.first().and_then(|word| word.parse().ok()).unwrap_or(5);
    let wanted = |name: &str| words.get(1).is_none_or(|filter| name.contains(filter.as_str()));
    println!("| device | evidence | answers | hold the truth | median width | largest miss | median, longest |");
    println!("|---|---|---|---|---|---|---|");
    for (function, rate, flags) in POLICERS {
        let name = format!("{function} policer {} pps, {}", rate, flags[1..].join(" "));
        if wanted(&name) {
            let impair = format!("rate={rate}pps");
            device(&name, rate, runs, |args| {
                linerate(&[args, &["--dut", function, "--impair", &impair], flags].concat())
            });
        }
    }
    for (rate_bps, bytes, ms) in SHAPERS {
        for driver in ["af_xdp", "af_packet"] {
            let truth = rate_bps as f64 / 8.0 / f64::from(bytes);
            let name = format!("tbf {} Mbit/s, {bytes} B, {ms} ms, {driver}", rate_bps / 1_000_000);
            if !wanted(&name) || !support::is_root() {
                continue;
            }
            let dut = KernelDut::bridge();
            let limit = (rate_bps / 8 * u64::from(ms) / 1000).max(u64::from(bytes) * 4);
            dut.limit_egress(1, Tbf { rate_bps, burst: 3_200, limit: limit as _, overhead: 4 });
            let ports = [0, 1].map(|port| format!("eth:t{port},driver={driver}"));
            let size = bytes.to_string();
            let upper = format!("{}pps", (truth * 3.0).round());
            let flags = ["--port", &ports[0], "--port", &ports[1], "--frame-sizes", &size, "--upper", &upper];
            device(&name, truth, runs, |args| linerate_in(dut.tester(), &[args, &flags].concat()));
        }
    }
}
