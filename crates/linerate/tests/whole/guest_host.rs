//! `linerate host` in a machine of its own, whose boot line can be wrong and right: four CPUs under QEMU (TCG).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::support::{
    self, exclusive,
    guest::{Guest, Parts},
    require, Needs,
};

/// How long a command in an emulated machine may take.
const ANSWER: Duration = Duration::from_secs(120);

/// What a command in it did.
#[derive(Debug)]
struct Ran {
    succeeded: bool,
    printed: String,
}

/// A machine that runs until this goes, as by a power cut.
struct Machine(Guest);

impl Machine {
    /// Boots it with these words, and a disk that outlives it.
    fn boot(disk: &Path, words: &str) -> Self {
        let guest = Guest::boot(&Parts {
            machine: "q35",
            programs: &["sh", "mount", "cat", "ls", "mkdir", "mv", "rm", "test", "taskset"],
            mib: 1024,
            cpus: 4,
            words,
            disk: Some(disk),
            ..Parts::default()
        });
        guest.script("mkdir -p /var/lib/linerate; mount -t ext4 /dev/vda /var/lib/linerate");
        Self(guest)
    }

    /// Runs a command in it. Its first process waits for none as long as some of these take.
    fn run(&self, line: &str) -> Ran {
        let background = format!(
            "rm -f /tmp/code; (set +e; {line}; echo $? >/tmp/code.now; mv /tmp/code.now /tmp/code) </dev/null >/tmp/out 2>&1 &"
        );
        self.0.script(&background);
        let until = Instant::now() + ANSWER;
        while !self.0.run("test -e /tmp/code").0 {
            assert!(Instant::now() < until, "{line}: {:?}", self.0.run("cat /tmp/out"));
            std::thread::sleep(Duration::from_millis(100));
        }
        Ran { succeeded: self.0.does("cat /tmp/code").trim() == "0", printed: self.0.does("cat /tmp/out") }
    }

    fn audit(&self, flags: &str) -> Vec<Value> {
        let ran =
            self.run(&format!("/init host audit --for bench --json /tmp/audit {flags} >/dev/null; cat /tmp/audit"));
        let json: Value = serde_json::from_str(&ran.printed).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
        json["findings"].as_array().unwrap().clone()
    }
}

fn verdicts(findings: &[Value], id: &str) -> Vec<String> {
    let of = findings.iter().filter(|finding| finding["id"] == id);
    of.map(|finding| finding["verdict"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn wrong_and_right_boot_lines_are_told_and_changes_outlive_neither_revert_nor_reboot() {
    let _alone = exclusive();
    require(&[Needs::Root, Needs::Machines]);
    let dir = tempfile::tempdir().unwrap();
    let disk = dir.path().join("disk");
    fs::File::create(&disk).unwrap().set_len(16 << 20).unwrap();
    support::run(&["mkfs.ext4", "-q", "-F", disk.to_str().unwrap()]);

    // Wrong: nothing on the boot line.
    let machine = Machine::boot(&disk, "");
    let found = machine.audit("");
    assert_eq!(verdicts(&found, "cores.isolated"), ["bad"], "{found:?}");
    assert_eq!(verdicts(&found, "power.governor"), ["n/a"], "a virtual machine has none");
    assert_eq!(verdicts(&found, "kernel.statistics"), ["warn"]);
    let knobs = "cat /proc/sys/vm/* /proc/sys/kernel/watchdog* /proc/sys/kernel/sched_rt_runtime_us \
                 /proc/irq/default_smp_affinity /sys/devices/virtual/workqueue/cpumask 2>/dev/null";
    let before = machine.run(knobs).printed;
    let plan = machine.run("/init host plan --for bench --out /var/lib/linerate/plan.toml && /init host plan --core-plan /var/lib/linerate/plan.toml --format grub");
    assert!(plan.succeeded, "{plan:?}");
    let words = plan.printed.lines().find_map(|line| line.strip_prefix("GRUB_CMDLINE_LINUX_DEFAULT=")).unwrap();
    let words = words.trim_matches('"').replace("$GRUB_CMDLINE_LINUX_DEFAULT", "");
    assert!(words.contains("isolcpus=") && words.contains("nohz_full="), "{words}");
    // Its exit code says whether the kernel refused something.
    let applied = machine.run("/init host apply --plan /var/lib/linerate/plan.toml; /init host status");
    assert!(applied.printed.contains("changes until the next boot"), "{applied:?}");
    let tuned = machine.audit("--outcome --duration 2s");
    assert_eq!(verdicts(&tuned, "kernel.statistics"), ["ok"]);
    // A setting that only a boot changes: the outcome is wrong and the setting is, too.
    for (finding, of) in tuned.iter().filter(|f| f["id"] == "outcome.tick").map(|f| (f, f["verdict"].as_str())) {
        assert_eq!((of, &finding["outcome"]), (Some("warn"), &Value::Null), "{finding}");
    }
    let reverted = machine.run("/init host revert");
    assert!(reverted.succeeded, "{reverted:?}");
    assert_eq!(machine.run(knobs).printed, before, "byte for byte");
    // Applied once more, and the power goes.
    machine.run("/init host apply --plan /var/lib/linerate/plan.toml");
    drop(machine);

    // Right: the plan's own words.
    let machine = Machine::boot(&disk, &words);
    let status = machine.run("/init host status");
    assert!(status.succeeded && !status.printed.contains("changes until the next boot"), "{status:?}");
    assert_eq!(machine.run(&format!("{knobs} >/dev/null; cat /proc/sys/vm/stat_interval")).printed.trim(), "1");
    let reverted = machine.run("/init host revert; ls /var/lib/linerate/journal");
    assert!(!reverted.printed.contains(".journal"), "{reverted:?}");
    let found = machine.audit("--outcome --duration 2s");
    for id in ["cores.isolated", "cores.tickless", "cores.rcu_callbacks"] {
        assert_eq!(verdicts(&found, id), ["ok"], "{id}: {found:?}");
    }
    // What polls goes to the cores that were kept for it, although no process begins there.
    let trial = machine.run(
        "/init trial --core-plan /var/lib/linerate/plan.toml --dut l2 --load 1kpps --duration 200ms -q --json /tmp/trial",
    );
    let result = machine.run("cat /tmp/trial").printed;
    let result: Value = serde_json::from_str(&result).unwrap_or_else(|e| panic!("{e}: {result} {trial:?}"));
    let lcores = result["trials"][0]["interference"]["lcores"].as_array().unwrap();
    let isolated = machine.run("cat /sys/devices/system/cpu/isolated").printed;
    for lcore in lcores {
        let cpu = lcore["cpu"].as_u64().unwrap() as u32;
        assert!(host::cpu_set::from_list(isolated.trim()).contains(&cpu), "{isolated}: {lcore}");
    }
    let kept: Vec<&Value> = found.iter().filter(|finding| finding["id"] == "outcome.tick").collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
    // The tick stops on a core that one thread has to itself; where it does not, that is a class of its own.
    for finding in kept {
        let verdict = finding["verdict"].as_str().unwrap();
        assert!(verdict == "ok" || finding["outcome"] == true, "{finding}");
    }
    // Two threads on a kept core bring it back: the setting is right and the outcome is wrong.
    let cpu = found.iter().find(|f| f["id"] == "outcome.tick").unwrap()["place"].as_str().unwrap().replace("cpu ", "");
    let two = machine.run(&format!(
        "taskset -c {cpu} sh -c 'while :; do :; done' & /init host audit --for bench --outcome --duration 2s --json /tmp/two >/dev/null; \
         kill $!; cat /tmp/two"
    ));
    let two: Value = serde_json::from_str(&two.printed).unwrap();
    let place = format!("cpu {cpu}");
    let find = |id: &str| {
        let all = two["findings"].as_array().unwrap();
        all.iter().find(|f| f["id"] == id && f["place"] == place.as_str()).unwrap().clone()
    };
    for id in ["outcome.switches", "outcome.tick"] {
        assert_eq!(
            (&find(id)["verdict"], &find(id)["outcome"]),
            (&Value::from("bad"), &Value::from(true)),
            "{}",
            find(id)
        );
    }
    assert!(find("outcome.switches")["got"].as_str().unwrap().contains("sh "), "{}", find("outcome.switches"));
    outlive_a_boot(machine, &disk, &words);
}

/// `--persist`: files of ours in /etc make the same changes at the next boot, and go with `revert`.
fn outlive_a_boot(machine: Machine, disk: &Path, words: &str) {
    let etc = "mkdir -p /var/lib/linerate/etc; mount --bind /var/lib/linerate/etc /etc";
    let files = "for f in /etc/*/* /etc/*/*/*; do test -f $f && echo $f; done; true";
    let knobs =
        "cat /proc/sys/vm/stat_interval /proc/sys/kernel/sched_rt_runtime_us /sys/devices/virtual/workqueue/cpumask";
    machine.0.script(etc);
    machine.run("/init host apply --plan /var/lib/linerate/plan.toml --persist");
    let (applied, ours) = (machine.run(knobs).printed, machine.run(files).printed);
    // The guest has no boot loader, so that no file is made for one.
    let [service, sysctl] = ["/etc/systemd/system/linerate-host.service", "/etc/sysctl.d/90-linerate.conf"];
    assert!([service, sysctl].iter().all(|file| ours.contains(file)), "{ours}");
    drop(machine);

    let machine = Machine::boot(disk, words);
    machine.0.script(etc);
    let fresh = machine.run(knobs).printed;
    assert_ne!(fresh, applied);
    assert_eq!(machine.run(files).printed, ours, "they outlive a power cut");
    // What the system does with them at a boot.
    for line in machine.run(&format!("cat {sysctl}")).printed.lines() {
        if let Some((key, value)) = line.split_once(" = ") {
            machine.run(&format!("echo {value} >/proc/sys/{}", key.replace('.', "/")));
        }
    }
    let unit = machine.run(&format!("cat {service}")).printed;
    let command = |key: &str| unit.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().to_owned();
    machine.run(&command("ExecStart="));
    assert_eq!(machine.run(knobs).printed, applied);
    let stopped = machine.run(&command("ExecStop="));
    assert!(stopped.succeeded, "{stopped:?}");
    assert_eq!(machine.run(files).printed, ours, "a stopped service takes no file along");
    let reverted = machine.run("/init host revert");
    assert!(reverted.succeeded, "{reverted:?}");
    assert_eq!(machine.run(files).printed, "");
    let status = machine.run("/init host status");
    assert!(!status.printed.contains("/etc/"), "{status:?}");
}
