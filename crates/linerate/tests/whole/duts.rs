//! Real systems under test, measured as a user measures them; their own counters agree with ours.

#![allow(clippy::unwrap_used)]

use crate::support;

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{
    exclusive, require,
    tester::{
        ended, linerate, linerate_in, others_take_cpus, size_of, start, total, until_trusted_unless_busy, Ended, BINARY,
    },
    wait_until,
    words::{lines_with, CAME_BACK, LINK_WENT_DOWN},
    KernelDut, Memory, Needs, Netns, OvsDpdk, Tbf, Testpmd,
};

/// Learning frames each port sends before a trial.
const LEARNING: u64 = 8;

/// A trial's result, trusted or not: counts hold either way.
#[track_caller]
fn counted(ended: &Ended) -> Value {
    assert!(matches!(ended.code, 0 | 3), "{} {}", ended.code, ended.stderr);
    let result = ended.json();
    for d in result["trials"][0]["directions"].as_array().unwrap() {
        let n = |field: &str| d[field].as_u64().unwrap();
        assert_eq!(n("intended"), n("sent") + n("refused") + n("skipped"), "{d}");
        assert_eq!(n("sent"), n("received") + n("lost"), "{d}");
    }
    result
}

fn trial(ports: [&str; 2], more: &[&str]) -> Ended {
    let mut args = vec!["trial", "--port", ports[0], "--port", ports[1], "--duration", "500ms", "--residual", "300ms"];
    args.extend(["--json", "-", "-q", "--tester-cpu", "1"]);
    args.extend(more);
    linerate(&args)
}

/// A quick search at one size below `upper`, until it can be trusted. `None` where other programs take the CPUs of a device that
/// polls: it works in turns then, and the run has to say that nothing was shown.
#[track_caller]
fn bench(busy: bool, ports: [&str; 2], upper: &str, more: &[&str]) -> Option<Value> {
    let mut args =
        vec!["bench", "--quick", "--port", ports[0], "--port", ports[1], "--upper", upper, "--frame-sizes", "64"];
    args.extend(["--precision", "5%", "--json", "-", "-q", "--tester-cpu", "1"]);
    args.extend(more);
    match until_trusted_unless_busy(8, busy, || linerate(&args)) {
        Ok(ended) => {
            assert_eq!(ended.code, 0, "{}", ended.stderr);
            Some(ended.json())
        }
        Err(last) => {
            let result = last.json();
            let size = size_of(&result, 64);
            assert!(size["diagnosis"].as_str().is_some_and(|why| !why.is_empty()), "{size}");
            None
        }
    }
}

#[test]
fn testpmd_over_memif_agrees_with_us() {
    require(&[Needs::Testpmd]);
    let _machine = exclusive();
    let busy = others_take_cpus();
    let mut dut = Testpmd::memif(Memory::NoHuge);
    let [a, b] = [0, 1].map(|n| format!("memif:{}", dut.socket(n).display()));
    let ports = [a.as_str(), b.as_str()];

    // A memif port's counters go with its connection, so they are read while it stands: in the rest after a trial.
    let dir = tempfile::tempdir().unwrap();
    let (plan, json) = (dir.path().join("plan.toml"), dir.path().join("r.json"));
    let one_trial = "[search]\nupper = '200kpps'\nmax_trials = 1\nduration = '500ms'\n[latency]\nenabled = false\n";
    let rest = "[trust]\nready_timeout = '0s'\nsettle = '2s'\nresidual = '300ms'\nselftest = false\n";
    std::fs::write(&plan, format!("frame_sizes = [64]\n{one_trial}{rest}")).unwrap();
    let args =
        ["bench", "--plan", plan.to_str().unwrap(), "--port", &a, "--port", &b, "--both-ways", "--flows", "1000"];
    let args = [&args[..], &["--tester-cpu", "1", "-q", "--json", json.to_str().unwrap()]].concat();
    let mut run = start(&args, None, &dir.path().join("log"));
    let (mut rx, mut tx) = (0, 0);
    while run.alive() {
        let now = dut.counters();
        rx = rx.max(now.iter().map(|c| c.rx_packets).sum());
        tx = tx.max(now.iter().map(|c| c.tx_packets).sum());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(json.exists(), "{}", run.output());
    let result: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(result["trials"].as_array().unwrap().len(), 1);
    let departures = result["sizes"][0]["standard"]["departures"].as_array().unwrap();
    let departures: Vec<_> = departures.iter().filter_map(Value::as_str).collect();
    insta::assert_snapshot!(lines_with(&departures.join("\n"), &["learning"]));
    // Everything we say the ports took, and the learning frames of both; nothing else was ever sent.
    assert_eq!(rx, total(&result, "sent") + 2 * LEARNING, "{result}");
    // What it sent on either came back to us as ours or was a learning frame, which a trial throws away.
    assert!(tx >= total(&result, "received"), "{tx} {result}");
    assert!(tx <= total(&result, "received") + total(&result, "lost") + 2 * LEARNING, "{tx} {result}");

    for attempt in 1.. {
        let Some(result) = bench(busy, ports, "300kpps", &["--latency-duration", "100ms"]) else { return };
        let answer = size_of(&result, 64);
        assert!(answer["throughput_fps"].as_f64().unwrap() > 10e3, "{answer}");
        if let Some(p50) = answer["at_throughput"][0]["latency"]["p50_ns"].as_u64() {
            assert!(p50 > 0, "{answer}");
            break;
        }
        // Every latency trial of that run was disturbed, and it says so.
        assert!(answer["diagnosis"].as_str().is_some_and(|text| !text.is_empty()), "{answer}");
        assert!(attempt < 8, "{answer}");
    }
}

#[test]
fn testpmd_over_vhost_user_agrees_with_us() {
    require(&[Needs::Testpmd]);
    let _machine = exclusive();
    // It serves, we connect; then we serve, it connects.
    let mut dut = Testpmd::vhost_server(Memory::NoHuge);
    let [a, b] = [0, 1].map(|n| format!("virtio:{}", dut.socket(n).display()));
    let result = counted(&trial([&a, &b], &["--load", "100kpps"]));
    let rx: u64 = dut.counters().iter().map(|c| c.rx_packets).sum();
    assert_eq!(rx, total(&result, "sent") + 2 * LEARNING, "{result}");
    assert!(total(&result, "received") > 10_000, "{result}");
    drop(dut);

    let mut dut = Testpmd::vhost_client(Memory::NoHuge);
    let [a, b] = [0, 1].map(|n| format!("virtio:{},server=1,queue_size=1024", dut.socket(n).display()));
    let result = counted(&trial([&a, &b], &["--load", "100kpps"]));
    let rx: u64 = dut.counters().iter().map(|c| c.rx_packets).sum();
    assert_eq!(rx, total(&result, "sent") + 2 * LEARNING, "{result}");
    assert!(total(&result, "received") > 10_000, "{result}");
}

#[test]
fn a_frozen_dut_is_not_excused_and_a_dead_one_is_named() {
    require(&[Needs::Testpmd]);
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    let read = |output: &str| -> Value {
        let text = std::fs::read(&json).unwrap_or_else(|e| panic!("{e}: {output}"));
        serde_json::from_slice(&text).unwrap()
    };
    // A trial whose DUT dies says so, whatever else it says.
    let mut dying = Testpmd::memif(Memory::NoHuge);
    let [p, q] = [0, 1].map(|n| format!("memif:{}", dying.socket(n).display()));
    let died =
        ["trial", "--port", &p, "--port", &q, "--load", "50kpps", "--duration", "5s", "--residual", "100ms", "-q"];
    let mut run = start(&died, None, &dir.path().join("log"));
    std::thread::sleep(Duration::from_millis(2500));
    dying.process().signal("KILL");
    let status = run.wait_end(Duration::from_secs(30)).unwrap();
    assert_eq!(status.code(), Some(1), "{}", run.output());
    assert!(run.output().contains(LINK_WENT_DOWN), "{}", run.output());
    drop(dying);

    // 60 ms of 200 kpps do not fit its rings: frames are lost or refused, and no gap of ours explains them. It is
    // frozen again and again while the run lasts, so that sending is hit whenever it happens.
    for attempt in 1.. {
        let _ = std::fs::remove_file(&json);
        // A new device each time: testpmd's memif (DPDK 22.11) crashes now and then when its tester hangs up while it waits
        // for its CPU.
        let mut dut = Testpmd::memif(Memory::NoHuge);
        let [a, b] = [0, 1].map(|n| format!("memif:{}", dut.socket(n).display()));
        let args =
            ["trial", "--port", &a, "--port", &b, "--load", "200kpps", "--duration", "200ms", "--residual", "100ms"];
        // Beside other work a tester without it offers half of the load.
        let args = [&args[..], &["--realtime", "on", "--tester-cpu", "1", "--json", json.to_str().unwrap()]].concat();
        let mut run = start(&args, None, &dir.path().join("log"));
        while run.alive() {
            dut.process().freeze_for(Duration::from_millis(60));
            std::thread::sleep(Duration::from_millis(90));
        }
        let status = run.wait_end(Duration::from_secs(30)).unwrap();
        let result = read(&run.output());
        let trial = &result["trials"][0];
        let lost = total(&result, "lost") + total(&result, "refused");
        assert!(lost > 500, "{status:?} {trial}");
        let violations = trial["violations"].as_array().unwrap();
        if violations.is_empty() {
            assert_eq!(status.code(), Some(0), "{}", run.output());
            break;
        }
        // This machine took the tester's core away as well in that moment; that is another trial.
        assert!(attempt < 60, "no undisturbed trial: {violations:?}");
    }

    // Killed in the middle of a search: one line, exit code 1, trials so far kept.
    let dut = Testpmd::memif(Memory::NoHuge);
    let [a, b] = [0, 1].map(|n| format!("memif:{}", dut.socket(n).display()));
    let args = [
        "bench",
        "--port",
        &a,
        "--port",
        &b,
        "--upper",
        "200kpps",
        "--frame-sizes",
        "64",
        "--duration",
        "6s",
        "--precision",
        "0.1%",
        "--tester-cpu",
        "1",
        "--json",
        json.to_str().unwrap(),
    ];
    let plan = dir.path().join("plan.toml");
    std::fs::write(&plan, "[trust]\nsettle = '10ms'\nresidual = '100ms'\n[search]\nlower = '150kpps'\n").unwrap();
    let mut args = args.to_vec();
    args.extend(["--plan", plan.to_str().unwrap()]);
    std::fs::remove_file(&json).unwrap();
    let mut run = start(&args, None, &dir.path().join("log"));
    std::thread::sleep(Duration::from_millis(2500));
    drop(dut);
    let status = run.wait_end(Duration::from_secs(60)).unwrap();
    let output = run.output();
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(output.contains(LINK_WENT_DOWN) || output.contains(CAME_BACK), "{output}");
    assert!(!read(&output)["trials"].as_array().unwrap().is_empty());
}

#[test]
fn ovs_dpdk_agrees_with_us() {
    require(&[Needs::Root, Needs::OvsDpdk, Needs::Hugepages(256)]);
    let _machine = exclusive();
    let busy = others_take_cpus();
    let dut = OvsDpdk::bring_up();
    let [a, b] = [0, 1].map(|n| format!("virtio:{},server=1,queue_size=1024", dut.socket(n).display()));
    // OVS sets a port up some time after its first peer connected. Until then it drops what is for that port, uncounted,
    // and then its counters start again.
    counted(&trial([&a, &b], &["--load", "1kpps", "--both-ways"]));
    let before = dut.counters();
    let result = counted(&trial([&a, &b], &["--load", "200kpps", "--both-ways"]));
    let after = dut.counters();
    let rx: u64 = (0..2).map(|n| after.received[n] - before.received[n]).sum();
    let dropped: u64 = (0..2).map(|n| after.tx_dropped[n] - before.tx_dropped[n]).sum();
    assert_eq!(rx, total(&result, "sent") + 2 * LEARNING, "{after:?} {result}");
    // What it took in it handed over or says that it dropped; learning frames may be among these.
    let missing = total(&result, "lost");
    assert!(dropped.abs_diff(missing) <= 2 * LEARNING, "{missing} are missing, from {before:?} to {after:?}: {result}");
    assert!(total(&result, "received") > 20_000, "{result}");

    if let Some(result) = bench(busy, [&a, &b], "300kpps", &["--flows", "100"]) {
        let answer = size_of(&result, 64);
        assert!(answer["throughput_fps"].as_f64().unwrap() > 10e3, "{answer}");
    }
}

#[test]
fn a_reset_of_ovs_is_seen_from_its_last_frame_to_its_first() {
    require(&[Needs::Root, Needs::OvsDpdk, Needs::Network, Needs::Hugepages(256)]);
    let _machine = exclusive();
    let busy = others_take_cpus();
    let dir = tempfile::tempdir().unwrap();
    let [asked, plan, json] = ["asked", "plan.toml", "result.json"].map(|name| dir.path().join(name));
    let text = format!(
        "tests = ['reset']\nframe_sizes = [64]\nthroughput = '5kpps'\n[trust]\nsettle = '10ms'\nresidual = '300ms'\n\
         offered_tolerance = '2%'\nmax_repeats = 3\n\
         [reset]\ncommand = ['touch', '{}']\nat = '1s'\nduration = '6s'\n",
        asked.display()
    );
    std::fs::write(&plan, text).unwrap();
    let tester = Netns::new();
    let mut dut = OvsDpdk::between_veth(&tester);
    let args = ["bench", "--plan", plan.to_str().unwrap(), "--port", "eth:t0", "--port", "eth:t1"];
    let args = [&args[..], &["--tester-cpu", "1", "-q", "--json", json.to_str().unwrap()]].concat();
    // Each event is a restart of the switch. An invalid trial is repeated; a run with too many of them is repeated, too.
    for tries_left in (0..if busy { 2 } else { 4 }).rev() {
        let mut run = start(&args, Some(&tester), &dir.path().join("log"));
        let until = Instant::now() + Duration::from_secs(120);
        while run.alive() && Instant::now() < until {
            if std::fs::remove_file(&asked).is_ok() {
                dut.restart();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let code = run.wait_end(Duration::from_secs(10)).unwrap().code();
        if code == Some(0) {
            break;
        }
        assert_eq!(code, Some(3), "{}", run.output());
        if tries_left == 0 {
            assert!(busy, "no run is trusted: {}", run.output());
            // Nothing is claimed then, and why.
            let result: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
            assert!(result["tests"][0]["reason"].as_str().is_some_and(|why| !why.is_empty()), "{}", result["tests"]);
            return;
        }
    }
    let result: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let reset = &result["tests"][0]["found"]["reset"]["trials"][0];
    let seconds = |way: &str| reset[way].as_f64().unwrap_or_else(|| panic!("no {way} in {reset}"));
    let (by_loss, by_time) = (seconds("by_loss_s"), seconds("by_timestamps_s"));
    assert!(by_loss > 0.05 && by_loss < 5.5, "{reset}");
    // Frames that were on their way are lost beside the run of the outage, or come late.
    assert!((by_loss - by_time).abs() < 0.2 * by_loss + 0.1, "{reset}");
    assert!(reset["command"].as_str().unwrap().starts_with("exit status: 0"), "{reset}");
}

#[test]
fn ovs_recovers_from_an_overload() {
    require(&[Needs::Root, Needs::OvsDpdk, Needs::Hugepages(256)]);
    let _machine = exclusive();
    let busy = others_take_cpus();
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plan.toml");
    let text = "tests = ['recovery']\nframe_sizes = [64]\n\
                [search]\nupper = '300kpps'\nduration = '50ms'\nprecision = '5%'\nmax_trials = 300\n\
                [recovery]\noverload = '100ms'\noverload_percent = 150.0\nwatch = '100ms'\nrepetitions = 3\n\
                [trust]\nsettle = '5ms'\nresidual = '50ms'\nmax_repeats = 40\noffered_tolerance = '0.5%'\nselftest = false\n";
    std::fs::write(&plan, text).unwrap();
    let dut = OvsDpdk::bring_up();
    dut.limit(100_000, 300);
    let [a, b] = [0, 1].map(|n| format!("virtio:{},server=1,queue_size=1024", dut.socket(n).display()));
    let args = ["bench", "--plan", plan.to_str().unwrap(), "--port", &a, "--port", &b, "--tester-cpu", "1"];
    // Before whatever else wants the tester's core: trials are far shorter than what the kernel leaves to others then.
    let mut tester = Command::new("chrt");
    tester.args(["-f", "1", BINARY]).args(args).args(["--json", "-", "-q"]);
    let until = Instant::now() + Duration::from_secs(if busy { 50 } else { 150 });
    loop {
        let ended = ended(&tester.output().unwrap());
        let result = ended.json();
        let answer = &result["tests"][0];
        let found = &answer["found"]["recovery"];
        let trials = found["trials"].as_array().map_or(&[][..], |t| t);
        let overloaded = !trials.is_empty() && trials.iter().all(|t| t["lost"].as_u64().unwrap() > 0);
        if ended.code != 0 || answer["outcome"] != "done" || !overloaded {
            // Tester or switch were away too often: the run says so, and another is made.
            assert!(matches!(ended.code, 0 | 1 | 3), "{}", ended.stderr);
            assert!(answer["reason"].as_str().is_some_and(|r| !r.is_empty()), "{answer}");
            if Instant::now() < until {
                continue;
            }
            assert!(busy, "no run shows a recovery, the last: {answer}");
            return;
        }
        let fps = |name: &str| found[name].as_f64().unwrap();
        let (throughput, overload, after) = (fps("throughput_fps"), fps("overload_fps"), fps("after_fps"));
        // The meter lets 100 kpps through, and what it has saved up: 300 frames.
        assert!(throughput <= 107e3, "{answer}");
        assert!((overload / throughput - 1.5).abs() < 1e-9 && (overload / after - 2.0).abs() < 1e-9, "{answer}");
        assert_eq!((trials.len(), &found["recovery_s"]["n"]), (3, &3.into()), "{answer}");
        // It forwards the lower load at once, or when the machine lets it, and did before the end.
        assert!(trials.iter().all(|t| (0.0..0.1).contains(&t["recovery_s"].as_f64().unwrap())), "{answer}");
        let departures = answer["standard"]["departures"].as_array().unwrap();
        let departures: Vec<_> = departures.iter().filter_map(Value::as_str).collect();
        insta::assert_snapshot!(lines_with(&departures.join("\n"), &["overload"]));
        return;
    }
}

#[test]
fn the_kernel_bridge_and_router_agree_with_us() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let args = |more: &[&'static str]| -> Vec<&'static str> {
        let mut args =
            vec!["trial", "--port", "eth:t0", "--port", "eth:t1", "--duration", "500ms", "--residual", "300ms"];
        args.extend(["--json", "-", "-q", "--load", "20kpps"]);
        args.extend(more);
        args
    };
    let dut = KernelDut::bridge();
    for more in [&["--both-ways"][..], &["--frame-size", "1518"], &["--ip", "v6", "--frame-size", "128"]] {
        let before = [dut.counters(0), dut.counters(1)];
        let ended = linerate_in(dut.tester(), &args(more));
        let result = counted(&ended);
        let after = [dut.counters(0), dut.counters(1)];
        let rx: u64 = (0..2).map(|n| after[n].rx_packets - before[n].rx_packets).sum();
        // The kernel took in what our ports say they sent, plus learning frames.
        assert_eq!(rx, total(&result, "sent") + 2 * LEARNING, "{more:?} {result}");
        assert!(total(&result, "received") > 3_000, "{more:?} {result}");
        assert_eq!(total(&result, "duplicates"), 0);
    }
    // Down from the start: named before anything is measured.
    dut.set_link(1, false);
    let mut down = args(&[]);
    down.extend(["--link-wait", "300ms"]);
    let ended = linerate_in(dut.tester(), &down);
    assert_eq!(ended.code, 4, "{}", ended.stderr);
    insta::assert_snapshot!("a_link_that_is_down", ended.stderr);
    dut.set_link(1, true);

    // Down in the middle: one line, exit code 1, the trials so far kept.
    let dir = tempfile::tempdir().unwrap();
    let (plan, json) = (dir.path().join("plan.toml"), dir.path().join("r.json"));
    std::fs::write(&plan, "[trust]\nsettle = '10ms'\nresidual = '100ms'\nselftest = false\n").unwrap();
    let bench =
        ["bench", "--plan", plan.to_str().unwrap(), "--port", "eth:t0", "--port", "eth:t1", "--upper", "20kpps"];
    let more = ["--duration", "6s", "--frame-sizes", "64,128", "--no-latency", "--json", json.to_str().unwrap()];
    let mut run = start(&[&bench[..], &more].concat(), Some(dut.tester()), &dir.path().join("log"));
    std::thread::sleep(Duration::from_millis(3500));
    dut.set_link(1, false);
    let status = run.wait_end(Duration::from_secs(60)).unwrap();
    let output = run.output();
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(output.contains(&format!("eth:t1{LINK_WENT_DOWN}")), "{output}");
    let result: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert!(!result["trials"].as_array().unwrap().is_empty());
    drop(dut);

    let dut = KernelDut::router();
    let macs = format!("{},{}", KernelDut::dut_mac(0), KernelDut::dut_mac(1));
    for ip in ["v4", "v6"] {
        let mut all: Vec<&str> = args(&["--frame-size", "128", "--both-ways"]);
        all.extend(["--ip", ip, "--dst-mac", &macs]);
        let result = counted(&linerate_in(dut.tester(), &all));
        assert!(total(&result, "received") > 3_000, "{ip}: {result}");
    }
}

#[test]
fn a_tbf_rate_is_found_within_two_percent() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let busy = others_take_cpus();
    let dut = KernelDut::bridge();
    // 10 Mbit/s of 512-byte frames, FCS counted: 2441.4 frames a second.
    dut.limit_egress(1, Tbf { rate_bps: 10_000_000, burst: 3_200, limit: 8_000, overhead: 4 });
    let plan = tempfile::NamedTempFile::new().unwrap();
    let trust = "settle = '10ms'\nresidual = '200ms'\nmax_gap = '20ms'\noffered_tolerance = '0.5%'";
    std::fs::write(&plan, format!("[search]\ntimeout = '3m'\n[trust]\n{trust}\n")).unwrap();
    let args = [
        "bench",
        "--plan",
        plan.path().to_str().unwrap(),
        "--port",
        "eth:t0",
        "--port",
        "eth:t1",
        "--frame-sizes",
        "512",
        "--upper",
        "10kpps",
        "--duration",
        "1500ms",
        "--precision",
        "0.5%",
        "--max-repeats",
        "20",
        "--no-latency",
        "--json",
        "-",
        "-q",
    ];
    let want = 10e6 / (512.0 * 8.0);
    let ended = match until_trusted_unless_busy(3, busy, || linerate_in(dut.tester(), &args)) {
        Ok(ended) => ended,
        Err(last) => {
            // Whatever the tester was away, what it shows of the shaper holds the truth.
            let result = last.json();
            let answer = &size_of(&result, 512)["answer"];
            let [low, high] = ["lower_fps", "upper_fps"].map(|end| answer["as_measured"][end].as_f64());
            let holds = low.is_none_or(|low| low < want * 1.02) && high.is_none_or(|high| high > want * 0.98);
            assert!(holds && (low.is_some() || high.is_some()), "{answer}");
            return;
        }
    };
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let result = ended.json();
    let answer = size_of(&result, 512);
    let found = answer["throughput_fps"].as_f64().unwrap();
    assert!((found / want - 1.0).abs() < 0.02, "found {found}, set {want}: {answer}");
    assert!(dut.limit_drops(1) > 0);
}

/// Small frames: the shaper's timers keep the tester in its calls, so that nothing is lost; and a bucket that hides for a while what
/// the shaper sustains.
#[test]
fn a_shaper_that_holds_the_testers_calls_is_found_with_its_bucket() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let others = others_take_cpus();
    let dut = KernelDut::bridge();
    let want = 131e6 / (256.0 * 8.0);
    for (burst, method) in [(3_200, "rfc2544"), (64_000, "rfc2544"), (64_000, "tst009"), (3_200, "mlrsearch")] {
        dut.limit_egress(1, Tbf { rate_bps: 131_000_000, burst, limit: 820_000, overhead: 4 });
        let ports = ["eth:t0,driver=af_xdp", "eth:t1,driver=af_xdp"];
        let bench = ["bench", "--quick", "--port", ports[0], "--port", ports[1], "--frame-sizes", "256"];
        let more = ["--method", method, "--upper", "192kpps", "--no-latency", "--json", "-", "-q"];
        // Each answer is true. Where the host took the tester away for a while it may be wide, but not always.
        let found = |_| {
            let ended = linerate_in(dut.tester(), &[&bench[..], &more].concat());
            let result = ended.json();
            let size = size_of(&result, 256);
            let [low, high] = ["lower_fps", "upper_fps"].map(|end| size["answer"][end].as_f64());
            let holds = low.is_none_or(|low| low < want * 1.01) && high.is_none_or(|high| high > want * 0.99);
            assert!(holds, "{burst} {method} {want}: {size}");
            let busy = |trial: &Value| trial["interference"]["lcores"][0]["busy_ns"].as_u64();
            assert!(result["trials"].as_array().unwrap().iter().all(|trial| busy(trial) > Some(0)), "{result}");
            low.zip(high).is_some_and(|(low, high)| high - low < want * 0.05)
        };
        // Beside programs that take the CPUs there may be nothing to see.
        let times = if others { 1 } else { 3 };
        assert!((0..times).any(found) || others, "{burst} {method}: wide {times} times");
    }
}

#[test]
fn the_time_in_which_an_outside_device_waits_for_its_cpu_is_seen_and_set_aside() {
    require(&[Needs::Testpmd]);
    let _machine = exclusive();
    let cpu = support::DUT_CPU.to_string();
    // A device for each trial: one that waits for its CPU may not survive its tester's end (memif of DPDK 22.11).
    let waited = |flags: &dyn Fn(u32) -> Vec<String>| {
        let mut dut = Testpmd::memif(Memory::NoHuge);
        let [a, b] = [0, 1].map(|n| format!("memif:{}", dut.socket(n).display()));
        let flags = flags(dut.process().id());
        let more: Vec<&str> = flags.iter().map(String::as_str).collect();
        let result = counted(&trial([&a, &b], &[&["--load", "100kpps"], &more[..]].concat()));
        let waited = result["trials"][0]["interference"]["device_waited_ns"].as_u64();
        (waited, result["trials"][0]["evidence"]["aside_s"].as_f64())
    };
    assert_eq!(waited(&|_| vec![]).0, None);
    let dir = tempfile::tempdir().unwrap();
    let busy = ["taskset", "-c", &cpu, "sh", "-c", "while :; do :; done"].map(str::to_owned);
    let other = support::Process::spawn(&busy, None, &[], &dir.path().join("busy.log"));
    let (shared, aside) = waited(&|pid| vec!["--dut-pid".into(), pid.to_string()]);
    // Two programs are pinned to this CPU: nobody knows which is the device.
    let unknown = waited(&|_| vec!["--dut-cpu".into(), cpu.clone()]).0;
    drop(other);
    assert!(shared.is_some_and(|ns| ns > 50_000_000), "{shared:?}");
    assert!(aside.is_none_or(|s| s > 0.05), "{aside:?}");
    assert_eq!(unknown, None);
    let dut = Testpmd::memif(Memory::NoHuge);
    let [a, b] = [0, 1].map(|n| format!("memif:{}", dut.socket(n).display()));
    assert_eq!(trial([&a, &b], &["--dut-pid", "4194999"]).code, 2);
    assert_eq!(linerate(&["trial", "--dut", "l2", "--dut-pid", "1"]).code, 2);
}

/// IP packets that the kernel of a namespace took in.
fn ip_received(ns: &Netns) -> u64 {
    let text = ns.run(&["cat", "/proc/net/snmp"]);
    let mut rows = text.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let at = rows.next().unwrap().split(' ').position(|name| name == "InReceives").unwrap();
    rows.next().unwrap().split(' ').nth(at).unwrap().parse().unwrap()
}

#[test]
fn over_af_packet_the_kernel_of_the_tester_gets_no_test_frames_while_it_runs() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let dut = KernelDut::bridge();
    let macs = [0, 1].map(KernelDut::station_mac).join(",");
    // Test frames for the interfaces of the tester: how many get into its kernel.
    let get_in = || {
        let before = ip_received(dut.tester());
        let ports = ["trial", "--port", "eth:d0,driver=af_packet", "--port", "eth:d1,driver=af_packet"];
        let flags = ["--dst-mac", &macs, "--load", "1kpps", "--duration", "300ms", "--residual", "50ms", "-q"];
        let sent = linerate_in(dut.device(), &[&ports[..], &flags].concat());
        assert!(matches!(sent.code, 0 | 1 | 3), "{}", sent.stderr);
        ip_received(dut.tester()) - before
    };
    assert!(get_in() > 100);
    let dir = tempfile::tempdir().unwrap();
    let ports = ["trial", "--port", "eth:t0,driver=af_packet", "--port", "eth:t1,driver=af_packet"];
    let flags = ["--load", "1kpps", "--duration", "60s", "-q"];
    let mut run = start(&[&ports[..], &flags].concat(), Some(dut.tester()), &dir.path().join("log"));
    // Linux has what it takes since 6.6. Learning frames are not known by a stamp.
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map(|n| n.parse::<u32>().unwrap_or_default());
    if (numbers.next(), numbers.next()) >= (Some(6), Some(6)) {
        wait_until("a kernel that gets no test frames", Duration::from_secs(30), || get_in() <= 2 * LEARNING);
    }
    assert!(run.alive(), "{}", run.output());
    run.signal("KILL");
    run.wait_end(Duration::from_secs(5));
    assert!(get_in() > 100, "the kernel has its frames again");
}
