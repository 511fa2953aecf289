//! Who has an interface has it alone, and who was told to end has ended.

use std::{fs, os::fd::OwnedFd, time::Duration};

use rustix::fs::{fallocate, memfd_create, FallocateFlags, MemfdFlags};

use crate::logger::{directory, Logger};
use crate::support::{
    ending::Ending,
    exclusive, free_hugepages,
    raw::cable,
    require,
    tester::{ended, BINARY},
    Needs, Netns, Words,
};

const NEAR: &str = "02:4c:52:00:01:00";
const FAR: &str = "02:4c:52:00:00:00";
const PORT: [&str; 6] = ["--port", "eth:d0", "--flows", "1k", "--duration", "2m"];

#[test]
fn an_interface_has_one_linerate() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (near, far, dir) = (Netns::new(), Netns::new(), directory());
    cable((&near, "d0", NEAR), (&far, "d0", FAR));
    let sockets = dir.path().join("linerate");
    let first = Logger::start(Some(&near), dir.path(), &[&PORT[..], &["--name", "first"]].concat());

    let pid = first.process.id();
    let mut words = Words::new();
    words.hide(pid, "pid");
    let again = |args: &[&str]| {
        let mut command = near.command(BINARY);
        ended(&command.args(args).env("XDG_RUNTIME_DIR", dir.path()).output().unwrap())
    };
    for args in [
        &["forward", "l2", "--port", "eth:d0", "--port", "null", "--name", "second"][..],
        &["flowlog", "--port", "eth:d0,driver=af_packet", "--listen", "off", "--name", "second"],
        &["trial", "--load", "1kpps", "--port", "null,no-rx=1", "--port", "eth:d0"],
    ] {
        let refused = again(args);
        assert!(refused.stderr.contains(&format!(" {pid}")), "{args:?}: {refused:?}");
        words.refused_in_a_line(4, args, &refused);
    }
    insta::assert_snapshot!(words);
    // The same name elsewhere is another interface.
    let other = Logger::start(Some(&far), dir.path(), &[&PORT[..], &["--name", "other"]].concat());
    assert_eq!(other.end_by("TERM").0.and_then(|s| s.code()), Some(0));

    // However it ends, the interface is free.
    first.end_by("KILL");
    let next = Logger::start(Some(&near), dir.path(), &[&PORT[..], &["--name", "first"]].concat());
    assert_eq!(next.end_by("TERM").0.and_then(|s| s.code()), Some(0));
    assert_eq!(fs::read_dir(&sockets).unwrap().count(), 0);
}

#[test]
fn stop_returns_when_the_process_has_ended() {
    let dir = directory();
    let args = ["--port", "null,no-rx=1", "--flows", "1k", "--memory", "no-hugepages", "--duration", "2m"];
    let logger = Logger::start(None, dir.path(), &args);
    let stopped = logger.operator(&["stop"]);
    assert_eq!((stopped.code, stopped.stderr.as_str()), (0, ""));
    let mut process = logger.process;
    // The kernel has closed what it had; only its parent has not yet heard of that.
    let status = process.wait_end(Duration::from_secs(1));
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{}", process.output());
    assert_eq!(Ending::of(&process.output()).begun, 0);
    assert_eq!(fs::read_dir(dir.path().join("linerate")).unwrap().count(), 0);
}

/// Takes hugepages until it is dropped.
fn hold(pages: usize) -> OwnedFd {
    let held = memfd_create("held", MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB).unwrap();
    fallocate(&held, FallocateFlags::empty(), 0, (pages as u64) << 21).unwrap();
    held
}

#[test]
fn loggers_that_start_at_once_share_the_hugepages_that_there_are() {
    require(&[Needs::Root, Needs::Hugepages(200)]);
    let _machine = exclusive();
    let dir = directory();
    let args = |name| ["--port", "null,no-rx=1", "--flows", "1k", "--duration", "2m", "--name", name];
    let before = free_hugepages();
    let alone = Logger::start(None, dir.path(), &args("alone"));
    let takes = before - free_hugepages();
    assert_eq!(alone.end_by("TERM").0.and_then(|s| s.code()), Some(0));
    assert!(takes > 0, "it took ordinary memory, with {before} pages free");
    // Enough for one. Who comes second may have seen them free.
    let _held = hold(free_hugepages() - takes * 3 / 2);
    for _ in 0..5 {
        let both = ["one", "two"].map(|name| Logger::spawn(&[], None, dir.path(), &args(name)));
        let both = both.map(|process| Logger::ready(process, None, dir.path()));
        assert!(free_hugepages() <= takes, "none of them took hugepages");
        for logger in both {
            let (status, said) = logger.end_by("TERM");
            assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
        }
    }
}
