//! Mixes of frame sizes (RFC 6985): what is sent is the genome, and every figure goes by it.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::support;

use serde_json::{json, Value};
use support::{
    exclusive,
    raw::RawPort,
    require,
    tester::{linerate, linerate_in, total, Ended},
    words::lines_with,
    KernelDut, Needs, Words,
};

/// `imix`: seven of 64, four of 570, one of 1518 bytes.
const SIMPLE: [u64; 12] = [64, 64, 64, 64, 64, 64, 64, 570, 570, 570, 570, 1518];
const SIMPLE_NAME: &str = "imix=7x64:4x570:1x1518";

/// Bytes of the first frames of a mix, FCS included.
fn sum(sizes: &[u64], frames: u64) -> u64 {
    sizes.iter().cycle().take(frames as usize).sum()
}

/// A trial's result, trusted or not: counts hold either way.
#[track_caller]
fn counted(ended: &Ended) -> Value {
    assert!(matches!(ended.code, 0 | 3), "{} {}", ended.code, ended.stderr);
    ended.json()
}

#[test]
fn every_frame_of_a_mix_comes_back_at_its_size() {
    let _machine = exclusive();
    let (long, rising) = ([64, 1518, 64, 9000], (64..=1514).step_by(5).collect::<Vec<u64>>());
    for (mix, sizes, more) in [
        ("imix", &SIMPLE[..], &["--dut", "l3"][..]),
        ("imix=aaafg", &[64, 64, 64, 1280, 1518], &["--dut", "l3", "--both-ways", "--flows", "5000"]),
        ("imix=BABZ:A=86:B=84:Z=85", &[84, 86, 84, 85], &["--dut", "l3", "--ip", "v6"]),
        ("imix=50%x64:25%x570:25%x1518", &[64, 570, 64, 1518], &["--dut", "l3"]),
        ("imix=64-1518:step=5", &rising, &["--dut", "l3", "--flows", "100"]),
        ("imix=agaz:z=9000", &long, &["--dut", "l2", "--l4", "none", "--flows", "100"]),
    ] {
        let args = ["trial", "--load", "100kpps", "--duration", "300ms", "--residual", "400ms", "--json", "-", "-q"];
        // A device whose core is taken away loses what does not fit its queue; that has nothing to do with the mix.
        let run = || counted(&linerate(&[&args[..], &["--frame-size", mix], more].concat()));
        let result = (0..20).map(|_| run()).find(|result| total(result, "lost") == 0);
        let result = result.unwrap_or_else(|| panic!("{mix}: frames are lost, twenty times"));
        for d in result["trials"][0]["directions"].as_array().unwrap() {
            let n = |field: &str| d[field].as_u64().unwrap();
            assert!(n("sent") > 3_000, "{mix}: {d}");
            assert_eq!(n("wrong_length") + n("foreign") + n("reordered"), 0, "{mix}: {d}");
            assert_eq!(n("received_bytes"), sum(sizes, n("sent")), "{mix}: {d}");
            assert_eq!(d["latency"]["frames"].as_u64().unwrap_or(n("sent")), n("sent"), "{mix}: {d}");
        }
        assert_eq!(result["mixes"][0]["sizes_bytes"], json!(sizes), "{mix}");
    }
}

#[test]
fn what_is_drawn_at_random_is_reported_and_drawn_again() {
    let _machine = exclusive();
    let mut words = Words::new();
    for (mix, first) in
        [("imix=64-1518:seed=7", [631, 88, 1374, 912]), ("imix=7x64:4x570:1x1518:seed=7", [64, 64, 64, 64])]
    {
        let args = ["trial", "--load", "100kpps", "--duration", "300ms", "--residual", "400ms", "--dut", "l3"];
        let run = || linerate(&[&args[..], &["--frame-size", mix, "--json", "-", "-q"]].concat());
        // Nothing lost of more frames than the sequence has, whatever else the machine does.
        let whole = |result: &Value| total(result, "lost") == 0 && total(result, "sent") > 4096;
        let result = (0..20).map(|_| counted(&run())).find(whole);
        let result = result.unwrap_or_else(|| panic!("{mix}: frames are lost or not sent, twenty times"));
        let facts = &result["mixes"][0];
        words.add(mix, facts["algorithm"].as_str().unwrap());
        assert_eq!((&facts["seed"], &facts["frame_size_bytes"]), (&json!(7), &json!(mix)));
        let sizes: Vec<u64> = facts["sizes_bytes"].as_array().unwrap().iter().map(|s| s.as_u64().unwrap()).collect();
        assert_eq!(sizes[..4], first);
        // Each has the length of its place.
        assert_eq!(total(&result, "wrong_length"), 0, "{mix}");
        assert_eq!(total(&result, "received_bytes"), sum(&sizes, total(&result, "sent")), "{mix}");
    }
    insta::assert_snapshot!(words);
}

#[test]
fn a_kernel_bridge_is_sent_the_genome() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let dut = KernelDut::bridge();
    let seen = RawPort::open(dut.device(), "d0");
    let args = ["trial", "--port", "eth:t0", "--port", "eth:t1", "--duration", "1s", "--residual", "300ms"];
    // More than are asserted, also of a tester that is away for most of the time.
    let more = ["--load", "10kpps", "--frame-size", "imix", "--json", "-", "-q"];
    let result = counted(&linerate_in(dut.tester(), &[&args[..], &more].concat()));
    // What another socket saw arrive at the bridge, by the number in its stamp.
    let mut frames = Vec::new();
    while let Some(frame) = seen.recv() {
        let Some(stamp) = frame.len().checked_sub(18).map(|at| &frame[at..]) else { continue };
        if stamp.starts_with(b"LR\xb7") {
            frames.push((u32::from_le_bytes(stamp[6..10].try_into().unwrap()), frame.len() as u64 + 4));
        }
    }
    assert!(frames.len() > 1_000, "{result}");
    assert_eq!(frames.len() as u64, total(&result, "sent"));
    for (number, size) in &frames {
        assert_eq!(*size, SIMPLE[*number as usize % SIMPLE.len()], "frame {number}");
    }
    assert_eq!(total(&result, "received_bytes"), frames.iter().map(|(_, size)| size).sum::<u64>());
}

#[test]
fn figures_of_a_mix_go_by_its_average() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (csv, markdown) = (at("r.csv"), at("r.md"));
    let args =
        ["bench", "--plan", "rfc2544", "--dut", "sim:capacity=50M", "--link", "10G", "--frame-sizes", "64,imix,1518"];
    let ended = linerate(&[&args[..], &["--json", "-", "--csv", &csv, "--markdown", &markdown]].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let result = ended.json();
    let sizes: Vec<&Value> = result["sizes"].as_array().unwrap().iter().map(|size| &size["frame_size_bytes"]).collect();
    assert_eq!(sizes, [&json!(64), &json!(SIMPLE_NAME), &json!(1518)]);
    // 4246 bytes in twelve frames, and 20 more of each on the wire.
    let line = 10e9 / ((4246.0 / 12.0 + 20.0) * 8.0);
    let found = result["sizes"][1]["throughput_fps"].as_f64().unwrap();
    assert!((0.0..1.0).contains(&(line - found)), "{found} {line}: whole frames");
    let genome = "CUSTOM IMIX - AAAAAAABBBBC (A=64, B=570, C=1518)";
    assert_eq!(result["mixes"][0]["genome"], genome);
    assert_eq!(result["mixes"][0]["frame_size_bytes"], SIMPLE_NAME);
    let trial = result["trials"].as_array().unwrap().iter().find(|t| t["spec"]["frame_size_bytes"] == SIMPLE_NAME);
    let received = trial.unwrap()["directions"][0]["received"].as_f64().unwrap();
    let bytes = trial.unwrap()["directions"][0]["received_bytes"].as_f64().unwrap();
    assert!((bytes / received - 4246.0 / 12.0).abs() < 1e-6, "{bytes} {received}");

    let csv = std::fs::read_to_string(csv).unwrap();
    let row: Vec<&str> = csv.lines().find(|l| l.starts_with(SIMPLE_NAME)).unwrap().split(',').collect();
    let bits = |column: usize| row[column].parse::<f64>().unwrap().round();
    assert_eq!(bits(5), (found * (4246.0 / 12.0 + 20.0) * 8.0).round(), "layer 1");
    assert_eq!(bits(4), (found * 4246.0 / 12.0 * 8.0).round(), "layer 2");
    let markdown = std::fs::read_to_string(markdown).unwrap();
    assert!(markdown.contains(genome), "{markdown}");
    insta::assert_snapshot!(lines_with(&markdown, &[genome]));
    assert!(markdown.lines().any(|line| line.starts_with('|') && line.contains(" IMIX ")), "{markdown}");
}

#[test]
fn a_test_of_one_size_is_refused_over_a_mix() {
    let mut words = Words::new();
    let run = |sizes: &str, tests: &str| {
        let args = ["bench", "--dut", "sim:capacity=3M", "--quick", "--upper", "4Mpps", "--json", "-", "-q"];
        linerate(&[&args[..], &["--frame-sizes", sizes, "--tests", tests]].concat())
    };
    for test in ["back-to-back", "bursty", "reset", "address-caching"] {
        let ended = run("imix", test);
        assert!(ended.stderr.contains(test), "{test}: {}", ended.stderr);
        words.refused_in_a_line(2, &[test], &ended);
    }
    // Beside a size it is run at that, and says of the mix why not.
    let result = run("64,imix", "frame-loss,back-to-back").json();
    let answer = |test: &str, size: Value| {
        let all = result["tests"].as_array().unwrap();
        all.iter().find(|t| t["test"] == test && t["frame_size_bytes"] == size).unwrap_or_else(|| panic!("{result}"))
    };
    assert_eq!(answer("back-to-back", json!(64))["outcome"], answer("frame-loss", json!(SIMPLE_NAME))["outcome"]);
    let refused = answer("back-to-back", json!(SIMPLE_NAME));
    assert_eq!(refused["outcome"], "not_run");
    words.add("beside a size", refused["reason"].as_str().unwrap());
    assert_eq!(refused["trials"], json!([]));
    insta::assert_snapshot!(words);
}

#[test]
fn a_plan_lists_mixes_as_text_and_a_wrong_one_is_named() {
    let mut words = Words::new();
    let dir = tempfile::tempdir().unwrap();
    let plan = |text: &str| {
        let path = dir.path().join("plan.toml");
        std::fs::write(&path, text).unwrap();
        linerate(&["bench", "--plan", path.to_str().unwrap(), "--print-config"])
    };
    let ended = plan("frame_sizes = [64, 'imix=aaz:z=9000', 'imix', 'imix=70%x64:30%x128:seed=7']");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let toml: toml::Table = ended.stdout.parse().unwrap();
    let sizes: Vec<String> = toml["frame_sizes"].as_array().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(sizes, ["64", "\"imix=aaz:z=9000\"", "\"imix=7x64:4x570:1x1518\"", "\"imix=70%x64:30%x128:seed=7\""]);
    for text in [
        "frame_sizes = ['imix=aj']",
        "frame_sizes = ['imix=ab', 64, 'imix=ab']",
        "frame_sizes = ['imix=ag']\ntraffic.ip = 'v6'",
        "frame_sizes = ['imix=64-9216']",
        "frame_sizes = ['imix=70%x64:20%x128']",
        "frame_sizes = ['imix=64-128:seed=x']",
        "frame_sizes = ['mix']",
        "frame_sizes = [{ size = 64 }]",
    ] {
        words.refused_in_a_line(2, &[text], &plan(text));
    }
    insta::assert_snapshot!(words);
}
