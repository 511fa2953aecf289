//! Labs: how long each takes to come up and go, what each forwards, and the chain of two guests against the same chain wired
//! by hand.
//!
//! `cargo bench -p linerate --bench lab -- [topologies] [chain] [rounds=N] [emulated] [only=TEXT]`; without a name, both run.
//! `emulated` adds the labs with virtual machines, `only` leaves out labs without that text. Real ports, Open vSwitch and kernels:
//! root, 1,121 hugepages of 2 MiB for the twelve flow loggers (512 for the others).

// A bench reports by panicking.
#![allow(missing_docs, clippy::panic, clippy::expect_used, clippy::unwrap_used)]

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use measure::plan::Plan;
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_linerate");

/// The lab that is up while this lives.
struct Up(String);

impl Up {
    fn new(flags: &[&str]) -> (Self, Duration) {
        let name = format!("bench{}", std::process::id());
        let begun = Instant::now();
        linerate(&[&["lab", "up"], flags, &["--name", &name]].concat());
        (Self(name), begun.elapsed())
    }

    fn down(self) -> Duration {
        let begun = Instant::now();
        drop(self);
        begun.elapsed()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = Command::new(BINARY).args(["lab", "down", &self.0]).stdout(Stdio::null()).status();
    }
}

fn linerate(args: &[&str]) -> String {
    let out = Command::new(BINARY).args(args).output().expect("linerate runs");
    assert!(
        matches!(out.status.code(), Some(0 | 1 | 3)),
        "{args:?}: {}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Frames a second that come through when more is sent than that.
fn forwarded(result: &Value) -> f64 {
    let trial = &result["trials"][0];
    let seconds = trial["real_duration_s"].as_f64().unwrap_or(f64::NAN);
    let received = trial["directions"].as_array().into_iter().flatten().filter_map(|d| d["received"].as_f64());
    received.sum::<f64>() / seconds
}

const OVERLOAD: [&str; 6] = ["--load", "20Mpps", "--duration", "1s", "--json", "-"];
const SIXTY_FOUR: [&str; 2] = ["--frame-size", "64"];

fn overload(lab: &Up, traffic: &[String]) -> f64 {
    let traffic: Vec<&str> = traffic.iter().map(String::as_str).collect();
    let text = linerate(&[&["trial", "--lab", &lab.0, "-q"], &OVERLOAD[..], &traffic].concat());
    forwarded(&serde_json::from_str(&text).expect("a result"))
}

/// Frames of 64 B: one flow, or one for each way of ports side by side.
fn plain(flows: &str) -> Vec<String> {
    SIXTY_FOUR.iter().copied().chain(["--flows", flows]).map(str::to_owned).collect()
}

/// Frames of 114 B in a tunnel, 64 B inside: those of the plan of the ONP 2.1 report.
fn tunnelled() -> Vec<String> {
    let plan = Plan::from_toml(include_str!("../../../plans/onp-vxlan.toml")).expect("a plan");
    let mut flags: Vec<String> =
        ["--frame-size", "114", "--src-ip", "2.2.2.2", "--dst-ip", "2.2.2.1", "--dst-port", "4789"]
            .map(str::to_owned)
            .into();
    for field in plan.traffic.field {
        flags.extend(["--field".to_owned(), format!("{}:mask:{}", field.field, field.mask.expect("a mask"))]);
    }
    flags
}

/// What a command prints, whatever it ends with.
fn printed(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).stdin(Stdio::null()).output().expect("a shell runs");
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// The same chain, wired by the commands that `lab show --script` prints, as a user would paste them.
fn by_hand(topology: &str) -> f64 {
    let script = linerate(&["lab", "show", topology, "--guests", "process", "--script"]);
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), script).expect("the script");
    let up = printed("sh", &[&file.path().to_string_lossy()]);
    let said = |after: &str| up.lines().skip_while(|line| *line != after).nth(1).expect("how to measure and end");
    let ports = said("# Measure:").split_once(" --port").expect("ports").1.replace(" --evidence whole-trial", "");
    let ports = format!("--port{ports}");
    let trial = [&["trial", "-q"][..], &OVERLOAD, &SIXTY_FOUR, &ports.split(' ').collect::<Vec<_>>()].concat();
    // It ends whatever comes of it.
    let out = Command::new(BINARY).args(trial).output();
    printed("sh", &["-c", said("# End:")]);
    let out = out.expect("linerate runs");
    let result = serde_json::from_slice(&out.stdout);
    forwarded(&result.unwrap_or_else(|_| panic!("no result: {}", String::from_utf8_lossy(&out.stderr))))
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn topologies(rounds: usize, emulated: bool, only: &str) {
    let process = ["--guests", "process"];
    // A second polling thread of the switch takes a third CPU: the tester has one.
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let two: &[&str] = if cpus > 2 { &["--queues", "2", "--pmds", "2"] } else { &["--queues", "2"] };
    let lab = |name: &str, flags: &[&[&str]], traffic: Vec<String>| -> (Vec<String>, Vec<String>) {
        let flags = flags.concat();
        (std::iter::once(name).chain(flags).map(str::to_owned).collect(), traffic)
    };
    let mut labs = vec![
        lab("phy-phy", &[], plain("1")),
        lab("phy-ovs-phy", &[], plain("1")),
        lab("phy-ovs-phy", &[two], plain("1")),
        lab("phy-vm-phy", &[&process], plain("1")),
        lab("phy-vm-phy", &[&process, two], plain("1")),
        lab("phy-vm-phy", &[&process, &["--application", "l2"]], plain("1")),
        lab("phy-vm-vm-phy", &[&process], plain("1")),
        lab("phy-vm-vm-phy", &[&process, two], plain("1")),
        lab("phy-vm-vm-phy", &[&process, &["--application", "l3"]], plain("1")),
        lab("vxlan", &[&process], tunnelled()),
        lab("vxlan-forward", &[], plain("1")),
        lab("onp-40g-scenario-1", &[&process], plain("4")),
        lab("onp-40g-scenario-2", &[&process], plain("4")),
        lab("onp-40g-scenario-3", &[&process], plain("1")),
        lab("flow-loggers-12", &[], plain("12")),
        lab("kernel-bridge", &[], plain("1")),
        lab("kernel-router", &[], plain("1")),
    ];
    if emulated {
        labs.push(lab("phy-vm-phy", &[&["--guests", "tcg"]], plain("1")));
        labs.push(lab("phy-vm-vm-phy", &[&["--guests", "tcg", "--application", "l3"]], plain("1")));
        labs.push(lab("ovs-kernel", &[&["--kernel-in", "vm"]], plain("1")));
    }
    println!("{:<58} {:>7} {:>7} {:>24}", "lab", "up s", "down s", "forwards, Mpps (range)");
    for (flags, traffic) in labs {
        if !only.is_empty() && !flags.join(" ").contains(only) {
            continue;
        }
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let (mut up, mut down, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (lab, took) = Up::new(&flags);
            up.push(took.as_secs_f64());
            rates.push(overload(&lab, &traffic) / 1e6);
            down.push(lab.down().as_secs_f64());
        }
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        println!(
            "{:<58} {:>7.2} {:>7.2} {:>10.3} ({least:.3} to {most:.3})",
            flags.join(" "),
            median(up),
            median(down),
            median(rates)
        );
    }
}

fn chain(rounds: usize) {
    println!(
        "\nphy-vm-vm-phy, guests as processes, 64 B, overload: the lab against the same chain wired by hand, in turn"
    );
    let mut ratios = Vec::new();
    for _ in 0..rounds {
        let (lab, _) = Up::new(&["phy-vm-vm-phy", "--guests", "process"]);
        let ours = overload(&lab, &plain("1"));
        drop(lab);
        let theirs = by_hand("phy-vm-vm-phy");
        println!("  {:.3} Mpps, by hand {:.3} Mpps: {:.3}", ours / 1e6, theirs / 1e6, ours / theirs);
        ratios.push(ours / theirs);
    }
    println!("  median {:.3} (wanted: 0.9 or more)", median(ratios));
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let asked = |name: &str| args.iter().any(|arg| arg == name);
    let rounds = args.iter().find_map(|arg| arg.strip_prefix("rounds=")?.parse().ok()).unwrap_or(5);
    let all = !asked("topologies") && !asked("chain");
    if all || asked("topologies") {
        let only = args.iter().find_map(|arg| arg.strip_prefix("only=")).unwrap_or_default();
        topologies(rounds, asked("emulated"), only);
    }
    if all || asked("chain") {
        chain(rounds);
    }
}
