//! Speed as a ratio against a peer run in the same minute on the same kind of port: `make bench`.
//!
//! Rounds of peer, ours, peer, ours ...; medians are quoted, since these machines are shared. A two-core rate is quoted
//! for each placement of the cores by itself, since it follows the way between them up to threefold.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::BTreeMap,
    io::Write,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::Value;

const ROUNDS: usize = 7;
const LINERATE: &str = env!("CARGO_BIN_EXE_linerate");
/// Distinct 5-tuples, as testpmd's flowgen makes them by default.
const FLOWS: &str = "1024";

fn main() {
    // `cargo bench` passes flags of its own.
    let (mut flowgen, mut txonly, mut generator, mut looped) = (vec![], vec![], vec![], vec![]);
    let mut two_cores: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for round in 1..=ROUNDS {
        flowgen.push(testpmd("flowgen"));
        generator.push(generate());
        txonly.push(testpmd("txonly"));
        looped.push(selftest());
        let (ns, rate) = forwarded();
        two_cores.entry(if ns < 100.0 { "near (below 100 ns)" } else { "far (above 100 ns)" }).or_default().push(rate);
        eprintln!("round {round} of {ROUNDS}");
    }
    let hz = clock_hz();
    let row = |what: &str, rates: &mut Vec<f64>, against: Option<(&str, f64)>| {
        rates.sort_by(f64::total_cmp);
        let median = rates[rates.len() / 2];
        let ratio = against.map_or(String::new(), |(peer, rate)| format!("{:.2} of {peer}", median / rate));
        println!(
            "{what:<52} {:>7.1} {:>7.1} {:>7.1} {:>7.1}  {ratio}",
            rates[0] / 1e6,
            median / 1e6,
            rates[rates.len() - 1] / 1e6,
            hz / median
        );
        median
    };
    println!("{:<52} {:>7} {:>7} {:>7} {:>7}", "64-byte frames, Mpps", "min", "median", "max", "cycles");
    let peer = row("dpdk-testpmd flowgen, null port, one lcore", &mut flowgen, None);
    row("dpdk-testpmd txonly, null port, one lcore", &mut txonly, None);
    let ours = row("linerate generator, null port, one lcore", &mut generator, Some(("flowgen", peer)));
    row("linerate send, receive, check, looped wire, one lcore", &mut looped, Some(("the generator", ours)));
    for (placement, mut rates) in two_cores {
        let what = format!("linerate tester + l3 over wire, two lcores, {}", placement.split(' ').next().unwrap_or(""));
        row(&what, &mut rates, None);
    }
}

/// Ticks a second of this machine's clock, as a result has it.
fn clock_hz() -> f64 {
    linerate(&["trial", "--load", "1kpps", "--duration", "50ms", "--residual", "10ms", "--json", "-", "-q"])["host"]
        ["tsc_hz"]
        .as_f64()
        .unwrap()
}

fn linerate(args: &[&str]) -> Value {
    let output = Command::new(LINERATE).args(args).output().expect("linerate runs");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Frames a second that the generator puts into a null port: stamped, 5-tuples varied, checksums right.
fn generate() -> f64 {
    let null = "null,no-rx=1";
    let args = ["trial", "--port", null, "--port", null, "--load", "200Mpps", "--duration", "1s", "--residual", "10ms"];
    let result = linerate(&[&args[..], &["--flows", FLOWS, "--json", "-", "-q"]].concat());
    let trial = &result["trials"][0];
    trial["directions"][0]["sent"].as_f64().unwrap() / trial["real_duration_s"].as_f64().unwrap()
}

/// Frames a second that one lcore sends, receives and checks over a looped cable.
fn selftest() -> f64 {
    linerate(&["selftest", "--frame-sizes", "64", "--flows", FLOWS, "--json"])[0]["max_fps"].as_f64().unwrap()
}

/// What comes back of an overload through the built-in data plane, and the way between the two cores in ns.
fn forwarded() -> (f64, f64) {
    let args = [
        "trial",
        "--load",
        "80Mpps",
        "--duration",
        "300ms",
        "--residual",
        "20ms",
        "--flows",
        FLOWS,
        "--json",
        "-",
        "-q",
    ];
    let result = linerate(&args);
    let trial = &result["trials"][0];
    let rate = trial["directions"][0]["received"].as_f64().unwrap() / trial["real_duration_s"].as_f64().unwrap();
    (trial["interference"]["core_to_core_before_ns"].as_f64().unwrap_or(0.0), rate)
}

/// Frames a second of testpmd on one lcore into a null port, over a second after one to warm up.
fn testpmd(mode: &str) -> f64 {
    let prefix = format!("--file-prefix=lrbench{}", std::process::id());
    let mode = format!("--forward-mode={mode}");
    let eal =
        ["--lcores=0@0,1@1", "--no-pci", "--no-telemetry", "--in-memory", "-m", "256", "--vdev=net_null0,no-rx=1"];
    let app = ["--", "-i", "--nb-cores=1", "--burst=64", "--txd=2048", "--total-num-mbufs=32767", &mode];
    let mut child = Command::new("stdbuf")
        .args(["-oL", "dpdk-testpmd", &prefix])
        .args(eal)
        .args(app)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("dpdk-testpmd (apt-get install dpdk-dev)");
    let mut stdin = child.stdin.take().unwrap();
    for (line, wait_ms) in
        [("", 1500), ("start", 1000), ("show port stats 0", 1000), ("show port stats 0", 100), ("quit", 0)]
    {
        // It reads when it is up; what it prints is read at the end.
        let _ = writeln!(stdin, "{line}");
        std::thread::sleep(Duration::from_millis(wait_ms));
    }
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let rate = text.rsplit("Tx-pps:").next().and_then(|t| t.split_whitespace().next()).and_then(|t| t.parse().ok());
    rate.unwrap_or_else(|| panic!("no rate in {text}"))
}
