//! Round trips of our programs and of sockperf's in turn, over the same two ends of a veth pair and on the same CPUs.
//!
//! `cargo bench -p linerate --bench latency -- [rounds=N] [seconds=N] [only=TEXT]`. Root, sockperf and two CPUs. Medians of the rounds are
//! compared; the program ends with 1 where ours is worse by more than rounds of one program differ.

// A bench reports by panicking.
#![allow(missing_docs, clippy::panic, clippy::expect_used, clippy::unwrap_used)]

use std::{
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_linerate");
/// How much worse a median of rounds may be before it is said to be: what two halves of the rounds of one program differ by here.
const WORSE: [(f64, f64); 2] = [(50.0, 1.05), (99.0, 1.15)];

/// Two network namespaces joined by a veth pair.
struct Hosts([String; 2]);

impl Hosts {
    fn new() -> Self {
        let names = ["a", "b"].map(|end| format!("lrlat{}{end}", std::process::id()));
        let hosts = Self(names);
        for name in &hosts.0 {
            ip(&["netns", "add", name]);
        }
        let [a, b] = &hosts.0;
        ip(&["-n", a, "link", "add", "e0", "type", "veth", "peer", "name", "e0", "netns", b]);
        for (name, address) in [(a, "192.0.2.1/30"), (b, "192.0.2.2/30")] {
            ip(&["-n", name, "address", "add", address, "dev", "e0"]);
            ip(&["-n", name, "link", "set", "e0", "up"]);
        }
        thread::sleep(Duration::from_secs(1));
        hosts
    }

    fn command(&self, host: usize, cpu: &str, program: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[host], "taskset", "-c", cpu]).args(program);
        command
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

fn ip(args: &[&str]) {
    assert!(Command::new("ip").args(args).status().expect("ip runs").success(), "ip {args:?}");
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Median and 99th percentile of round trips, us.
type Figures = [f64; 2];

/// `None` of a round that was so slow that a percentile has too few samples beyond it.
fn ours(hosts: &Hosts, transport: &str, spin: bool, seconds: &str) -> Option<Figures> {
    let wait = if spin { "spin" } else { "block" };
    let server = [BINARY, "latency", transport, "--server", "192.0.2.2:11111", "--wait", wait];
    let client =
        [BINARY, "latency", transport, "192.0.2.2:11111", "--wait", wait, "--duration", seconds, "--json", "-"];
    let _server = Server(quiet(hosts.command(1, "0", &server)));
    thread::sleep(Duration::from_millis(500));
    let out = hosts.command(0, "1", &client).output().expect("linerate runs");
    let json: Value = serde_json::from_slice(&out.stdout).expect("a result");
    let of = |percent: f64| {
        let all = json["round_trip"]["percentiles"].as_array().expect("percentiles");
        Some(all.iter().find(|p| p["percent"] == percent)?["ns"].as_f64()? / 1e3)
    };
    Some([of(50.0)?, of(99.0)?])
}

fn theirs(hosts: &Hosts, transport: &str, spin: bool, seconds: &str) -> Figures {
    let tcp: &[&str] = if transport == "tcp" { &["--tcp"] } else { &[] };
    let wait: &[&str] = if spin { &["--nonblocked"] } else { &[] };
    let seconds = seconds.trim_end_matches('s');
    let server = [&["sockperf", "server", "-i", "192.0.2.2", "-p", "11112"][..], tcp, wait].concat();
    let client = [
        &["sockperf", "ping-pong", "-i", "192.0.2.2", "-p", "11112", "-t", seconds, "-m", "14", "--full-rtt"][..],
        tcp,
        wait,
    ]
    .concat();
    let _server = Server(quiet(hosts.command(1, "0", &server)));
    thread::sleep(Duration::from_millis(500));
    let out = hosts.command(0, "1", &client).output().expect("sockperf runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let of = |percent: &str| {
        let line = text.lines().find(|line| line.contains(percent)).unwrap_or_else(|| panic!("{text}"));
        line.rsplit('=').next().and_then(|us| us.trim().parse().ok()).unwrap_or_else(|| panic!("{line}"))
    };
    [of("percentile 50.000"), of("percentile 99.000")]
}

fn quiet(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a server starts")
}

fn main() {
    let asked = |name: &str| std::env::args().find_map(|arg| arg.strip_prefix(name).map(str::to_owned));
    let rounds: usize = asked("rounds=").and_then(|n| n.parse().ok()).unwrap_or(7);
    let seconds = format!("{}s", asked("seconds=").unwrap_or_else(|| "3".to_owned()));
    let only = asked("only=").unwrap_or_default();
    let hosts = Hosts::new();
    let mut worse = false;
    println!(
        "{:<14} {:>5} {:>10} {:>10} {:>7}   (us, medians of {rounds} rounds, the ratio of pairs; least to most)",
        "", "", "linerate", "sockperf", "ratio"
    );
    for transport in ["udp", "tcp"] {
        for spin in [false, true] {
            let name = format!("{transport} {}", if spin { "spinning" } else { "blocking" });
            if !name.contains(&only) {
                continue;
            }
            let mut pairs: Vec<[Figures; 2]> = Vec::new();
            for round in 0..rounds {
                // Whoever is second finds the machine as the first one left it: they take turns in that, too.
                let before = (round % 2 == 1).then(|| theirs(&hosts, transport, spin, &seconds));
                let own = ours(&hosts, transport, spin, &seconds);
                let other = before.unwrap_or_else(|| theirs(&hosts, transport, spin, &seconds));
                pairs.extend(own.map(|own| [own, other]));
            }
            if pairs.len() < rounds {
                println!("{name:<14} {} of {rounds} rounds had too few round trips: left out", rounds - pairs.len());
            }
            if pairs.is_empty() {
                continue;
            }
            let sorted = |of: &dyn Fn(&[Figures; 2]) -> f64| {
                let mut all: Vec<f64> = pairs.iter().map(of).collect();
                all.sort_by(f64::total_cmp);
                all
            };
            for (n, (percent, most)) in WORSE.iter().enumerate() {
                let [own, other] = [0, 1].map(|who: usize| sorted(&|pair| pair[who][n]));
                // Of two that were measured one after the other: the machine drifts from minute to minute.
                let ratios = sorted(&|pair| pair[0][n] / pair[1][n]);
                let middle = pairs.len() / 2;
                let range = |all: &[f64]| format!("{:.2} to {:.2}", all[0], all[all.len() - 1]);
                println!(
                    "{name:<14} p{percent:<4} {:>10.2} {:>10.2} {:>7.3}   {} against {}; ratios {}",
                    own[middle],
                    other[middle],
                    ratios[middle],
                    range(&own),
                    range(&other),
                    range(&ratios)
                );
                worse |= ratios[middle] > *most;
            }
        }
    }
    drop(hosts);
    if worse {
        println!("worse than sockperf by more than rounds differ");
        std::process::exit(1);
    }
}
