//! Devices whose truth is known.

use std::time::Duration;

use serde_json::Value;

use crate::{
    options::Options,
    package,
    runs::{self, Rule, Run},
    support::{
        self,
        tester::{linerate, linerate_in, Ended},
        KernelDut, Tbf,
    },
};

/// Policers of the built-in data plane: function, rate in frames/s, queue, further flags.
const POLICERS: [(&str, f64, &str, &[&str]); 18] = [
    ("l2", 100_300.0, "", &["--frame-sizes", "64"]),
    ("l2", 333_000.0, "", &["--frame-sizes", "64"]),
    ("l3", 1_234_000.0, "", &["--frame-sizes", "64"]),
    ("l3", 2_200_000.0, "", &["--frame-sizes", "1518"]),
    ("l2", 3_330_000.0, "", &["--frame-sizes", "64"]),
    ("l3", 5_010_000.0, "", &["--frame-sizes", "512"]),
    ("l2", 6_100_000.0, "", &["--frame-sizes", "64", "--both-ways"]),
    ("l2", 7_777_000.0, "", &["--frame-sizes", "64"]),
    ("l2", 11_300_000.0, "", &["--frame-sizes", "64"]),
    ("l3", 15_500_000.0, "", &["--frame-sizes", "64"]),
    ("l2", 20_700_000.0, "", &["--frame-sizes", "64"]),
    ("l2", 24_900_000.0, "", &["--frame-sizes", "64"]),
    ("l2", 333_000.0, "50ms", &["--frame-sizes", "64"]),
    ("l3", 1_234_000.0, "10ms", &["--frame-sizes", "64"]),
    ("l2", 1_700_000.0, "50ms", &["--frame-sizes", "64"]),
    ("l2", 3_330_000.0, "1ms", &["--frame-sizes", "64"]),
    ("l2", 7_777_000.0, "100us", &["--frame-sizes", "64"]),
    ("l3", 5_010_000.0, "5ms", &["--frame-sizes", "512"]),
];

/// Policers that do more, or are far below what the tester sends: rate in frames/s, and the rest of `--impair`.
const ODD: [(f64, &str); 6] = [
    (3_330_000.0, "dup=5%,reorder=2%,distance=20"),
    (1_234_000.0, "delay=50us,jitter=200us"),
    (7_777_000.0, "queue=1ms,reorder=5%,distance=200"),
    (20_000.0, ""),
    (2_400.0, ""),
    (500.0, ""),
];

/// Clocks a frame of a slow data plane.
const WORK: [u32; 3] = [250, 1_000, 7_000];

/// Shapers: rate in bit/s, bytes of a frame with FCS, buffer in ms.
const SHAPERS: [(u64, u32, u32); 6] = [
    (10_000_000, 512, 10),
    (29_000_000, 1518, 20),
    (73_000_000, 1518, 10),
    (73_000_000, 128, 10),
    (131_000_000, 256, 50),
    (310_000_000, 1518, 200),
];

/// Simulated devices: name, capacity in frames/s, what disturbs them and the tester.
const SIMULATED: [(&str, f64, &str); 8] = [
    ("quiet", 3_330_000.0, ""),
    ("queue of 50 ms", 333_000.0, "queue=16650"),
    ("drift of -1 % a minute", 3_330_000.0, "drift=-1%/min"),
    ("stalls, one in 20 s", 3_330_000.0, "stalls=0.05/s:2000"),
    ("stalls, one in a second", 3_330_000.0, "stalls=1/s:500"),
    ("loss inversion", 3_330_000.0, "inversion=1M-2M:0.1%"),
    ("accidents", 3_330_000.0, "accidents=5%:50"),
    ("tester away", 3_330_000.0, "tester-stalls=50%"),
];

/// Runs all that are wanted, and prints their table.
pub fn all(options: &Options) {
    println!("| device | evidence | answers | hold the truth | median width | largest miss | median, longest |");
    println!("|---|---|---|---|---|---|---|");
    for (function, rate, queue, flags) in POLICERS {
        let queued = if queue.is_empty() { String::new() } else { format!(", queue {queue}") };
        let name = format!("{function} policer {:.4} Mpps{queued}, {}", rate / 1e6, flags[1..].join(" "));
        let queue = if queue.is_empty() { String::new() } else { format!(",queue={queue}") };
        let impair = format!("rate={rate}pps{queue}");
        let device = [&["--dut", function, "--impair", &impair], flags].concat();
        measure(options, &name, &device, &|args| linerate(args), &|_| rate);
    }
    for (rate, more) in ODD {
        let impair = format!("rate={rate}pps,{more}");
        let impair = impair.trim_end_matches(',');
        let device = ["--dut", "l2", "--impair", impair, "--frame-sizes", "64"];
        measure(options, &format!("l2 odd policer, {impair}"), &device, &|args| linerate(args), &|_| rate);
    }
    for work in WORK {
        let impair = format!("work={work}");
        let device = ["--dut", "l2", "--impair", &impair, "--frame-sizes", "64"];
        measure(options, &format!("l2 of {work} clocks, 64"), &device, &|args| linerate(args), &from_runtime);
    }
    for (name, capacity, noise) in SIMULATED {
        simulated(options, &format!("simulated, {name}"), capacity, noise);
    }
    for (rate_bps, bytes, ms) in SHAPERS {
        for driver in ["af_xdp", "af_packet"] {
            shaper(options, rate_bps, bytes, ms, driver);
        }
    }
}

/// Each run has a seed of its own, and its time is that of its trials.
fn simulated(options: &Options, name: &str, capacity: f64, noise: &str) {
    if !options.wants(name) {
        return;
    }
    for rule in options.rules.iter().filter(|rule| **rule != Rule::Package) {
        let run = |n: usize| {
            let dut = format!("sim:capacity={capacity},seed={},{noise}", n + 1);
            let flags = ["bench", "--quick", "--no-latency", "--json", "-", "-q", "--frame-sizes", "64"];
            let args = [&flags[..], &["--link", "10G", "--evidence", rule.name(), "--dut", dut.trim_end_matches(',')]];
            let (run, result) = Run::timed(|| linerate(&args.concat()));
            options.keep(&format!("{name} {}", rule.name()), n, &result);
            let trials = result["trials"].as_array().into_iter().flatten();
            let seconds = trials.filter_map(|trial| trial["real_duration_s"].as_f64()).sum();
            (Run { time: Duration::from_secs_f64(seconds), ..run }, capacity)
        };
        let runs: Vec<_> = (0..options.runs).map(run).collect();
        println!("| {name} | {} | {} |", rule.name(), runs::known(&runs));
    }
}

fn shaper(options: &Options, rate_bps: u64, bytes: u32, ms: u32, driver: &str) {
    let truth = rate_bps as f64 / 8.0 / f64::from(bytes);
    let name = format!("tbf {} Mbit/s, {bytes} B, {ms} ms, {driver}", rate_bps / 1_000_000);
    if !options.wants(&name) || !support::is_root() {
        return;
    }
    let dut = KernelDut::bridge();
    let limit = (rate_bps / 8 * u64::from(ms) / 1000).max(u64::from(bytes) * 4);
    dut.limit_egress(1, Tbf { rate_bps, burst: 3_200, limit: limit as _, overhead: 4 });
    let ports = [0, 1].map(|port| format!("eth:t{port},driver={driver}"));
    let (size, upper) = (bytes.to_string(), format!("{}pps", (truth * 3.0).round()));
    let flags = ["--port", &ports[0], "--port", &ports[1], "--frame-sizes", &size, "--upper", &upper];
    measure(options, &name, &flags, &|args| linerate_in(dut.tester(), args), &|_| truth);
}

/// The capacity of a data plane that is never idle, as its own runtime table has it: frames over clocks of all trials in a low
/// overload, without the time in which its core was away by its own account.
fn from_runtime(result: &Value) -> f64 {
    let hz = result["host"]["tsc_hz"].as_f64().expect("the rate of the TSC");
    let trials = || result["trials"].as_array().into_iter().flatten();
    // Refused where its receive ring is full.
    let lost = |trial: &Value| {
        let counts = &trial["directions"][0];
        Some(counts["lost"].as_u64()? + counts["refused"].as_u64()?)
    };
    let load = |trial: &Value| trial["spec"]["load_fps"].as_f64().expect("a load");
    let highest = trials().map(load).fold(0.0, f64::max);
    let overload = || trials().filter(|trial| lost(trial).is_some_and(|lost| lost > 1_000));
    let low = overload().any(|trial| load(trial) < highest);
    let (mut frames, mut seconds) = (0.0, 0.0);
    for trial in overload().filter(|trial| !low || load(trial) < highest) {
        let lcores = trial["interference"]["lcores"].as_array().into_iter().flatten();
        let gaps = lcores.filter(|lcore| lcore["role"] == "dut").filter_map(|lcore| lcore["total_gap_ns"].as_f64());
        frames += trial["dut"]["rx_frames"].as_f64().expect("frames of the device");
        seconds += trial["dut"]["busy_clocks"].as_f64().expect("its clocks") / hz - gaps.sum::<f64>() * 1e-9;
    }
    assert!(seconds > 0.0, "a trial in overload");
    frames / seconds
}

/// Runs a device by each rule and prints a row for each.
fn measure(
    options: &Options,
    name: &str,
    device: &[&str],
    run: &dyn Fn(&[&str]) -> Ended,
    truth: &dyn Fn(&Value) -> f64,
) {
    if !options.wants(name) {
        return;
    }
    let mut by: Vec<Vec<(Run, f64)>> = options.rules.iter().map(|_| Vec::new()).collect();
    for n in 0..options.runs {
        for (&rule, runs) in options.rules.iter().zip(&mut by) {
            let one = match rule {
                Rule::Package => package::search(device, run, &|| truth(&Value::Null)),
                _ => {
                    let flags = ["bench", "--quick", "--no-latency", "--json", "-", "-q", "--evidence", rule.name()];
                    let (run, result) = Run::timed(|| run(&[&flags[..], device].concat()));
                    options.keep(&format!("{name} {}", rule.name()), n, &result);
                    (run, truth(&result))
                }
            };
            runs.push(one);
        }
    }
    for (rule, runs) in options.rules.iter().zip(&by) {
        println!("| {name} | {} | {} |", rule.name(), runs::known(runs));
    }
}
