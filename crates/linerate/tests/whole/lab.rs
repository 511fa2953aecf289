//! `linerate lab`: real systems under test come up, are measured hop by hop, and go without a trace.

// Fixtures report by panicking.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::{
    collections::BTreeSet,
    fs,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::PermissionsExt,
            net::{SocketAddr, UnixListener},
        },
    },
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::Value;

use crate::support::{
    self, exclusive,
    labs::{does, EndOfLabs},
    require,
    tester::{ended, linerate, others_take_cpus, until_trusted_unless_busy, BINARY},
    wait_until, Needs,
};

/// What a lab with a switch and guests needs.
pub const ALL: [Needs; 5] = [Needs::Root, Needs::Hugepages(400), Needs::Testpmd, Needs::OvsDpdk, Needs::Network];

/// Throughput alone, and a busy machine ends it soon: no repeat makes up for a core that is always shared.
const SHORT: [&str; 5] = ["--quick", "-q", "--no-latency", "--max-repeats", "4"];

/// A lab that does not answer: it has the name, and closes every connection. Ended with the test.
fn silent(name: &str) {
    let address = format!("linerate-lab/{}/{name}", rustix::process::getuid().as_raw());
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(address).unwrap()).unwrap();
    std::thread::spawn(move || {
        // The status, the end of all, and that at the end of the test.
        for stream in listener.incoming().take(3) {
            drop(stream);
        }
    });
}

#[test]
fn a_lab_that_does_not_answer_is_listed_and_does_not_keep_others_up() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&[Needs::Root, Needs::Network]);
    // Before and behind the other one.
    let [first, name, last] = ["a", "b", "c"].map(|place| support::unique(&format!("{place}-lab")));
    silent(&first);
    silent(&last);
    does(&["lab", "up", "kernel-bridge", "--name", &name]);
    let listed = does(&["lab", "status"]).stdout;
    for silent in [&first, &last] {
        assert!(listed.contains(&format!("{silent}: coming up, or does not answer")), "{listed}");
    }
    assert!(listed.contains(&name), "{listed}");
    let down = linerate(&["lab", "down", "--all"]);
    assert_eq!(down.code, 4, "{}{}", down.stdout, down.stderr);
    assert!(down.stdout.contains(&format!("lab {name} is gone")), "{}", down.stdout);

    // One whose first process hangs is ended all the same, with everything in it.
    let stopped = support::unique("s-lab");
    does(&["lab", "up", "kernel-bridge", "--name", &stopped]);
    let status: Vec<Value> = serde_json::from_str(&does(&["lab", "status", "--json"]).stdout).unwrap();
    let holder = status.iter().find(|lab| lab["name"] == stopped.as_str()).unwrap()["holder"].to_string();
    support::run(&["kill", "-STOP", &holder]);
    let down = linerate(&["lab", "down", &stopped]);
    assert!(down.code == 0 && down.stdout.contains(&holder), "{} {}", down.stdout, down.stderr);
    // Gone, or dead and not yet noticed by its parent.
    let line = || fs::read_to_string(format!("/proc/{holder}/cmdline")).unwrap_or_default();
    wait_until("its first process is gone", Duration::from_secs(5), || line().is_empty());
}

/// What labs could leave behind: interfaces, namespaces, mounts, files of hugepages, names of sockets, and programs that know
/// a lab's directory. Other tests run beside: their namespaces begin with `lr`.
pub fn traces() -> BTreeSet<String> {
    let read = |path: &str| support::run(&["cat", path]);
    let names = |dir: &str| -> Vec<String> {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().display().to_string()).collect()
    };
    let mut all = BTreeSet::new();
    let mut add = |kind: &str, what: &mut dyn Iterator<Item = String>| all.extend(what.map(|w| format!("{kind} {w}")));
    let first = |line: &str| line.split_whitespace().next().unwrap_or("").to_owned();
    add("interface", &mut support::run(&["ip", "-br", "link"]).lines().map(first));
    add("netns", &mut support::run(&["ip", "netns"]).lines().filter(|l| !l.starts_with("lr")).map(first));
    let of_lab = |line: &&str| line.contains("linerate-lab") || line.contains("/run/lab");
    add("mount", &mut read("/proc/mounts").lines().filter(of_lab).map(str::to_owned));
    let sockets = read("/proc/net/unix");
    add("socket", &mut sockets.lines().filter(of_lab).filter_map(|l| Some(l.split_whitespace().last()?.to_owned())));
    for dir in ["/dev/hugepages", "/run/lab", "/var/run/openvswitch"] {
        add("file", &mut names(dir).into_iter());
    }
    let known = ["/run/lab/", "/tmp/lab.", "lab-hold"];
    let processes = support::run(&["ps", "-eo", "args"]);
    let of_lab = |line: &&str| known.iter().any(|word| line.contains(word));
    add("process", &mut processes.lines().filter(of_lab).map(|l| l.chars().take(60).collect()));
    all
}

/// Hops of the first direction of the only trial: place, way and frames.
fn hops(result: &Value) -> Vec<(String, String, Option<u64>)> {
    let hops = result["trials"][0]["directions"][0]["hops"].as_array().cloned().unwrap_or_default();
    let text = |hop: &Value, key: &str| hop[key].as_str().unwrap_or_default().to_owned();
    hops.iter().map(|hop| (text(hop, "at"), text(hop, "way"), hop["frames"].as_u64())).collect()
}

#[test]
fn labs_of_every_kind_come_up_count_to_the_frame_and_go_without_a_trace() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    let before = traces();
    // Each topology is measured by its document's plan elsewhere.
    let topologies: [(&str, &[&str], usize); 7] = [
        ("phy-ovs-phy", &[], 4),
        ("phy-vm-phy", &["--application", "l2-macswap"], 8),
        ("phy-vm-vm-phy", &["--application", "testpmd-io"], 12),
        ("phy-vm-vm-phy", &["--application", "l3"], 12),
        ("onp-40g-scenario-2", &["--no-huge"], 12),
        ("kernel-bridge", &[], 4),
        ("kernel-router", &[], 4),
    ];
    for (topology, flags, passages) in topologies {
        let name = support::unique("lab");
        let guests = ["--guests", "process"];
        does(&[&["lab", "up", topology, "--name", &name], flags, &guests].concat());
        let again = linerate(&["lab", "up", topology, "--name", &name]);
        assert_eq!(again.code, 2, "{}", again.stderr);
        let load = if passages > 8 { "5kpps" } else { "20kpps" };
        // As many flows as the switch spreads over ways, so that each has some.
        let trial =
            ["trial", "--lab", &name, "--load", load, "--duration", "300ms", "--flows", "12", "--json", "-", "-q"];
        let trial = linerate(&trial);
        // Shared CPUs lose frames; the hops have to say where.
        assert!(matches!(trial.code, 0 | 3), "{topology}: {}{}", trial.stdout, trial.stderr);
        let result = trial.json();
        let hops = hops(&result);
        assert_eq!(hops.len(), passages, "{topology}: {hops:?}");
        let frames: Vec<u64> = hops.iter().map(|hop| hop.2.unwrap_or_else(|| panic!("unknown: {hops:?}"))).collect();
        let direction = &result["trials"][0]["directions"][0];
        assert_eq!(frames[0], direction["sent"], "{hops:?}");
        assert_eq!(frames.last().copied(), direction["received"].as_u64(), "{hops:?}");
        assert!(
            frames.windows(2).all(|pair| pair[0] >= pair[1]),
            "a hop has more frames than the one before: {hops:?}"
        );
        assert!(frames.last() > Some(&0), "nothing came through {topology}: {hops:?}");
        assert_eq!(result["lab"]["topology"], topology);
        assert!(result["lab"]["commands"].as_array().is_some_and(|all| !all.is_empty()));
        assert!(!result["lab"]["versions"].to_string().contains("Usage"), "{}", result["lab"]["versions"]);
        assert_eq!(linerate(&["lab", "check", &name]).code, 0);
        does(&["lab", "down", &name]);
        assert_eq!(traces(), before, "{topology}");
    }
}

#[test]
fn a_killed_lab_leaves_nothing() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    let before = traces();
    for wait_ms in [0, 20, 60, 120, 200, 350, 550, 800, 1_200, 1_700] {
        let name = support::unique("lab");
        let mut up = Command::new(BINARY);
        up.args(["lab", "up", "phy-vm-phy", "--guests", "process", "--name", &name])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut up = up.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait_ms));
        let holder = || {
            let all =
                fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
            all.filter(|pid| {
                let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                let nested =
                    status.lines().any(|l| l.starts_with("NSpid:") && l.split_whitespace().nth(2) == Some("1"));
                nested && line.contains("lab-hold") && line.contains(&name)
            })
            .collect::<Vec<_>>()
        };
        let mut found = Vec::new();
        wait_until("a lab's holder", Duration::from_secs(10), || {
            found = holder();
            !found.is_empty()
        });
        for pid in found {
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        up.wait().unwrap();
        wait_until("nothing is left", Duration::from_secs(5), || traces() == before);
        assert_eq!(linerate(&["lab", "check", &name]).code, 4, "a lab that was killed is not up");
    }
}

#[test]
fn a_lab_that_fails_at_any_step_leaves_nothing() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    let before = traces();
    for (topology, flags) in [("phy-vm-phy", &["--guests", "process"][..]), ("kernel-router", &[])] {
        for step in 0.. {
            assert!(step < 100, "{topology}: its steps have no end");
            let (name, number) = (support::unique("lab"), step.to_string());
            let up = linerate(&[&["lab", "up", topology, "--name", &name, "--fail-at", &number], flags].concat());
            if up.code == 0 {
                // There is no such step: it is up.
                assert!(step > 5, "{topology}: only {step} steps");
                does(&["lab", "down", &name]);
                assert_eq!(traces(), before, "{topology}");
                break;
            }
            assert_eq!((up.code, up.stderr.lines().count()), (4, 1), "{topology} {step}: {}", up.stderr);
            assert!(up.stderr.contains("made to fail"), "{topology} {step}: {}", up.stderr);
            wait_until("nothing is left", Duration::from_secs(5), || traces() == before);
        }
    }
}

#[test]
fn a_whole_run_brings_up_measures_and_ends() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    let before = traces();
    let flags = ["--quick", "--frame-sizes", "64", "--no-latency", "--upper", "50kpps", "--json", "-", "-q"];
    let run = linerate(&[&["lab", "run", "kernel-bridge", "--name", &support::unique("lab")][..], &flags].concat());
    assert!(matches!(run.code, 0 | 3), "{}{}", run.stdout, run.stderr);
    assert_eq!(run.json()["lab"]["topology"], "kernel-bridge");
    assert_eq!(traces(), before);
    // The plan names its topology: one command, no lab before, none after.
    let run = linerate(&[&["bench", "--plan", "onp-phy-ovs-phy:1-flow", "--lab"][..], &flags].concat());
    assert!(matches!(run.code, 0 | 1 | 3), "{}{}", run.stdout, run.stderr);
    assert_eq!(run.json()["lab"]["topology"], "phy-ovs-phy");
    assert_eq!(traces(), before);
    // A flag of bench that is wrong is bench's to refuse, and the lab goes all the same.
    let wrong = linerate(&["lab", "run", "kernel-bridge", "--name", &support::unique("lab"), "--frame-sizes", "1"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    assert_eq!(traces(), before);
}

#[test]
fn an_ordinary_user_has_labs() {
    let _alone = exclusive();
    require(&ALL);
    let before = traces();
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("linerate");
    fs::copy(BINARY, &program).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // The user and the group of nobody, who owns nothing and may not read what root has changed.
    let nobody = "mount -t tmpfs none /var/lib && mkdir -pm 700 /var/lib/linerate/journal && exec setpriv \"$@\"";
    let user = |args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", nobody, "-", "--reuid=65534", "--regid=65534", "--clear-groups"]);
        ended(&command.arg(&program).args(args).env("HOME", "/tmp").current_dir("/tmp").output().unwrap())
    };
    let ovs = [("phy-ovs-phy", 4), ("phy-vm-phy --guests process --no-huge", 8)];
    let others = [("phy-phy", 4), ("phy-phy --application testpmd-io --no-huge", 4), ("kernel-bridge", 4)];
    for (flags, all) in others.into_iter().chain(ovs) {
        let flags: Vec<&str> = flags.split(' ').collect();
        let name = support::unique("lab");
        let up = user(&[&["lab", "up"], &flags[..], &["--name", &name]].concat());
        assert_eq!(up.code, 0, "{flags:?}: {}", up.stderr);
        let trial = user(&["trial", "--lab", &name, "--load", "5kpps", "--duration", "300ms", "--json", "-", "-q"]);
        assert!(matches!(trial.code, 0 | 3), "{flags:?}: {}{}", trial.stdout, trial.stderr);
        let hops = hops(&trial.json());
        let equal = hops.iter().all(|hop| hop.2 == hops[0].2 && hop.2 > Some(0));
        assert!(hops.len() == all && equal, "{flags:?}: {hops:?}");
        let down = user(&["lab", "down", &name]);
        assert_eq!((down.code, traces()), (0, before.clone()), "{flags:?}: {}", down.stderr);
    }
    // A device is written although its directory is not this user's.
    let trial = user(&["trial", "--dut", "l2", "--load", "1kpps", "--duration", "100ms", "--json", "/dev/null", "-q"]);
    assert!(matches!(trial.code, 0 | 3), "{}{}", trial.stdout, trial.stderr);
}

#[test]
fn parts_that_take_turns_on_a_cpu_have_a_figure() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    // Two CPUs: the switch and the guest share the one that is not the tester's.
    let name = support::unique("lab");
    let mut up = Command::new("taskset");
    let up = up.args(["-c", "0,1", BINARY, "lab", "up", "phy-vm-phy", "--guests", "process", "--application", "l2"]);
    let up = up.args(["--name", &name]).output().unwrap();
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
    let flags = ["--frame-sizes", "64", "--upper", "1Mpps", "--json", "-"];
    let run = linerate(&[&["bench", "--lab", &name][..], &flags, &SHORT].concat());
    assert!(matches!(run.code, 0 | 3), "{}{}", run.stdout, run.stderr);
    let result = run.json();
    assert_eq!(result["lab"]["shared_cpus"], serde_json::json!([0]));
    assert_eq!(result["effective_plan"]["trust"]["evidence"], "whole-trial");
    let highest = result["sizes"][0]["throughput_fps"].as_f64();
    assert!(run.code == 3 || highest > Some(1_000.0), "{}", result["sizes"][0]);
}

#[test]
fn the_script_builds_the_same_testbed() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    let before = traces();
    let script = does(&["lab", "show", "phy-ovs-phy", "--script"]).stdout;
    let dir = tempfile::tempdir().unwrap();
    let (file, result) = (dir.path().join("lab.sh"), dir.path().join("result"));
    fs::write(&file, script).unwrap();
    let run = |shell: &str, what: &str| {
        let out = Command::new(shell).args(["-c", what]).stdin(Stdio::null()).output().unwrap();
        let printed = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success(), "{what}: {printed}{}", String::from_utf8_lossy(&out.stderr));
        printed
    };
    let printed = run("dash", &format!("dash {}", file.display()));
    let said = |after: &str| printed.lines().skip_while(|line| *line != after).nth(1).unwrap().to_owned();
    // As it says, but a single trial.
    let ports = said("# Measure:").split_once(" --port").unwrap().1.replace(" --evidence whole-trial", "");
    let trial = "trial --load 20kpps --duration 300ms -q --json";
    run("dash", &format!("{BINARY} {trial} {} --port{ports} >/dev/null || [ $? = 3 ]", result.display()));
    let json: Value = serde_json::from_slice(&fs::read(result).unwrap()).unwrap();
    assert!(json["trials"][0]["directions"][0]["received"].as_u64() > Some(0), "{json}");
    run("dash", &said("# End:"));
    wait_until("nothing is left of the script", Duration::from_secs(5), || traces() == before);
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("own.toml");
    fs::write(&file, "name = 'x'\ndescription = ''\nlink = [{ ends = ['tester:0', 'vm1:0'] }]\n").unwrap();
    let file = file.to_str().unwrap();
    let switch = dir.path().join("switch.toml");
    let own = does(&["lab", "show", "phy-vm-phy", "--toml"]).stdout.replace("br0", "vm1p0");
    fs::write(&switch, own).unwrap();
    let switch = switch.to_str().unwrap();
    let nics = ["--phy", "0000:00:1.0,0000:00:2.0", "--tester-ports", "eth:x,eth:y"];
    let far = [&["lab", "up", "phy-ovs-phy", "--on", "ssh://nowhere.invalid", "--core-plan", "plan.json"], &nics[..]]
        .concat();
    let wrong: [(&[&str], i32); 25] = [
        (&["lab", "up", switch], 2),
        (&far, 2),
        (&["lab", "up", "kernel-bridge", "--logs", "/run/logs"], 2),
        (&["lab", "run", "kernel-bridge", "--quick", "--json", "/dev/shm/result.json"], 2),
        (&["lab", "run", "kernel-bridge", "--plan", "no-such-plan"], 2),
        (&["lab", "up", "phy-phy-phy"], 2),
        (&["lab", "up", file], 2),
        (&["lab", "up", "phy-ovs-phy", "--queues", "0"], 2),
        (&["lab", "up", "phy-ovs-phy", "--ring", "100"], 2),
        (&["lab", "up", "phy-ovs-phy", "--pmd-cpus", "4000"], 2),
        (&["lab", "up", "phy-ovs-phy", "--name", "a/b"], 2),
        (&["lab", "up", "phy-ovs-phy", "--pmds", "64"], 2),
        (&["lab", "show", "phy-vm-phy", "--guests", "process", "--guest-spec", "vm1"], 2),
        (&["lab", "up", "phy-vm-phy", "--application", "vpp"], 2),
        // Flags that nothing here would follow.
        (&["lab", "show", "phy-ovs-phy", "--guests", "tcg"], 2),
        (&["lab", "show", "kernel-router", "--no-huge"], 2),
        (&["lab", "up", "phy-phy", "--kernel-in", "vm"], 2),
        (&["lab", "show", "phy-vm-phy", "--guests", "process", "--guest-memory", "2048"], 2),
        (&["lab", "show", "phy-vm-phy", "--disk", "vm1=/a", "--disk", "vm1=/b"], 2),
        (&["lab", "show", "phy-vm-phy", "--guests", "tcg", "--disk", "vm1=/dev/null", "--application", "l2"], 2),
        (&["lab", "up", "phy-vm-phy", "--pmds", "-1"], 2),
        (&["lab", "up", "phy-vm-phy", "--pmd-cpus", "a"], 2),
        (&["lab", "show", "phy-ovs-phy", "--phy", "a,b", "--tester-ports", "c"], 2),
        (&["lab", "down", "no-such-lab"], 4),
        (&["trial", "--lab", "no-such-lab", "--load", "1kpps"], 4),
    ];
    for (args, code) in wrong {
        let refused = linerate(args);
        assert_eq!((refused.code, refused.stderr.lines().count()), (code, 1), "{args:?}: {}", refused.stderr);
    }
    // A plan for more polling threads than this machine has room for says what may be chosen.
    let mut small = Command::new("taskset");
    let plan = ["lab", "run", "phy-vm-vm-phy", "--plan", "nfvi-two-vm-2q4pmd", "--quick"];
    let small = ended(&small.args(["-c", "0,1", BINARY]).args(plan).output().unwrap());
    assert_eq!((small.code, small.stderr.lines().count()), (4, 1), "{}", small.stderr);
    assert!(small.stderr.contains("--pmds 1 --queues 2 --plan"), "{}", small.stderr);
    // Programs that are missing are named, with the package that has them: unshare is in none of these directories.
    let mut bare = Command::new(BINARY);
    let out = bare.args(["lab", "up", "kernel-bridge"]).env("PATH", "/nowhere").output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!((out.status.code(), said.lines().count()), (Some(4), 1), "{said}");
    assert!(said.contains("util-linux"), "{said}");
}

#[test]
fn a_run_that_is_killed_takes_its_lab_and_its_bench_with_it() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    let before = traces();
    let name = support::unique("lab");
    let mut run = Command::new(BINARY);
    run.args(["lab", "run", "kernel-bridge", "--name", &name, "--frame-sizes", "64,128,256", "--quick", "-q"]);
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let measures = || {
        let all = Command::new("ps").args(["-eo", "args"]).output().unwrap();
        String::from_utf8_lossy(&all.stdout).lines().any(|line| line.contains("bench --lab --frame-sizes 64,128,256"))
    };
    wait_until("the run in the lab", Duration::from_secs(20), measures);
    run.kill().unwrap();
    run.wait().unwrap();
    wait_until("the end of the run in the lab", Duration::from_secs(1), || !measures());
    wait_until("the end of the lab", Duration::from_secs(20), || traces() == before);
}

#[test]
fn what_is_made_to_fail_comes_back() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    let name = support::unique("lab");
    does(&["lab", "up", "phy-vm-phy", "--name", &name, "--guests", "process"]);
    let through = || {
        let trial = linerate(&["trial", "--lab", &name, "--load", "5kpps", "--duration", "300ms", "--json", "-", "-q"]);
        assert!(matches!(trial.code, 0 | 3), "{}{}", trial.stdout, trial.stderr);
        let result = trial.json();
        let thread = &result["trials"][0]["switch_threads"][0];
        let received = hops(&result).last().and_then(|hop| hop.2).unwrap();
        // The switch has them twice: to the guest and back.
        assert!(
            thread["packets"].as_u64() >= Some(2 * received) && thread["busy_cycles"].as_u64() > Some(0),
            "{thread}"
        );
        received
    };
    let listed = does(&["lab", "fault", "--lab", &name]).stdout;
    assert!(through() > 0);
    for fault in ["restart-switch", "restart:vm1"] {
        assert!(listed.contains(fault), "{listed}");
        // It returns when the guest is connected again.
        does(&["lab", "fault", "--lab", &name, fault]);
        does(&["lab", "check", &name]);
        assert!(through() > 0, "{fault}");
    }
    assert_eq!(linerate(&["lab", "fault", "--lab", &name, "earthquake"]).code, 2);
    does(&["lab", "fault", "--lab", &name, "kill-switch"]);
    assert_eq!(linerate(&["lab", "check", &name]).code, 1);
    // A lab that is not what was asked for is not measured.
    let refused = linerate(&["trial", "--lab", &name, "--load", "5kpps", "--duration", "300ms"]);
    assert_eq!(refused.code, 4, "{}{}", refused.stdout, refused.stderr);
    assert!(
        refused.stderr.contains("vswitchd has ended") && refused.stderr.contains("restart-switch"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_switch_that_is_restarted_has_a_reset_time() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    let busy = others_take_cpus();
    let name = support::unique("lab");
    let flags = ["--quick", "--throughput", "20kpps", "--max-repeats", "3", "--json", "-", "-q"];
    let run = [&["lab", "run", "phy-ovs-phy", "--name", &name, "--plan", "reset"], &flags[..]].concat();
    let result = match until_trusted_unless_busy(3, busy, || linerate(&run)) {
        Ok(ended) => ended.json(),
        Err(last) => {
            // Nothing is claimed then, and why.
            let tests = &last.json()["tests"];
            assert!(tests[0]["reason"].as_str().is_some_and(|why| !why.is_empty()), "{tests}");
            return;
        }
    };
    let found = &result["tests"][0]["found"]["reset"]["trials"][0];
    let by = |way: &str| found[way].as_f64().unwrap_or_else(|| panic!("{way}: {found}"));
    // It is away, and it comes back: both ways of telling agree on how long that was.
    let (loss, stamps) = (by("by_loss_s"), by("by_timestamps_s"));
    assert!((0.02..4.0).contains(&stamps) && (loss - stamps).abs() < 0.1 + 0.3 * stamps, "{loss} {stamps}");
    // What it had counted went with it.
    let hops = &result["trials"].as_array().unwrap().last().unwrap()["directions"][0]["hops"];
    assert!(hops[1]["at"] == "br0:1" && hops[1]["frames"].is_null(), "{hops}");
}

fn received_by(trial: &Value) -> u64 {
    trial["directions"].as_array().unwrap().iter().filter_map(|direction| direction["received"].as_u64()).sum()
}

/// Each hop of each direction of each trial: what one counted, the next did or lost, and the ends are the tester's.
fn adds_up(topology: &str, passages: usize, result: &Value) {
    for trial in result["trials"].as_array().unwrap() {
        for direction in trial["directions"].as_array().unwrap() {
            let hops = direction["hops"].as_array().unwrap();
            assert_eq!(hops.len(), passages, "{topology}: {hops:?}");
        }
        // Frames that come after the end of an interrupted trial are counted by it on the way only.
        if trial["violations"].as_array().is_some_and(|all| !all.is_empty()) {
            continue;
        }
        for direction in trial["directions"].as_array().unwrap() {
            let hops = direction["hops"].as_array().unwrap();
            let frames: Vec<u64> = hops
                .iter()
                .map(|hop| hop["frames"].as_u64().unwrap_or_else(|| panic!("{topology}: unknown: {hop}")))
                .collect();
            assert_eq!(frames[0], direction["sent"], "{topology}: {hops:?}");
            let received = direction["received"].as_u64().unwrap() + direction["duplicates"].as_u64().unwrap_or(0);
            assert_eq!(frames.last(), Some(&received), "{topology}: {hops:?}");
            assert!(frames.windows(2).all(|pair| pair[0] >= pair[1]), "{topology}: {hops:?}");
        }
    }
}

#[test]
fn every_topology_is_measured_by_its_documents_plan() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    let before = traces();
    // Shortened: one size, and loads far below what even parts that take turns on one CPU carry.
    let plans = [
        ("phy-phy", "onp-phy-phy", "64", 4),
        ("phy-ovs-phy", "onp-phy-ovs-phy:1000-flows", "64", 4),
        ("phy-vm-phy", "onp-phy-vm-phy:1-flow", "256", 8),
        ("phy-vm-vm-phy", "nfvi-two-vm-1q2pmd", "64", 12),
        ("vxlan", "onp-vxlan", "178", 8),
        ("vxlan-forward", "vxlan-forward", "128", 12),
        ("onp-40g-scenario-1", "onp-40g-scenario-1", "256", 8),
        ("onp-40g-scenario-2", "onp-40g-scenario-2", "256", 12),
        ("onp-40g-scenario-3", "onp-40g-scenario-3", "256", 12),
        ("flow-loggers-12", "flow-loggers-12", "64", 8),
    ];
    let dir = tempfile::tempdir().unwrap();
    for (topology, plan, size, passages) in plans {
        let file = dir.path().join(topology);
        let file = file.to_str().unwrap();
        let name = support::unique("lab");
        // Twelve loggers take more hugepages than there are.
        let memory = if topology.starts_with("flow") { &["--no-huge"][..] } else { &[] };
        // Fewer polling threads than most documents have: two CPUs have room for one.
        let lab = ["lab", "run", topology, "--name", &name, "--guests", "process", "--pmds", "1"];
        let bench = ["--plan", plan, "--frame-sizes", size, "--upper", "2kpps", "--json", file];
        let run = linerate(&[&lab, memory, &bench[..], &SHORT].concat());
        assert!(matches!(run.code, 0 | 1 | 3), "{topology}: {}{}", run.stdout, run.stderr);
        let result: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        assert_eq!(result["lab"]["topology"], topology);
        let cores = result["lab"]["pmd_cpus"].as_array().map_or(0, Vec::len);
        assert!(cores > 0 || topology == "phy-phy", "{}", result["lab"]);
        adds_up(topology, passages, &result);
        let received: u64 = result["trials"].as_array().unwrap().iter().map(received_by).sum();
        assert!(received > 0, "{topology}: nothing came through");
        assert_eq!(traces(), before, "{topology}");
    }
    // The published table of PHY-VM-VM-PHY, out of its run.
    let table = does(&["runs", "show", dir.path().join("phy-vm-vm-phy").to_str().unwrap(), "--layout", "nfvi"]).stdout;
    assert!(table.contains("layout of the two-VM document") && table.contains("64"), "{table}");
}

#[test]
fn a_lab_outlives_the_terminal_that_it_was_started_in() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    let name = support::unique("lab");
    // `script` has a terminal for this command alone, and closes it behind it: the kernel hangs up.
    let up = format!("{BINARY} lab up phy-ovs-phy --name {name}");
    let mut terminal = Command::new("script");
    let status = terminal.args(["-qec", &up, "/dev/null"]).stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{status}");
    does(&["lab", "check", &name]);
    does(&["lab", "down", &name]);
}

#[test]
fn a_tunnel_comes_back_with_its_switch() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    let name = support::unique("lab");
    does(&["lab", "up", "vxlan", "--name", &name, "--guests", "process"]);
    // Its addresses and neighbours were in the switch, and in the kernel behind it.
    does(&["lab", "fault", "--lab", &name, "restart-switch"]);
    let flags = ["--plan", "onp-vxlan", "--frame-sizes", "178", "--upper", "2kpps", "--json", "-"];
    let run = linerate(&[&["bench", "--lab", &name][..], &flags, &SHORT].concat());
    assert!(matches!(run.code, 0 | 1 | 3), "{}{}", run.stdout, run.stderr);
    let result = run.json();
    adds_up("vxlan", 8, &result);
    assert!(result["trials"].as_array().unwrap().iter().map(received_by).sum::<u64>() > 0, "nothing came through");
}
