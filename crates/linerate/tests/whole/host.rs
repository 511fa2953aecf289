//! `linerate host` on this machine: an audit, a recording of it, a plan, applied and taken back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command, time::Instant};

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
    linerate(&["host", "audit", "--junit", &file("xml"), "--json", &file("json")]);
    assert_eq!(fs::read_to_string(file("xml")).unwrap().matches("<failure").count() > 0, bad);
    let written: Value = serde_json::from_str(&fs::read_to_string(file("json")).unwrap()).unwrap();
    assert_eq!(verdicts(&written), verdicts(&here));
    let text = linerate(&["host", "audit", "--all"]).stdout;
    assert!(text.contains("clock.source") && text.contains("n/a"), "{text}");
    // One of several runs: other programs take the CPU.
    let quick = (0..5).any(|_| {
        let begun = Instant::now();
        linerate(&["host", "audit"]);
        begun.elapsed().as_secs_f64() < 5.0
    });
    assert!(quick, "no audit of five in 5 s");
}

/// The small-router document's cards, in slots that no machine here has.
#[test]
fn a_slot_that_is_not_here_has_a_ceiling() {
    for (slot, card, size, mps, least, most) in [
        ("5x4", "intel-vector", "64", 128, 12.85, 13.4),
        ("5 GT/s x4", "intel-vector", "64", 512, 13.4, 13.65),
        ("5x4", "intel-vector", "1514", 512, 1.07, 1.1),
        ("8x4", "mlx5", "1514", 256, 2.06, 2.09),
    ] {
        let report = linerate(&["host", "pcie", "--link", slot, "--card", card, "--frame-size", size, "--json"]).json();
        let slot = &report[0]["elsewhere"][0];
        let payloads = slot["by_payload"].as_array().unwrap();
        let mpps = payloads.iter().find(|one| one["mps"] == mps).unwrap()["both"]["fps"].as_f64().unwrap() / 1e6;
        assert_eq!(slot["kind"], "asked");
        assert!((least..most).contains(&mpps), "{card} {size} {mps}: {mpps}");
    }
}

/// Commands in a mount namespace of its own, in which no plan was ever applied.
fn privately(script: &str) -> Ended {
    let script = format!("mkdir -p /var/lib/linerate; mount -t tmpfs -o mode=755 none /var/lib/linerate; {script}");
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
        (vec!["plan", "--tester", "0", "--data-plane", "0"], 2),
        (vec!["apply", "--plan", "/no/such/file"], 2),
        (vec!["apply", "--plan", &file("c", other)], 2),
        (vec!["pcie", "--frame-size", "9"], 2),
        (vec!["pcie", "0000:99:00.0"], 2),
        (vec!["pcie", "--link", "8x3"], 2),
        (vec!["pcie", "--link", "8x4", "--card", "x520"], 2),
        (vec!["watch", "--cpus", "0-x"], 2),
    ] {
        let ended = linerate(&[&["host"], args.as_slice()].concat());
        assert_eq!(ended.code, code, "{args:?}: {}", ended.stderr);
        assert_eq!((ended.stdout.as_str(), ended.stderr.lines().count()), ("", 1), "{args:?}: {}", ended.stderr);
    }
}

/// A plan whose tester has a core that the kernel does not keep free, whatever machine this is.
fn kept_core(dir: &tempfile::TempDir) -> (String, u32) {
    let allowed = lab::cpus::allowed_cpus();
    let (first, last) = (allowed[0], *allowed.last().unwrap());
    let path = dir.path().join("kept.toml");
    let text = format!(
        "version = 1\n[cores]\npurpose = \"bench\"\nnode = 0\nhousekeeping = \"{first}\"\ntester = \"{last}\"\nisolated = \"{last}\"\n"
    );
    fs::write(&path, text).unwrap();
    (path.to_str().unwrap().to_owned(), last)
}

#[test]
fn what_comes_of_settings_is_measured_and_oslat_sees_the_same() {
    support::require(&[Needs::Noise]);
    let _one = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let (plan, cpu) = kept_core(&dir);
    // A known disturbance: another thread takes the core in slices of milliseconds.
    let cpu_text = cpu.to_string();
    let mut other = Command::new("stress-ng")
        .args(["--cpu", "1", "--taskset", &cpu_text, "--timeout", "60s", "-q"])
        .spawn()
        .expect("stress-ng runs");
    let audit = linerate(&["host", "audit", "--core-plan", &plan, "--outcome", "--duration", "2s", "--json", "-"]);
    let peer = Command::new("oslat").args(["--cpu-list", &cpu_text, "--duration", "2s"]).output();
    support::send_signal(other.id(), "TERM");
    other.wait().unwrap();
    let json = audit.json();
    let core = &json["outcome"]["cores"][0];
    let longest_us = core["gaps"]["longest_ns"].as_f64().unwrap() / 1e3;
    let peer = String::from_utf8(peer.expect("oslat runs").stdout).unwrap();
    let maximum = peer.lines().find_map(|line| line.trim().strip_prefix("Maximum:")).expect("a maximum");
    let maximum: f64 = maximum.split_whitespace().next().unwrap().parse().unwrap();
    // A slice of the scheduler: both see it, and neither sees a second.
    for us in [longest_us, maximum] {
        assert!((500.0..1e6).contains(&us), "ours {longest_us} us, oslat's {maximum} us");
    }
    assert!(core["involuntary_switches"].as_u64() > Some(0), "{core}");
    let finding = |id: &str| {
        let all = json["findings"].as_array().unwrap();
        all.iter().find(|finding| finding["id"] == id).unwrap_or_else(|| panic!("{id}: {json}")).clone()
    };
    let switches = finding("outcome.switches");
    assert_eq!(switches["verdict"], "warn", "the setting is wrong, too: {switches}");
    assert!(switches["got"].as_str().unwrap().contains("stress-ng"), "{switches}");
    assert_eq!(finding("outcome.gap")["verdict"], "bad");
    assert!(finding("outcome.clock")["got"].as_str().unwrap().contains("MHz"));
    assert!(finding("outcome.memory")["got"].as_str().unwrap().contains(" ns "));
    assert_eq!(audit.code, 1);
    for (args, code) in [
        (["--outcome", "--duration", "1h5s"], 2),
        (["--outcome", "--root", "/"], 2),
        (["--duration", "1s", "--all"], 2),
    ] {
        assert_eq!(linerate(&[&["host", "audit"], &args[..]].concat()).code, code, "{args:?}");
    }
}

#[test]
fn a_core_wakes_up_as_late_as_cyclictest_says() {
    support::require(&[Needs::Noise]);
    let _one = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let (plan, cpu) = kept_core(&dir);
    let cpu = cpu.to_string();
    let audit = ["host", "audit", "--core-plan", &plan, "--outcome", "--duration", "100ms", "--json", "-"];
    // Threads of the ordinary class, that sleep for a millisecond each time, one after the other.
    let peer = ["--policy=other", "-t1", "-a", &cpu, "-i", "1000", "-l", "300", "-q"];
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let median = &linerate(&audit).json()["outcome"]["cores"][0]["wake"]["median_ns"];
        ours.push(median.as_f64().expect("a median") / 1e3);
        let text = String::from_utf8(Command::new("cyclictest").args(peer).output().expect("cyclictest runs").stdout);
        let text = text.unwrap();
        let average = text.split("Avg:").nth(1).and_then(|rest| rest.split_whitespace().next());
        theirs.push(average.and_then(|us| us.parse::<f64>().ok()).unwrap_or_else(|| panic!("{text}")));
    }
    ours.sort_by(f64::total_cmp);
    theirs.sort_by(f64::total_cmp);
    let ratio = ours[1] / theirs[1];
    assert!((0.4..2.5).contains(&ratio), "ours {ours:?} us, cyclictest's {theirs:?} us");
}

#[test]
fn a_plan_of_the_cores_is_followed_and_its_findings_are_in_the_result() {
    let _one = exclusive();
    let dir = tempfile::tempdir().unwrap();
    let (plan, cpu) = kept_core(&dir);
    let flags = ["trial", "--dut", "null", "--load", "10kpps", "--duration", "200ms", "--core-plan", &plan];
    let run = linerate(&[&flags[..], &["--json", "-", "-q"]].concat());
    assert!(matches!(run.code, 0 | 3), "{}", run.stderr);
    let findings = run.json()["host"]["findings"].as_array().unwrap().clone();
    let isolated = findings.iter().find(|f| f["id"] == "cores.isolated").unwrap_or_else(|| panic!("{findings:?}"));
    assert_eq!((&isolated["level"], isolated["got"].as_str()), (&Value::from("bad"), Some("no CPU")), "{isolated}");
    let shown = linerate(&[&flags[..], &["-q"]].concat()).stdout;
    assert!(shown.contains("cores.isolated"), "{shown}");
    let refused = linerate(&[&flags[..], &["--require-audit"]].concat());
    assert_eq!((refused.code, refused.stderr.lines().count()), (4, 1), "{}", refused.stderr);
    assert!(refused.stderr.contains("cores.isolated"), "{}", refused.stderr);
    // Flags go before the plan; the plan has no data plane.
    let allowed = lab::cpus::allowed_cpus();
    let twice = linerate(&[&flags[..], &["--dut-cpu", &cpu.to_string()]].concat());
    assert_eq!(twice.code, 2, "{} of {allowed:?}", twice.stderr);
    for command in [&["forward", "null", "--port", "null", "--port", "null"][..], &["flowlog", "--port", "null"]] {
        let none = linerate(&[command, &["--core-plan", &plan]].concat());
        assert_eq!((none.code, none.stderr.lines().count()), (2, 1), "{command:?}: {}", none.stderr);
        assert!(none.stderr.contains("data plane"), "{}", none.stderr);
    }
    let without = dir.path().join("without.toml");
    let text = fs::read_to_string(&plan).unwrap().replace(&format!("tester = \"{cpu}\""), "tester = \"\"");
    fs::write(&without, text).unwrap();
    let flags = [&flags[..flags.len() - 1], &[without.to_str().unwrap()]].concat();
    let none = linerate(&flags);
    assert_eq!((none.code, none.stderr.contains("tester")), (2, true), "{}", none.stderr);
    let own = linerate(&[&flags[..], &["--tester-cpu", &cpu.to_string(), "-q"]].concat());
    assert!(matches!(own.code, 0 | 3), "{}", own.stderr);
    let lab = linerate(&["lab", "show", "kernel-router", "--core-plan", "/no/such/file"]);
    assert_eq!(lab.code, 2, "{}", lab.stderr);
    let lab = linerate(&["lab", "show", "phy-ovs-phy", "--core-plan", &plan, "--script"]);
    assert!(lab.stdout.contains(&format!("--tester-cpu {cpu}")), "{}{}", lab.stdout, lab.stderr);
}

/// A plan of this machine that changes nothing but `vm.swappiness`, to 17.
fn one_knob(plan: &Path) {
    assert_eq!(linerate(&["host", "plan", "--out", plan.to_str().unwrap()]).code, 0);
    let cores = fs::read_to_string(plan).unwrap().split("[[step]]").next().unwrap().to_owned();
    let step = "[[step]]\nid = \"test\"\nwhy = \"a test\"\n[step.change.write]\npath = \"/proc/sys/vm/swappiness\"\nvalue = \"17\"\n";
    fs::write(plan, cores + step).unwrap();
}

/// One knob that `--tune` and `effect` change on this machine, with its value now.
const TUNED: &str = "vm/stat_interval";

#[test]
fn settings_of_one_run_are_taken_back_also_after_a_kill() {
    support::require(&[Needs::Root]);
    let _one = exclusive();
    let before = knob(TUNED);
    let script = format!(
        "B={BINARY}; K=/proc/sys/{TUNED}; echo 1 >$K
         $B bench --tune --quick --dut null --frame-sizes 64 --no-latency -q & P=$!
         for i in $(seq 600); do [ $(cat $K) = 1 ] || break; sleep 0.05; done; echo during $(cat $K)
         $B host revert; echo reverted $?
         wait $P; echo ended $?; echo after $(cat $K)
         $B host apply --plan \"$1\" >/dev/null
         $B bench --tune --quick --dut null --frame-sizes 64 -q; echo applied $?; $B host revert >/dev/null
         $B bench --tune --quick --dut null -q >/dev/null 2>&1 & P=$!
         for i in $(seq 600); do [ $(cat $K) = 1 ] || break; sleep 0.05; done; echo killed at $(cat $K)
         kill -9 $P; wait $P
         for i in $(seq 600); do [ -e /var/lib/linerate/journal/host.journal ] || break; sleep 0.05; done
         echo left $(cat $K); ls /var/lib/linerate/journal"
    );
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plan.toml");
    one_knob(&plan);
    let ran = privately(&format!("set -- {}; {script}", plan.display()));
    fs::write(format!("/proc/sys/{TUNED}"), &before).unwrap();
    let said = |text: &str| assert!(ran.stdout.contains(text), "{text}: {ran:?}");
    ["during 10", "reverted 4", "after 1\n", "applied 4", "killed at 10", "left 1\n"].into_iter().for_each(said);
    assert!(ran.stderr.contains("changes made") && ran.stderr.contains("a plan is applied already"), "{ran:?}");
    assert!(ran.stdout.contains("ended 0") || ran.stdout.contains("ended 3"), "{ran:?}");
    assert!(ran.stdout.trim_end().ends_with("left 1"), "no journal stays: {ran:?}");
}

#[test]
fn what_a_setting_is_worth_is_measured_both_ways_and_kept_for_audits() {
    support::require(&[Needs::Root]);
    let _one = exclusive();
    let before = knob(TUNED);
    let script = format!(
        "B={BINARY}; K=/proc/sys/{TUNED}; echo 1 >$K
         $B host effect kernel.statistics --rounds 1 --json - -- --quick --dut null --frame-sizes 64 --no-latency
         echo ended $?; echo now $(cat $K)
         $B host audit
         ls /var/lib/linerate/journal
         for bad in 'no.such' 'boot.skew_tick' 'clock.source' 'kernel.statistics -- --frame-sizes x' 'kernel.statistics -- --no-such' 'kernel.statistics -- --tune' 'kernel.statistics -- --json x' 'kernel.statistics --json /no/such/x' 'programs.quota --value x'; do
            $B host effect $bad; echo refused $?; done"
    );
    let ran = privately(&script);
    fs::write(format!("/proc/sys/{TUNED}"), &before).unwrap();
    assert!(ran.stdout.contains("ended 0\nnow 1\n"), "{ran:?}");
    let text = ran.stdout.split("ended 0").next().unwrap();
    let json: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    assert_eq!(json["changes"][0], "sysctl -w vm.stat_interval=10");
    for name in ["throughput at 64 B", "longest gap of a core", "interrupts of a core"] {
        let figure = json["figures"].as_array().unwrap().iter().find(|figure| figure["name"] == name);
        let figure = figure.unwrap_or_else(|| panic!("{name}: {json}"));
        assert_eq!((figure["without"].as_array().unwrap().len(), figure["with"].as_array().unwrap().len()), (2, 2));
        assert!(figure["change"]["plus_minus"].as_f64().is_some(), "{figure}");
    }
    assert!(ran.stdout.contains("\n         here:  "), "the audit says what was measured: {ran:?}");
    assert_eq!(ran.stdout.matches("refused 2").count(), 9, "{ran:?}");
}

#[test]
fn what_is_being_measured_is_nobody_elses_to_take_back_and_ctrl_c_takes_it_back() {
    support::require(&[Needs::Root]);
    let _one = exclusive();
    let before = knob(TUNED);
    let script = format!(
        "B={BINARY}; K=/proc/sys/{TUNED}; echo 1 >$K
         $B host effect kernel.statistics --rounds 20 -- --quick --dut null --frame-sizes 64 --no-latency >/dev/null & P=$!
         for i in $(seq 600); do [ $(cat $K) = 1 ] || break; sleep 0.05; done; echo during $(cat $K)
         $B host revert; echo reverted $?
         $B host status; echo status $?
         kill -INT $P; wait $P; echo ended $?; echo after $(cat $K); ls /var/lib/linerate/journal"
    );
    let ran = privately(&script);
    fs::write(format!("/proc/sys/{TUNED}"), &before).unwrap();
    let said = |text: &str| assert!(ran.stdout.contains(text), "{text}: {ran:?}");
    ["during 10", "reverted 4", "status 0", "ended 130\nafter 1\n"].into_iter().for_each(said);
    assert!(ran.stdout.trim_end().ends_with("after 1"), "no journal stays: {ran:?}");
}

#[test]
fn who_has_no_right_takes_nothing_back_and_the_journal_stays() {
    support::require(&[Needs::Root]);
    let _one = exclusive();
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (program, plan) = (dir.path().join("linerate"), dir.path().join("plan.toml"));
    fs::copy(BINARY, &program).unwrap();
    one_knob(&plan);
    let before = knob("vm/swappiness");
    let ran = privately(&format!(
        "B={program}; USER=\"setpriv --reuid=65534 --regid=65534 --clear-groups\"
         $USER $B host apply --plan {plan}; echo applied by nobody $?; cat /proc/sys/vm/swappiness
         $B host apply --plan {plan} >/dev/null; echo applied $?
         $USER $B host revert; echo reverted by nobody $?; cat /proc/sys/vm/swappiness
         $B host revert >/dev/null; echo reverted $?; cat /proc/sys/vm/swappiness",
        program = program.display(),
        plan = plan.display()
    ));
    fs::write("/proc/sys/vm/swappiness", &before).unwrap();
    let said = |text: String| assert!(ran.stdout.contains(&text), "{text}: {ran:?}");
    said(format!("applied by nobody 4\n{before}\n"));
    said("reverted by nobody 4\n17\n".to_owned());
    said("applied 0\n".to_owned());
    said(format!("reverted 0\n{before}\n"));
    assert_eq!(ran.stderr.lines().count(), 2, "one line each: {ran:?}");
}
