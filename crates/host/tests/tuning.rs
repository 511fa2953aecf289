//! Plans are applied to a machine made of files, and taken back: after success, after a failure at each write, after a crash, by
//! two at once, after somebody else's change, after a reboot.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::{
    cell::Cell,
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use host::{
    audit::Mend,
    core_plan::CorePlan,
    cpu_set,
    journal::{self, OURS},
    tuning::{self, apply, status, ApplyError, HostPlan, Reverted, Status, Step, NAME, PERSISTENT},
    Roots,
};

/// A program that another test starts just now has this one's lock until it has replaced its copy of this process.
fn revert(roots: &Roots, dir: &Path, runtime: bool) -> io::Result<Reverted> {
    let until = Instant::now() + Duration::from_secs(1);
    loop {
        match tuning::revert(roots, dir, runtime) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {
                thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

const KNOBS: [(&str, &str, &str); 5] = [
    ("/proc/sys/kernel/watchdog", "1", "0"),
    ("/proc/sys/vm/stat_interval", "1", "10"),
    ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never", "never"),
    ("/sys/kernel/mm/ksm/run", "1", "0"),
    ("/sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us", "0", "n/a"),
];

struct Bench {
    root: tempfile::TempDir,
    roots: Roots,
    dir: PathBuf,
    plan: HostPlan,
}

impl Bench {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let bench = Self { roots: Roots::at(root.path()), dir: root.path().join("journal"), plan: plan(), root };
        KNOBS.iter().for_each(|(path, old, _)| bench.set(path, old));
        bench.set("/proc/sys/kernel/random/boot_id", "first");
        bench
    }

    fn set(&self, path: &str, text: &str) {
        let at = self.roots.of_machine(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, format!("{text}\n")).unwrap();
    }

    fn get(&self, path: &str) -> String {
        fs::read_to_string(self.roots.of_machine(path)).unwrap().trim_end().to_owned()
    }

    /// Every file of the machine but the journals, without the ends of lines: the kernel adds them.
    fn files(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        collect(self.root.path(), &self.dir, &mut found);
        found
    }

    fn apply(&self, persist: Option<&str>) -> Result<host::tuning::Applied, ApplyError> {
        apply(&self.roots, &self.dir, &self.plan, persist, || true)
    }
}

fn collect(at: &Path, without: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(at).unwrap().flatten() {
        let path = entry.path();
        if path == without {
            continue;
        }
        match path.is_dir() {
            true => collect(&path, without, found),
            false => {
                let text = fs::read_to_string(&path).unwrap().trim_end().to_owned();
                // What was chosen: that is what is written.
                let text = text.replace("always [madvise] never", "madvise");
                found.insert(path, text);
            }
        }
    }
}

fn plan() -> HostPlan {
    let step = |change| Step { id: "a.b".into(), why: "why".into(), change, interrupt: None };
    let writes = KNOBS.iter().map(|(path, _, new)| step(Mend::Write { path: path.into(), value: (*new).to_owned() }));
    let cores =
        CorePlan { housekeeping: cpu_set::from_list("0"), tester: cpu_set::from_list("1"), ..CorePlan::default() };
    let boot = step(Mend::Boot { word: "nohz_full=1".into() });
    HostPlan { version: 1, cores, steps: writes.chain([boot]).collect() }
}

#[test]
fn what_was_applied_is_taken_back() {
    let bench = Bench::new();
    let before = bench.files();
    assert_eq!(status(&bench.roots, &bench.dir).unwrap(), Status::default());
    let applied = bench.apply(None).unwrap();
    assert_eq!((applied.made.len(), applied.left.len(), applied.refused.len()), (5, 1, 0), "{applied:?}");
    assert_eq!(applied.left, ["boot with nohz_full=1"]);
    for (path, _, new) in KNOBS {
        assert_eq!(bench.get(path), new);
    }
    let now = status(&bench.roots, &bench.dir).unwrap();
    assert_eq!((now.runtime.len(), now.files.len(), now.held, now.is_nothing()), (5, 0, false, false));
    // Two at once, and twice.
    assert!(matches!(bench.apply(None), Err(ApplyError::Earlier(_))));
    let reverted = revert(&bench.roots, &bench.dir, false).unwrap();
    assert_eq!((reverted.back.len(), reverted.left.len(), reverted.nothing), (5, 0, false));
    assert_eq!(bench.files(), before);
    assert!(revert(&bench.roots, &bench.dir, false).unwrap().nothing);
    // What is so already is not ours to take back.
    bench.set(KNOBS[0].0, KNOBS[0].2);
    assert_eq!(bench.apply(None).unwrap().already.len(), 1);
    assert_eq!(revert(&bench.roots, &bench.dir, false).unwrap().back.len(), 4);
}

#[test]
fn a_failure_at_each_write_leaves_the_machine_as_it_was() {
    for (n, (path, ..)) in KNOBS.iter().enumerate() {
        let bench = Bench::new();
        // A directory in the place of a file: it can be neither read nor written.
        let at = bench.roots.of_machine(path);
        fs::remove_file(&at).unwrap();
        fs::create_dir(&at).unwrap();
        let before = bench.files();
        let Err(ApplyError::Failed { change, kept, .. }) = bench.apply(Some("/linerate")) else {
            panic!("{n}: applied")
        };
        assert!(!change.is_empty() && kept.is_empty());
        assert_eq!(bench.files(), before, "{n}");
        assert_eq!(journal::names(&bench.dir), Vec::<String>::new(), "{n}");
    }
}

#[test]
fn a_stop_before_each_write_leaves_the_machine_as_it_was() {
    for n in 0..=KNOBS.len() {
        let bench = Bench::new();
        let before = bench.files();
        let calls = Cell::new(0);
        let stopped = apply(&bench.roots, &bench.dir, &bench.plan, None, || {
            calls.set(calls.get() + 1);
            calls.get() <= n
        });
        assert!(matches!(stopped, Err(ApplyError::Failed { .. })), "{n}");
        assert_eq!(bench.files(), before, "{n}");
    }
}

#[test]
fn a_crash_after_each_write_is_taken_back() {
    for n in 0..=KNOBS.len() {
        let bench = Bench::new();
        let before = bench.files();
        let calls = Cell::new(0);
        let (journal, changed) = (journal::path_of(&bench.dir, NAME), Cell::new(None));
        let _ = apply(&bench.roots, &bench.dir, &bench.plan, None, || {
            calls.set(calls.get() + 1);
            if calls.get() == n + 1 {
                // As it stands now: what would be there if the program died.
                changed.set(Some((fs::read(&journal).unwrap(), bench.files())));
            }
            true
        });
        let (text, files) = changed.take().unwrap();
        revert(&bench.roots, &bench.dir, false).unwrap();
        files.iter().for_each(|(path, text)| fs::write(path, text).unwrap());
        // A last line that was cut off is none.
        fs::write(&journal, [text.as_slice(), b"{\"file\":{\"pa"].concat()).unwrap();
        assert_eq!(revert(&bench.roots, &bench.dir, false).unwrap().back.len(), n);
        assert_eq!(bench.files(), before, "{n}");
    }
}

#[test]
fn what_somebody_else_changed_is_left_alone_and_named() {
    let bench = Bench::new();
    bench.apply(None).unwrap();
    bench.set(KNOBS[1].0, "60");
    let reverted = revert(&bench.roots, &bench.dir, false).unwrap();
    assert_eq!(reverted.left, [("sysctl -w vm.stat_interval=1".to_owned(), "60".to_owned())]);
    assert_eq!((reverted.back.len(), bench.get(KNOBS[1].0)), (4, "60".to_owned()));
}

#[test]
fn files_of_ours_outlive_a_boot_and_go_with_revert() {
    let bench = Bench::new();
    // Without the program that reads it no file is made for the boot loader.
    bench.set("/usr/sbin/grubby", "");
    let elsewhere = bench.apply(Some("/usr/bin/linerate")).unwrap();
    assert_eq!(elsewhere.files, OURS[1..].iter().map(PathBuf::from).collect::<Vec<_>>());
    assert!(elsewhere.left.iter().all(|left| left.starts_with("grubby --update-kernel=ALL --args=")), "{elsewhere:?}");
    assert!(!elsewhere.left.is_empty());
    revert(&bench.roots, &bench.dir, false).unwrap();
    bench.set("/usr/sbin/update-grub", "");
    let before = bench.files();
    let applied = bench.apply(Some("/usr/bin/linerate")).unwrap();
    assert_eq!(applied.files, OURS.map(PathBuf::from));
    assert!(applied.left.is_empty());
    assert!(bench.get(OURS[0]).contains("nohz_full=1") && bench.get(OURS[1]).contains("kernel.watchdog = 0"));
    assert_eq!(HostPlan::parse(&bench.get(OURS[3])).unwrap(), bench.plan);
    // The boot: the kernel's files are as they were, ours are there, and the service applies again.
    bench.set("/proc/sys/kernel/random/boot_id", "second");
    KNOBS.iter().for_each(|(path, old, _)| bench.set(path, old));
    let now = status(&bench.roots, &bench.dir).unwrap();
    assert_eq!((now.runtime.len(), now.files.len(), now.held, now.is_nothing()), (0, 4, false, false));
    assert_eq!(bench.apply(None).unwrap().made.len(), 5);
    let runtime = revert(&bench.roots, &bench.dir, true).unwrap();
    assert_eq!((runtime.back.len(), runtime.files.len()), (5, 0));
    let reverted = revert(&bench.roots, &bench.dir, false).unwrap();
    assert_eq!((reverted.files.len(), reverted.back.len()), (4, 0));
    assert!(!bench.roots.of_machine("/etc/linerate").exists(), "the directory was ours");
    assert!(bench.roots.of_machine("/etc/sysctl.d").exists(), "this one is not");
    let after: BTreeMap<_, _> = bench.files().into_iter().filter(|(path, _)| !path.ends_with("boot_id")).collect();
    let before: BTreeMap<_, _> = before.into_iter().filter(|(path, _)| !path.ends_with("boot_id")).collect();
    assert_eq!(after, before);
}

#[test]
fn a_journal_that_is_held_is_undone_by_nobody_else() {
    let bench = Bench::new();
    bench.apply(None).unwrap();
    let path = host::journal::path_of(&bench.dir, host::tuning::NAME);
    let held = host::journal::hold(&path).unwrap();
    let kind = |result: std::io::Result<()>| result.unwrap_err().kind();
    let blocked = std::io::ErrorKind::WouldBlock;
    assert_eq!(kind(revert(&bench.roots, &bench.dir, true).map(|_| ())), blocked);
    assert_eq!(kind(host::journal::hold(&path).map(|_| ())), blocked);
    // What it waits for is told, instead of a command that would be refused.
    let Err(ApplyError::Journal(_, why)) = bench.apply(None) else { panic!("applied") };
    insta::assert_snapshot!(why, @"somebody applies, reverts or measures with a plan just now: wait for the end of that command");
    let refused = revert(&bench.roots, &bench.dir, true).unwrap_err().to_string();
    assert!(refused.ends_with(&why) && refused.starts_with(path.to_str().unwrap()), "{refused}");
    assert!(status(&bench.roots, &bench.dir).unwrap().held, "it may be looked at");
    drop(held);
    assert!(!status(&bench.roots, &bench.dir).unwrap().held);
    assert!(matches!(bench.apply(None), Err(ApplyError::Earlier(_))));
    assert_eq!(revert(&bench.roots, &bench.dir, true).unwrap().back.len(), 5);
    assert_eq!(kind(host::journal::hold(&path).map(|_| ())), std::io::ErrorKind::NotFound);
}

#[test]
fn a_file_that_is_not_ours_ends_it_without_a_change() {
    let bench = Bench::new();
    bench.set(OURS[1], "mine");
    let before = bench.files();
    let Err(ApplyError::Failed { change, .. }) = bench.apply(Some("/usr/bin/linerate")) else { panic!("applied") };
    assert_eq!(change, OURS[1]);
    assert_eq!(bench.files(), before);
    assert_eq!(journal::names(&bench.dir), Vec::<String>::new());
    // A directory of the journal that cannot be made: nothing is changed.
    fs::write(bench.root.path().join("file"), "").unwrap();
    let nowhere = bench.root.path().join("file/journal");
    let refused = apply(&bench.roots, &nowhere, &bench.plan, None, || true);
    assert!(matches!(refused, Err(ApplyError::Journal(..))));
}

#[test]
fn a_plan_of_another_machine_does_what_it_can_and_never_more() {
    let bench = Bench::new();
    fs::remove_file(bench.roots.of_machine(KNOBS[3].0)).unwrap();
    let applied = bench.apply(None).unwrap();
    assert_eq!((applied.made.len(), applied.refused.len()), (4, 1));
    revert(&bench.roots, &bench.dir, false).unwrap();
    for path in ["/etc/passwd", "/sys/../etc/passwd"] {
        bench.set("/etc/passwd", "x");
        let mut plan = bench.plan.clone();
        plan.steps.push(Step {
            id: "x".into(),
            why: "x".into(),
            change: Mend::Write { path: path.into(), value: "y".into() },
            interrupt: None,
        });
        let refused = apply(&bench.roots, &bench.dir, &plan, None, || true);
        assert!(matches!(refused, Err(ApplyError::Failed { .. })), "{path}");
        assert_eq!(bench.get("/etc/passwd"), "x");
        assert_eq!(bench.get(KNOBS[0].0), KNOBS[0].1, "and the rest was taken back");
    }
    // A journal that is cut off in its head, or garbage.
    fs::write(journal::path_of(&bench.dir, PERSISTENT), "{\"bo").unwrap();
    assert!(!revert(&bench.roots, &bench.dir, false).unwrap().nothing);
    fs::write(journal::path_of(&bench.dir, NAME), "garbage\n").unwrap();
    let before = status(&bench.roots, &bench.dir).unwrap();
    assert_eq!((before.damaged.len(), before.kept.len(), before.is_nothing()), (1, 0, false));
    let reverted = revert(&bench.roots, &bench.dir, false).unwrap();
    assert_eq!((reverted.back.len(), reverted.damaged.len()), (0, 1));
    // The next plan can be applied, and what is not known is told.
    let after = status(&bench.roots, &bench.dir).unwrap();
    assert_eq!((after.damaged.len(), after.kept.len(), after.is_nothing()), (0, 1, true));
    assert_eq!(bench.apply(None).unwrap().made.len(), 4);
}

#[test]
fn an_interrupt_goes_back_to_the_cpu_that_had_it() {
    let bench = Bench::new();
    let [list, carrier] = ["smp_affinity_list", "effective_affinity_list"].map(|file| format!("/proc/irq/42/{file}"));
    bench.set(&list, "0-3");
    bench.set(&carrier, "2");
    let step = Step {
        id: "interrupts.each".into(),
        why: "why".into(),
        change: Mend::Write { path: list.clone().into(), value: "0".into() },
        interrupt: Some("eth0-rx".into()),
    };
    let plan = HostPlan { steps: vec![step], ..plan() };
    assert_eq!(HostPlan::parse(&plan.to_text().unwrap()), Ok(plan.clone()));
    // On another machine the number may be that of something else, or of nothing.
    for other in [" 42: 1 2 MSI 7 disk0", " 41: 1 2 MSI 7 eth0-rx"] {
        bench.set("/proc/interrupts", &format!("      CPU0 CPU1\n{other}"));
        let applied = apply(&bench.roots, &bench.dir, &plan, None, || true).unwrap();
        assert_eq!((applied.made.len(), applied.refused.len()), (0, 1), "{applied:?}");
        assert_eq!(bench.get(&list), "0-3");
    }
    bench.set("/proc/interrupts", "      CPU0 CPU1\n 42: 1 2 MSI 7 eth0-rx");
    apply(&bench.roots, &bench.dir, &plan, None, || true).unwrap();
    let noted = fs::read_to_string(journal::path_of(&bench.dir, NAME)).unwrap();
    assert!(noted.contains(r#""old":"0-3","new":"0","first":"2""#), "{noted}");
    assert_eq!(bench.get(&list), "0");
    revert(&bench.roots, &bench.dir, false).unwrap();
    assert_eq!(bench.get(&list), "0-3");
    // Its number is another one's after a boot: it is told that this change is not kept.
    let kept = apply(&bench.roots, &bench.dir, &plan, Some("/usr/bin/linerate"), || true).unwrap();
    assert_eq!((kept.made.clone(), kept.files.len()), (kept.until_boot.clone(), 0));
    assert_eq!(kept.until_boot.len(), 1);
    revert(&bench.roots, &bench.dir, false).unwrap();
    assert!(apply(&bench.roots, &bench.dir, &plan, None, || true).unwrap().until_boot.is_empty());
}

#[test]
fn what_acts_when_it_is_written_is_no_setting() {
    let bench = Bench::new();
    for path in [
        "/sys/power/state",
        "/sys/class/net/lo/uevent",
        "/sys/bus/pci/devices/0000:00:03.0/remove",
        "/proc/sys/kernel/sysrq",
        "/sys/fs/cgroup/cpu/release_agent",
    ] {
        bench.set(path, "1");
        let text = plan().to_text().unwrap().replace("/proc/sys/kernel/watchdog", path);
        assert!(HostPlan::parse(&text).is_err(), "{path}");
    }
}

/// Puts the machine into a network namespace.
fn enter(bench: &Bench, namespace: &str) {
    let at = bench.roots.of_machine("/proc/self/ns/net");
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    let _ = fs::remove_file(&at);
    std::os::unix::fs::symlink(format!("net:[{namespace}]"), at).unwrap();
}

const FORWARD: &str = "/proc/sys/net/ipv4/ip_forward";

/// A plan with a setting of a network namespace, applied in namespace 1, and looked at from namespace 2.
fn applied_in_another_namespace() -> Bench {
    let mut bench = Bench::new();
    enter(&bench, "1");
    bench.set(FORWARD, "1");
    let change = Mend::Write { path: FORWARD.into(), value: "0".into() };
    bench.plan.steps.push(Step { id: "x".into(), why: "x".into(), change, interrupt: None });
    assert_eq!(bench.apply(None).unwrap().made.len(), 6);
    enter(&bench, "2");
    bench.set(FORWARD, "0");
    bench
}

#[test]
fn changes_of_another_network_namespace_are_taken_back_there() {
    let bench = applied_in_another_namespace();
    bench.set("/proc/77/ns/x", "");
    std::os::unix::fs::symlink("net:[1]", bench.roots.of_machine("/proc/77/ns/net")).unwrap();
    // A file that outlives a boot stays, too.
    let made = format!("{{\"boot\":\"first\"}}\n{{\"made\":{{\"path\":\"{}\",\"text\":\"x\\n\"}}}}\n", OURS[1]);
    fs::write(journal::path_of(&bench.dir, PERSISTENT), made).unwrap();
    bench.set(OURS[1], "x");
    let values = || KNOBS.map(|(path, ..)| bench.get(path));
    let refused = revert(&bench.roots, &bench.dir, false).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::Unsupported);
    let path = journal::path_of(&bench.dir, NAME);
    insta::assert_snapshot!(refused.to_string().replace(path.to_str().unwrap(), "JOURNAL"), @"JOURNAL: changes were made in another network namespace: sudo nsenter -t 77 -n linerate host revert");
    assert_eq!((values(), bench.get(OURS[1])), (KNOBS.map(|(.., new)| new.to_owned()), "x".to_owned()));
    assert_eq!(status(&bench.roots, &bench.dir).unwrap().runtime.len(), 6);
    assert!(matches!(bench.apply(None), Err(ApplyError::Earlier(_))));
    enter(&bench, "1");
    let reverted = revert(&bench.roots, &bench.dir, false).unwrap();
    assert_eq!((reverted.back.len(), reverted.files.len(), bench.get(FORWARD)), (6, 1, "1".to_owned()));
}

#[test]
fn changes_of_a_network_namespace_that_is_gone_are_gone_too() {
    let bench = applied_in_another_namespace();
    assert_eq!(status(&bench.roots, &bench.dir).unwrap().runtime.len(), 5);
    let reverted = revert(&bench.roots, &bench.dir, false).unwrap();
    assert_eq!((reverted.back.len(), reverted.gone), (5, vec!["sysctl -w net.ipv4.ip_forward=1".to_owned()]));
    assert_eq!(bench.get(FORWARD), "0", "it is another one's");
    assert_eq!(journal::names(&bench.dir), Vec::<String>::new());
    // An older journal does not have the word.
    let older = applied_in_another_namespace();
    let path = journal::path_of(&older.dir, NAME);
    let text = fs::read_to_string(&path).unwrap().replace(",\"net_namespace\":1", "");
    fs::write(&path, text).unwrap();
    assert_eq!(revert(&older.roots, &older.dir, false).unwrap().back.len(), 6);
    assert_eq!(older.get(FORWARD), "1");
    // Without such a change the namespace does not matter.
    let bench = Bench::new();
    enter(&bench, "1");
    bench.apply(None).unwrap();
    enter(&bench, "2");
    assert_eq!(revert(&bench.roots, &bench.dir, false).unwrap().back.len(), 5);
}

#[test]
fn status_counts_what_is_in_force_and_an_apply_that_died_before_its_first_change_is_none() {
    let bench = Bench::new();
    bench.apply(None).unwrap();
    let path = journal::path_of(&bench.dir, NAME);
    // The last change was written down and never made.
    bench.set(KNOBS[4].0, KNOBS[4].1);
    let whole = fs::read_to_string(&path).unwrap();
    let noted: Vec<&str> = whole.lines().take(10).collect();
    fs::write(&path, noted.join("\n") + "\n").unwrap();
    assert_eq!(status(&bench.roots, &bench.dir).unwrap().runtime.len(), 4);
    assert_eq!(revert(&bench.roots, &bench.dir, false).unwrap().back.len(), 4);
    // Taken back, and the journal is still there, or was never written.
    for text in [noted.join("\n") + "\n", String::new()] {
        fs::write(&path, text).unwrap();
        assert!(status(&bench.roots, &bench.dir).unwrap().is_nothing());
        assert_eq!(bench.apply(None).unwrap().made.len(), 5);
        assert_eq!(revert(&bench.roots, &bench.dir, false).unwrap().back.len(), 5);
    }
    fs::write(&path, "").unwrap();
    assert!(revert(&bench.roots, &bench.dir, false).unwrap().nothing && !path.exists());
}

#[test]
fn what_was_taken_back_is_told_where_the_journal_cannot_be_removed() {
    let bench = Bench::new();
    bench.apply(None).unwrap();
    let path = journal::path_of(&bench.dir, NAME);
    let immutable = |on: &str| {
        let ran = std::process::Command::new("chattr").args([on, path.to_str().unwrap()]).output();
        ran.is_ok_and(|ran| ran.status.success())
    };
    if !immutable("+i") {
        assert!(std::env::var_os("CI").is_none(), "chattr +i does not work in {}", bench.dir.display());
        return;
    }
    let reverted = revert(&bench.roots, &bench.dir, false);
    immutable("-i");
    let reverted = reverted.unwrap();
    assert_eq!((reverted.back.len(), reverted.failed.len(), reverted.stays.len()), (5, 0, 1));
    assert_eq!(reverted.stays[0].0, path);
    assert!(status(&bench.roots, &bench.dir).unwrap().is_nothing());
    assert!(revert(&bench.roots, &bench.dir, false).unwrap().nothing && !path.exists());
}
