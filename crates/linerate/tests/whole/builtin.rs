//! The built-in data plane over software cables: known truth in, the same truth out.

#![allow(clippy::unwrap_used)]

use crate::support;

use std::time::{Duration, Instant};

use support::{
    exclusive, require,
    tester::{linerate, size_of, start, total, until_trusted, BINARY, PATIENCE},
    wait_until,
    words::{lines_with, without_figures, KEPT_IN, TIMELINE},
    Needs, Words,
};

/// A trial's counts and exit code. The load leaves the tester plenty of room.
fn trial(args: &[&str]) -> serde_json::Value {
    let mut all = vec!["trial", "--duration", "300ms", "--residual", "400ms", "--json", "-", "-q"];
    all.extend(args);
    let ended = linerate(&all);
    assert!(matches!(ended.code, 0 | 3), "{args:?}: {}", ended.stderr);
    ended.json()
}

/// What came back and what did not, whatever disturbed the trial.
#[track_caller]
fn adds_up(result: &serde_json::Value) {
    for d in result["trials"][0]["directions"].as_array().unwrap() {
        let n = |field: &str| d[field].as_u64().unwrap();
        assert_eq!(n("intended"), n("sent") + n("refused") + n("skipped"), "{d}");
        assert_eq!(n("sent"), n("received") + n("lost"), "{d}");
        assert_eq!(n("foreign") + n("wrong_length") + n("misdirected"), 0, "{d}");
    }
}

#[test]
fn every_kind_of_frame_comes_back() {
    let _machine = exclusive();
    for args in [
        &["--dut", "l3"][..],
        &["--dut", "l3", "--ip", "v6", "--frame-size", "84"],
        &["--dut", "l3", "--vlan", "100", "--frame-size", "68"],
        &["--dut", "l3", "--l4", "tcp", "--frame-size", "76", "--flows", "1000"],
        &["--dut", "l3", "--both-ways", "--flows", "50000", "--frame-size", "512"],
        &["--dut", "l2", "--mpls", "16", "--frame-size", "68"],
        &["--dut", "l2:macswap", "--vlan", "5", "--vlan", "6", "--frame-size", "128"],
        &["--dut", "null", "--frame-size", "9216"],
        &["--dut", "flowlog", "--both-ways", "--flows", "50000"],
        &["--dut", "flowlog", "--ip", "v6", "--vlan", "100", "--frame-size", "256"],
        &["--dut", "l3", "--field", "raw@30:mask:11000110000100110000000000000XXX"],
        &["--dut", "l3", "--field", "dst_ip:random:198.19.0.0:65536", "--field", "src_port:increment:1024:100"],
    ] {
        let mut all = vec!["--load", "200kpps"];
        all.extend(args);
        let result = trial(&all);
        adds_up(&result);
        assert!(total(&result, "received") > 10_000, "{args:?}: {result}");
        assert_eq!(total(&result, "lost") + total(&result, "duplicates") + total(&result, "reordered"), 0, "{args:?}");
    }
}

#[test]
fn what_the_impairment_did_is_what_the_checker_says() {
    let _machine = exclusive();
    let result = trial(&["--load", "500kpps", "--dut", "l2", "--impair", "loss=1%,seed=3"]);
    adds_up(&result);
    // The policer, the losses and the copies are drawn from a seed: the DUT's own counters are the truth.
    let truth = |result: &serde_json::Value, name: &str| {
        result["trials"][0]["dut"]["counters"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {result}"))
    };
    assert_eq!(total(&result, "lost"), truth(&result, "impair-lost"));
    assert!(total(&result, "lost") > 500, "{result}");

    let result = trial(&["--load", "500kpps", "--dut", "l2", "--impair", "dup=1%,seed=4"]);
    assert_eq!(total(&result, "duplicates"), truth(&result, "impair-duplicated"));
    assert!(total(&result, "duplicates") > 500, "{result}");
    assert_eq!(total(&result, "lost"), 0);

    let result = trial(&["--load", "500kpps", "--dut", "l2", "--impair", "reorder=1%,distance=5,seed=5"]);
    assert_eq!(total(&result, "reordered"), truth(&result, "impair-reordered"));
    assert!(total(&result, "reordered") > 500, "{result}");
    assert_eq!(total(&result, "lost") + total(&result, "duplicates"), 0);

    let all = "loss=0.5%,dup=0.5%,reorder=0.5%,distance=3,seed=6";
    let result = trial(&["--load", "500kpps", "--dut", "l3", "--both-ways", "--impair", all]);
    adds_up(&result);
    assert_eq!(total(&result, "lost"), truth(&result, "impair-lost"));
    assert_eq!(total(&result, "duplicates"), truth(&result, "impair-duplicated"));
    assert_eq!(total(&result, "reordered"), truth(&result, "impair-reordered"));
}

#[test]
fn a_delay_is_measured_as_what_it_is() {
    let _machine = exclusive();
    let result = trial(&["--load", "50kpps", "--dut", "l2", "--impair", "delay=2ms"]);
    let latency = &result["trials"][0]["directions"][0]["latency"];
    // Never less than the delay made; how much more is the machine's.
    assert!(latency["min_ns"].as_u64().unwrap() >= 2_000_000, "{latency}");
    assert!(latency["p50_ns"].as_u64().unwrap() < 20_000_000, "{latency}");
}

#[test]
fn a_policed_rate_is_found_at_every_frame_size() {
    let _machine = exclusive();
    let sizes = "64,128,256,512,1024,1280,1518";
    let args = [
        "bench",
        "--quick",
        "--dut",
        "l2",
        "--impair",
        "rate=200kpps",
        "--upper",
        "1Mpps",
        "--frame-sizes",
        sizes,
        "--precision",
        "1%",
        "--duration",
        "100ms",
        "--no-latency",
        "--json",
        "-",
        "-q",
    ];
    let ended = until_trusted(8, || linerate(&args));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let result = ended.json();
    for size in [64, 128, 256, 512, 1024, 1280, 1518] {
        let answer = size_of(&result, size);
        let found = answer["throughput_fps"].as_f64().unwrap();
        // Within the precision below the rate; above it by no more than the 100 frames of 20,000 that the policer lets pass at once.
        assert!((200e3 * 0.985..=200e3 * 1.008).contains(&found), "{size} B: {found}, {answer}");
        assert!(answer["upper_bound_fps"].as_f64().unwrap() > found, "{answer}");
    }
}

#[test]
fn odd_policers_and_slow_ones_are_found() {
    let _machine = exclusive();
    // The rate is one of frames that came in: copies are made behind it.
    for (impair, truth, flags) in [
        ("rate=200kpps,dup=5%,reorder=2%,distance=20", 200e3, &["--upper", "1Mpps"][..]),
        ("rate=200kpps,delay=50us,jitter=200us", 200e3, &["--upper", "1Mpps"]),
        // Far below what the tester sends at first: most slices have no frame of it.
        ("rate=20kpps", 20e3, &["--method", "mlrsearch"]),
        ("rate=2400pps", 2400.0, &[]),
    ] {
        let device = ["bench", "--quick", "--dut", "l2", "--impair", impair, "--frame-sizes", "64"];
        let args = [&device[..], flags, &["--no-latency", "--json", "-", "-q"]].concat();
        let ended = until_trusted(8, || linerate(&args));
        assert_eq!(ended.code, 0, "{impair}: {}", ended.stderr);
        let result = ended.json();
        let answer = &size_of(&result, 64)["answer"];
        let (lower, upper) = (answer["lower_fps"].as_f64().unwrap(), answer["upper_fps"].as_f64().unwrap());
        assert!(lower <= truth * 1.01 && upper >= truth * 0.99, "{impair}: {answer}");
        assert!(upper - lower < truth * 0.1, "{impair}: {answer}");
    }
}

#[test]
fn loss_verification_forgives_a_rare_loss() {
    let _machine = exclusive();
    // One frame of 20,000 is lost on purpose: about two of five trials of 10,000 frames lose any, which ones a seed
    // decides.
    for attempt in 1.. {
        let impair = format!("loss=0.005%,seed={attempt}");
        let args = [
            "bench",
            "--quick",
            "--dut",
            "l2",
            "--method",
            "tst009",
            "--retries",
            "10",
            "--upper",
            "100kpps",
            "--precision",
            "20%",
            "--frame-sizes",
            "256",
            "--no-latency",
            "--impair",
            &impair,
            "--json",
            "-",
            "-q",
        ];
        let ended = until_trusted(8, || linerate(&args));
        let result = ended.json();
        let answer = size_of(&result, 256);
        assert_eq!((ended.code, answer["outcome"].as_str()), (0, Some("at_maximum")), "{answer}");
        insta::assert_snapshot!("tst009_with_retries", answer["standard"]["name"].as_str().unwrap());
        let retried = |t: &serde_json::Value| t["spec"]["purpose"] == "verification";
        if result["trials"].as_array().unwrap().iter().any(retried) {
            break;
        }
        // The trials of this run lost none.
        assert!(attempt < 25, "no trial ever lost a frame: {result}");
    }
}

#[test]
fn a_dut_that_forwards_nothing_is_named() {
    let _machine = exclusive();
    // Frames for a network that no route covers.
    let args = ["bench", "--quick", "--dut", "l3", "--dst-ip", "192.0.2.1", "--frame-sizes", "64", "--json", "-", "-q"];
    let ended = until_trusted(8, || linerate(&args));
    let result = ended.json();
    let answer = size_of(&result, 64);
    assert_eq!((ended.code, answer["outcome"].as_str()), (1, Some("no_traffic")), "{answer}");
    assert!(total(&result, "sent") > 0 && total(&result, "received") == 0, "{answer}");
    // At which loads it was tried depends on the machine.
    let (_, why) = answer["diagnosis"].as_str().unwrap().split_once("; ").unwrap();
    insta::assert_snapshot!(without_figures(why));
}

#[test]
fn a_frozen_tester_voids_its_trial() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    let log = dir.path().join("log");
    let args = ["trial", "--load", "100kpps", "--duration", "2s", "--dut", "l2", "--json", json.to_str().unwrap()];
    let mut run = start(&args, None, &log);
    std::thread::sleep(Duration::from_millis(1500));
    run.freeze_for(Duration::from_millis(50));
    let status = run.wait_end(Duration::from_secs(20)).unwrap();
    assert_eq!(status.code(), Some(3), "{}", run.output());
    let result: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let rules: Vec<_> =
        result["trials"][0]["violations"].as_array().unwrap().iter().map(|v| v["rule"].clone()).collect();
    assert!(rules.contains(&"stalled".into()), "{rules:?}");
    let tester = &result["trials"][0]["interference"]["lcores"][0];
    assert!(tester["largest_gap_ns"].as_u64().unwrap() >= 40_000_000, "{tester}");
}

#[test]
fn a_tester_frozen_now_and_then_finds_the_same_answer() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("r.json");
    let args = [
        "bench",
        "--quick",
        "--dut",
        "l2",
        "--impair",
        "rate=200kpps",
        "--upper",
        "1Mpps",
        "--frame-sizes",
        "64",
        "--no-latency",
        // With real-time priority on both CPUs nobody runs who could freeze it.
        "--realtime",
        "off",
        "--json",
        json.to_str().unwrap(),
    ];
    let until = Instant::now() + PATIENCE;
    loop {
        let mut run = start(&args, None, &dir.path().join("log"));
        while run.alive() {
            std::thread::sleep(Duration::from_millis(900));
            run.freeze_for(Duration::from_millis(50));
        }
        let status = run.wait_end(Duration::from_secs(5)).unwrap();
        let result: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        let answer = size_of(&result, 64);
        if status.code() == Some(3) && Instant::now() < until {
            continue;
        }
        // Beside other work the interval may be wide; it holds the truth.
        let [lower, upper] = ["lower_fps", "upper_fps"].map(|end| answer["answer"][end].as_f64().unwrap());
        assert!(lower <= 202e3 && upper >= 198e3, "{answer}");
        if answer["answer"]["standing"] == "wide" && Instant::now() < until {
            continue;
        }
        assert!((196e3..=202e3).contains(&lower), "{answer}");
        let trials = result["trials"].as_array().unwrap();
        // The slices of a frozen device are set aside. The rest of the trial counts.
        let aside = |t: &&serde_json::Value| t["evidence"]["aside_s"].as_f64().unwrap_or_default() >= 0.03;
        // A freeze may fall between two trials.
        let hit = trials.iter().filter(aside).count() > 0;
        if !hit && Instant::now() < until {
            continue;
        }
        assert!(hit, "{result}");
        break;
    }
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_leaves_nothing() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    for (wait_ms, signal, again) in
        [(300, "INT", false), (2500, "INT", false), (2500, "INT", true), (4000, "TERM", false)]
    {
        let json = dir.path().join("r.json");
        let _ = std::fs::remove_file(&json);
        let args = [
            "bench",
            "--plan",
            "rfc2544",
            "--dut",
            "l2",
            "--impair",
            "rate=50kpps",
            "--upper",
            "200kpps",
            "--frame-sizes",
            "64,128",
            "--duration",
            "500ms",
            "--json",
            json.to_str().unwrap(),
        ];
        let mut run = start(&args, None, &dir.path().join("log"));
        std::thread::sleep(Duration::from_millis(wait_ms));
        run.signal(signal);
        if again {
            // As from a shell and a wrapper: it must not cut the first one short.
            std::thread::sleep(Duration::from_millis(50));
            run.signal(signal);
        }
        let status = run.wait_end(Duration::from_secs(10)).unwrap();
        let stopped = status.code() == Some(130) && json.exists();
        // So early that nothing had begun, there is nothing to keep.
        let unborn = wait_ms < 1000 && !json.exists();
        assert!(stopped || unborn, "{signal} after {wait_ms} ms: {status:?}: {}", run.output());
        if json.exists() {
            let result: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
            assert_eq!(result["standing"], "stopped");
        }
        let prefix = format!("linerate{}", run.id());
        for dir in ["/var/run/dpdk", "/tmp/dpdk", "/dev/hugepages"] {
            let left =
                std::fs::read_dir(dir).map(|d| d.flatten().any(|e| e.file_name().to_string_lossy().contains(&prefix)));
            assert!(!left.unwrap_or(false), "{dir} still has something of {prefix}");
        }
    }
}

#[test]
fn a_full_disk_keeps_the_result_elsewhere() {
    let _machine = exclusive();
    let args = [
        "trial",
        "--load",
        "10kpps",
        "--duration",
        "100ms",
        "--residual",
        "50ms",
        "--dut",
        "null",
        "--json",
        "/dev/full",
        "-q",
    ];
    let ended = linerate(&args);
    assert_eq!(ended.code, 4, "{}", ended.stderr);
    assert!(ended.stderr.contains("/dev/full"), "{}", ended.stderr);
    let kept = ended.stderr.split(KEPT_IN).nth(1).unwrap().trim().to_owned();
    insta::assert_snapshot!("a_full_disk", ended.stderr.replace(&kept, "[file]"));
    let rescued: serde_json::Value = serde_json::from_slice(&std::fs::read(&kept).unwrap()).unwrap();
    std::fs::remove_file(&kept).unwrap();
    assert_eq!(rescued["plan_name"], "trial");
    // The table is still shown.
    insta::assert_snapshot!("a_full_disk_table", without_figures(&lines_with(&ended.stdout, &["intended"])));
}

#[test]
fn an_ordinary_user_without_hugepages_gets_the_whole_job() {
    require(&[Needs::Root]);
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    // Where anybody may run it from.
    let copy = dir.path().join("linerate");
    std::fs::copy(BINARY, &copy).unwrap();
    std::process::Command::new("chmod").args(["-R", "a+rx"]).arg(dir.path()).status().unwrap();
    let args = [
        "bench",
        "--quick",
        "--upper",
        "100kpps",
        "--frame-sizes",
        "64,1518",
        "--memory",
        "no-hugepages",
        "--json",
        "-",
        "-q",
    ];
    let ended = until_trusted(8, || {
        let output = std::process::Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--"])
            .arg(&copy)
            .args(args)
            .current_dir("/")
            .output()
            .unwrap();
        support::tester::ended(&output)
    });
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let result = ended.json();
    assert_eq!(result["host"]["memory"], "no hugepages");
    assert_eq!(size_of(&result, 1518)["outcome"], "at_maximum");
}

#[test]
fn a_result_keeps_one_telling_trial_over_time() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let [json, svg, again] = ["r.json", "r.svg", "again.svg"].map(|name| dir.path().join(name).display().to_string());
    let device =
        ["bench", "--dut", "l2", "--impair", "rate=1Mpps", "--upper", "2Mpps", "--frame-sizes", "64,1518", "-q"];
    let args = [&device[..], &["--no-latency", "--json", &json, "--svg", &svg]].concat();
    let ended = until_trusted(8, || linerate(&args));
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    let result: serde_json::Value = serde_json::from_str(&read(&json)).unwrap();
    let kept = &result["timeline"];
    let trial = result["trials"].as_array().unwrap().iter().find(|trial| trial["number"] == kept["trial"]).unwrap();
    assert_eq!(trial["spec"]["frame_size_bytes"], 64, "the first size");
    let slices = kept["directions"][0].as_array().unwrap();
    assert!((10..=400).contains(&slices.len()), "{}", slices.len());
    let sum = |name: &str| slices.iter().map(|slice| slice[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("sent"), trial["directions"][0]["sent"].as_u64().unwrap());
    assert!(sum("sent") + sum("refused") > sum("received"), "an overload loses frames");
    assert_eq!(linerate(&["runs", "show", &json, "--svg", &again]).code, 0);
    assert!(read(&svg).contains(TIMELINE) && read(&svg) == read(&again));
}

#[test]
fn forward_serves_another_tester_and_counts_what_it_did() {
    let _machine = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let socket = |n: u32| dir.path().join(format!("{n}.sock")).display().to_string();
    let (a, b) = (socket(0), socket(1));
    let (server_a, server_b) = (format!("memif:{a},role=server"), format!("memif:{b},role=server"));
    let args = [
        "forward",
        "l3",
        "--port",
        &server_a,
        "--port",
        &server_b,
        "--cpus",
        "0",
        "--json",
        "--impair",
        "loss=1%,seed=9",
    ];
    let mut dut = start(&args, None, &dir.path().join("dut.log"));
    wait_until("the DUT's sockets", Duration::from_secs(10), || dir.path().join("1.sock").exists());
    let (port_a, port_b) = (format!("memif:{a}"), format!("memif:{b}"));
    let ended = linerate(&[
        "trial",
        "--port",
        &port_a,
        "--port",
        &port_b,
        "--load",
        "100kpps",
        "--duration",
        "300ms",
        "--residual",
        "200ms",
        "--json",
        "-",
        "-q",
        "--tester-cpu",
        "1",
    ]);
    assert!(matches!(ended.code, 0 | 3), "{}", ended.stderr);
    let result = ended.json();
    adds_up(&result);
    dut.signal("INT");
    assert_eq!(dut.wait_end(Duration::from_secs(10)).unwrap().code(), Some(0), "{}", dut.output());
    let text = dut.output();
    let counters: serde_json::Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let lost = counters["drops"]["impair-loss"].as_u64().unwrap();
    let learning = 8;
    // Learning frames may be among the lost; nothing else is.
    assert!(lost >= total(&result, "lost") && lost <= total(&result, "lost") + 2 * learning, "{counters} {result}");
    let rx: u64 = counters["ports"].as_array().unwrap().iter().map(|p| p["rx_frames"].as_u64().unwrap()).sum();
    assert_eq!(rx, total(&result, "sent") + 2 * learning, "{counters}");
}

#[test]
fn the_flow_logger_counts_every_frame_it_passes() {
    let _machine = exclusive();
    let args =
        ["--dut", "flowlog", "--load", "500kpps", "--both-ways", "--flows", "1000", "--impair", "loss=1%,seed=3"];
    let result = trial(&args);
    adds_up(&result);
    assert_eq!(result["dut"], "built-in flowlog with impair loss=0.01,seed=3 over wire");
    let dut = &result["trials"][0]["dut"];
    let vectors = |name: &str| {
        let node = dut["nodes"].as_array().unwrap().iter().find(|n| n["name"] == name);
        node.unwrap_or_else(|| panic!("no {name} in {dut}"))["vectors"].as_u64().unwrap()
    };
    let sent = total(&result, "sent");
    let lost = dut["counters"]["impair-lost"].as_u64().unwrap();
    assert_eq!(total(&result, "received"), sent - lost, "{dut}");
    // Impaired is what has been through the function.
    assert_eq!((vectors("flow-decode"), vectors("flow-table")), (sent, sent), "{dut}");
    assert!(vectors("flow-age") > 0, "its table ages: {dut}");
    for nothing in ["flow: packets refused", "flow: malformed", "flow: records dropped"] {
        assert_eq!(dut["counters"][nothing].as_u64().unwrap_or(0), 0, "{dut}");
    }
    // It is among the devices that are named to who names another.
    let args = ["trial", "--load", "1kpps", "--dut", "l4"];
    let mut words = Words::new();
    words.refused(2, &args, &linerate(&args));
    insta::assert_snapshot!(words);
}
