//! `linerate host` in a machine of its own, whose boot line can be wrong and right: four CPUs under QEMU (TCG).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use lab::{
    line::CommandLine,
    protocol::{Answer, Ask},
    step::Step,
    vm::{ask, qemu, Definition, GuestSpec},
};
use serde_json::Value;

use crate::support::{self, exclusive, labs::does, require, Needs};

/// How long an emulated machine may take to boot, and to answer.
const BOOT: Duration = Duration::from_secs(120);
const ANSWER: Duration = Duration::from_secs(120);
/// Every boot has it.
const LINE: &str = "console=ttyS0 quiet panic=-1";

/// What a command in it did.
#[derive(Debug)]
struct Ran {
    succeeded: bool,
    printed: String,
}

/// A machine that runs until this goes.
struct Machine {
    qemu: Child,
    socket: std::path::PathBuf,
}

impl Machine {
    /// Boots it with these words, and a disk that outlives it.
    fn boot(dir: &Path, words: &str) -> Self {
        let definition = Definition {
            name: "host".to_owned(),
            accelerator: "tcg",
            spec: GuestSpec::default(),
            disk: None,
            mib: 1024,
            hugepages: false,
            vcpus: 4,
            pins: Vec::new(),
            emulator_cpu: 0,
            ports: Vec::new(),
            kernel_line: format!("{LINE} {words}"),
            files: dir.join("host").to_str().unwrap().to_owned(),
        };
        let line = qemu::command(&definition).0;
        let disk = format!("file={},if=none,id=kept,format=raw", dir.join("kept").display());
        let console = fs::File::create(dir.join("console")).unwrap();
        let qemu = Command::new(&line[0])
            .args(&line[1..])
            .args(["-drive", &disk, "-device", "virtio-blk-pci,drive=kept"])
            .stdin(Stdio::null())
            .stdout(console.try_clone().unwrap())
            .stderr(console)
            .spawn()
            .expect("QEMU starts");
        let machine = Self { qemu, socket: dir.join("host.ctl") };
        let until = Instant::now() + BOOT;
        while !fs::read_to_string(dir.join("console")).unwrap_or_default().contains("host is up") {
            assert!(Instant::now() < until, "{}", fs::read_to_string(dir.join("console")).unwrap_or_default());
            std::thread::sleep(Duration::from_millis(100));
        }
        machine
    }

    fn ask(&self, line: &str) -> Ran {
        let line = CommandLine::words("sh -c").with([line]);
        let asked = Ask::Run { node: "host".to_owned(), line };
        match ask(&self.socket, &asked, ANSWER).unwrap_or_else(|e| panic!("{e}")) {
            Answer::Ran { succeeded, printed, errors } => Ran { succeeded, printed: printed + &errors },
            other => panic!("{other:?}"),
        }
    }

    /// Runs a command in it. The machine's first process waits for none as long as some of these take.
    fn run(&self, line: &str) -> Ran {
        self.ask(&format!(
            "rm -f /tmp/code; ({line}; echo $? >/tmp/code.now; mv /tmp/code.now /tmp/code) >/tmp/out 2>/tmp/errors &"
        ));
        let until = Instant::now() + ANSWER;
        while !self.ask("test -e /tmp/code").succeeded {
            assert!(Instant::now() < until, "{line}: {:?}", self.ask("cat /tmp/out /tmp/errors"));
            std::thread::sleep(Duration::from_millis(100));
        }
        let of = |file: &str| self.ask(&format!("cat /tmp/{file}")).printed;
        Ran { succeeded: of("code").trim() == "0", printed: of("out") + &of("errors") }
    }

    fn audit(&self, flags: &str) -> Vec<Value> {
        let ran =
            self.run(&format!("/init host audit --for bench --json /tmp/audit {flags} >/dev/null; cat /tmp/audit"));
        let json: Value = serde_json::from_str(&ran.printed).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
        json["findings"].as_array().unwrap().clone()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // As a power cut.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
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
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let programs = ["sh", "mount", "cat", "ls", "mkdir", "mv", "rm", "test", "taskset"].map(str::to_owned).to_vec();
    let keep = "mkdir -p /var/lib/linerate && mount -t ext4 /dev/vda /var/lib/linerate";
    let spec = GuestSpec {
        name: "host".to_owned(),
        modules: vec!["virtio_pci".to_owned(), "virtio_console".to_owned(), "virtio_blk".to_owned()],
        programs,
        steps: vec![Step::Run(CommandLine::words("sh -c").with([keep]))],
        ..GuestSpec::default()
    };
    fs::write(file("spec"), serde_json::to_string(&spec).unwrap()).unwrap();
    does(&[
        "lab",
        "guest",
        "image",
        "--spec",
        &file("spec"),
        "--initrd",
        &file("host.cpio"),
        "--kernel",
        &file("host.kernel"),
    ]);
    fs::File::create(file("kept")).unwrap().set_len(16 << 20).unwrap();
    support::run(&["mkfs.ext4", "-q", "-F", &file("kept")]);

    // Wrong: nothing on the boot line.
    let machine = Machine::boot(dir.path(), "");
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
    let machine = Machine::boot(dir.path(), &words);
    let status = machine.run("/init host status");
    assert!(status.succeeded && !status.printed.contains("changes until the next boot"), "{status:?}");
    assert_eq!(machine.run(&format!("{knobs} >/dev/null; cat /proc/sys/vm/stat_interval")).printed.trim(), "1");
    let reverted = machine.run("/init host revert; ls /var/lib/linerate/journal");
    assert!(!reverted.printed.contains(".journal"), "{reverted:?}");
    let found = machine.audit("--outcome --duration 2s");
    for id in ["cores.isolated", "cores.tickless", "cores.rcu_callbacks"] {
        assert_eq!(verdicts(&found, id), ["ok"], "{id}: {found:?}");
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
}
