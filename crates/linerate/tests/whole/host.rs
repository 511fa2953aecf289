//! `linerate host` on this machine: an audit, a recording of it, a plan, applied and taken back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{fs, process::Command, time::Instant};

use serde_json::Value;

use crate::support::{
    self, exclusive,
    tester::{ended, linerate, Ended, BINARY},
    Needs,
};

/// Findings as `id place verdict`, without those whose figures move by themselves.
fn verdicts(audit: &Value) -> Vec<String> {
    let moving = ["interrupts.each", "memory.hugepages", "power.throttled", "pcie.errors"];
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let all = audit["findings"].as_array().unwrap().iter();
    let all = all.filter(|finding| !moving.contains(&finding["id"].as_str().unwrap()));
    all.map(|f| format!("{} {} {}", text(f, "id"), text(f, "place"), text(f, "verdict"))).collect()
}

#[test]
fn an_audit_is_quick_and_its_recording_gives_the_same_findings() {
    let _one = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let audit = linerate(&["host", "audit", "--record", &file("machine"), "--json", "-"]);
    let here = audit.json();
    let bad = here["findings"].as_array().unwrap().iter().any(|finding| finding["verdict"] == "bad");
    assert_eq!(audit.code, i32::from(bad), "{}", audit.stderr);
    let there = linerate(&["host", "audit", "--root", &file("machine"), "--json", "-"]);
    assert_eq!(verdicts(&there.json()), verdicts(&here));
    // What says whose machine it is was not even read.
    let recording = fs::read_to_string(file("machine")).unwrap();
    for path in ["/proc/sys/kernel/hostname", "/sys/class/dmi/id/product_serial", "/sys/class/net/lo/address"] {
        assert!(!recording.contains(path), "{path}");
    }
    let xml = linerate(&["host", "audit", "--junit", "-"]).stdout;
    assert_eq!(xml.matches("<failure").count() > 0, bad);
    let text = linerate(&["host", "audit", "--all"]).stdout;
    assert!(text.contains("clock.source") && text.contains("n/a"), "{text}");
    // The least of several runs: other programs take the CPU.
    let quickest = (0..5).map(|_| {
        let begun = Instant::now();
        linerate(&["host", "audit"]);
        begun.elapsed().as_secs_f64()
    });
    let quickest = quickest.fold(f64::INFINITY, f64::min);
    assert!(quickest < 5.0, "{quickest} s");
}

/// Commands in a mount namespace of its own, in which no plan was ever applied.
fn privately(script: &str) -> Ended {
    let script = format!("mkdir -p /var/lib/linerate; mount -t tmpfs none /var/lib/linerate; {script}");
    ended(&Command::new("unshare").args(["-m", "sh", "-uc", &script]).output().expect("unshare runs"))
}

#[test]
fn a_plan_is_applied_kept_in_a_journal_and_taken_back() {
    support::require(&[Needs::Root]);
    let _one = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plan.toml");
    let path = plan.to_str().unwrap();
    let made = linerate(&["host", "plan", "--out", path]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    // Two knobs that disturb nobody, whatever else this machine needs.
    let text = fs::read_to_string(path).unwrap();
    let cores = text.split("[[step]]").next().unwrap();
    let (stat, swappiness) = (knob("vm/stat_interval"), knob("vm/swappiness"));
    let step = |file: &str, value: &str| {
        format!("[[step]]\nid = \"test\"\nwhy = \"a test\"\n[step.change.write]\npath = \"/proc/sys/{file}\"\nvalue = \"{value}\"\n")
    };
    let steps = [step("vm/stat_interval", "97"), step("vm/swappiness", "17"), step("vm/no_such_knob", "1")];
    fs::write(&plan, format!("{cores}{}", steps.concat())).unwrap();
    let dry = linerate(&["host", "apply", "--plan", path, "--dry-run"]);
    assert!(dry.stdout.contains("\nsysctl -w vm.stat_interval=97\n"), "{}", dry.stdout);
    assert_eq!(knob("vm/stat_interval"), stat, "a dry run changes nothing");
    let script = format!(
        "B={BINARY}
         $B host apply --plan {path}; echo applied $?
         cat /proc/sys/vm/stat_interval /proc/sys/vm/swappiness
         $B host status
         $B host apply --plan {path}; echo again $?
         $B host revert; echo reverted $?
         $B host revert; echo twice $?
         $B host apply --plan {path} >/dev/null; echo 55 > /proc/sys/vm/stat_interval
         $B host revert; echo foreign $?
         cat /proc/sys/vm/stat_interval
         ls /var/lib/linerate/journal"
    );
    let ran = privately(&script);
    // Before anything can fail: as they were.
    let left = knob("vm/swappiness");
    fs::write("/proc/sys/vm/stat_interval", &stat).unwrap();
    fs::write("/proc/sys/vm/swappiness", &swappiness).unwrap();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let after =
        |line: &str| lines[lines.iter().position(|l| *l == line).unwrap_or_else(|| panic!("{line}: {ran:?}")) + 1];
    // One knob is not there: told, and the exit code says it.
    assert_eq!((after("applied 1"), ran.stdout.contains("no_such_knob")), ("97", true), "{ran:?}");
    assert!(ran.stdout.contains("\n17\n2 changes until the next boot"), "{ran:?}");
    for line in ["again 4", "reverted 0", "twice 0", "foreign 0"] {
        assert!(lines.contains(&line), "{line}: {ran:?}");
    }
    assert!(ran.stdout.contains("left alone") && after("foreign 0") == "55", "{ran:?}");
    assert_eq!(lines.last(), Some(&"55"), "no journal stays: {ran:?}");
    assert_eq!(left, swappiness, "taken back");
}

fn knob(name: &str) -> String {
    fs::read_to_string(format!("/proc/sys/{name}")).unwrap().trim().to_owned()
}

#[test]
fn what_is_wrong_is_said_in_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let empty = dir.path().to_str().unwrap();
    let other = "version = 1\n[cores]\npurpose = \"bench\"\nnode = 0\nhousekeeping = \"0\"\ntester = \"4000\"\n";
    for (args, code) in [
        (vec!["audit", "--root", empty], 2),
        (vec!["audit", "--root", "/no/such/file"], 2),
        (vec!["audit", "--root", &file("a", "hello")], 2),
        (vec!["audit", "--nic", "no-such-nic"], 2),
        (vec!["audit", "--core-plan", &file("b", "version = 9\n[cores]\n")], 2),
        (vec!["plan", "--for", "nfvi-two-vm", "--vcpus", "200"], 4),
        (vec!["plan", "--for", "everything"], 2),
        (vec!["apply", "--plan", "/no/such/file"], 2),
        (vec!["apply", "--plan", &file("c", other)], 2),
        (vec!["pcie", "--frame-size", "9"], 2),
        (vec!["pcie", "0000:99:00.0"], 2),
    ] {
        let ended = linerate(&[&["host"], args.as_slice()].concat());
        assert_eq!(ended.code, code, "{args:?}: {}", ended.stderr);
        assert_eq!((ended.stdout.as_str(), ended.stderr.lines().count()), ("", 1), "{args:?}: {}", ended.stderr);
    }
}
