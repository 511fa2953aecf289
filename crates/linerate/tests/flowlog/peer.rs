//! The peer of a memif port dies under the logger while frames flow, and another takes its place.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use crate::between::{frame, PATIENCE, STATION};
use crate::logger::{directory, records, sum, Logger};
use crate::support::{
    ending::Ending,
    exclusive,
    forwarder::Forwarder,
    raw::{cable, RawPort},
    require, wait_until,
    words::{LINK_DOWN, LINK_UP},
    Needs, Netns,
};

const SMALL: [&str; 6] = ["--memory", "no-hugepages", "--memory-mib", "128", "--cpus", "0"];

/// What stands behind the logger: it counts what it receives.
fn behind(dir: &Path, socket: &str) -> Logger<'static> {
    let args = ["--port", socket, "--flows", "1k", "--name", "behind"];
    Logger::start(None, dir, &[&args[..], &SMALL].concat())
}

fn packets(logger: &Logger<'_>, port: usize) -> u64 {
    logger.client().totals()["interfaces"][port]["packets"].as_u64().unwrap()
}

/// Sends frames of 50 flows in turn until told to end; how many.
fn flow(from: &RawPort, over: &AtomicBool) -> u64 {
    let mut sent = 0;
    while !over.load(Ordering::Relaxed) {
        from.send(&frame((sent % 50) as u16));
        sent += 1;
        std::thread::sleep(Duration::from_millis(2));
    }
    sent
}

/// Set when dropped: a test that fails does not wait for its frames for ever.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_peer_killed_while_frames_flow_costs_no_record() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (host, middle, dir) = (Netns::new(), Netns::new(), directory());
    cable((&host, "eth0", STATION[0]), (&middle, "d0", STATION[1]));
    host.run(&["sysctl", "-qw", "net.ipv6.conf.eth0.disable_ipv6=1"]);
    middle.run(&["sysctl", "-qw", "net.ipv6.conf.d0.disable_ipv6=1"]);
    let end = RawPort::open(&host, "eth0");
    let socket = |name: &str| format!("memif:{}", dir.path().join(name).display());
    let served = |name: &str| socket(name) + ",role=server";
    let json = dir.path().join("flows.jsonl");

    let (x, y) = (served("x"), served("y"));
    let args = ["--port", &x, "--port", &y, "--flows", "1k", "--cpus", "1", "--json", json.to_str().unwrap()];
    let args = [&args[..], &SMALL[..4], &["--check-pools"]].concat();
    let starting = Logger::spawn(&[], None, dir.path(), &args);
    wait_until("the logger's sockets", PATIENCE, || dir.path().join("y").exists());
    let facing = socket("x");
    let before = [&["null", "--port", "eth:d0", "--port", &facing][..], &SMALL].concat();
    let _before = Forwarder::start(&middle, &before);
    let first = behind(dir.path(), &socket("y"));
    let logger = Logger::ready(starting, None, dir.path());

    let over = AtomicBool::new(false);
    let sent = std::thread::scope(|s| {
        let _over = Over(&over);
        let frames = s.spawn(|| flow(&end, &over));
        wait_until("frames pass", PATIENCE, || packets(&first, 0) > 100);

        first.end_by("KILL");
        wait_until("that is told", PATIENCE, || logger.process.output().contains(&format!("port {y}{LINK_DOWN}")));
        let interface = |n: usize| logger.client().totals()["interfaces"][n].clone();
        assert_eq!([0, 1].map(|n| interface(n)["up"] == true), [true, false], "{}", logger.process.output());
        let counted = packets(&logger, 0);
        wait_until("it goes on", PATIENCE, || packets(&logger, 0) > counted + 100);
        wait_until("what cannot be passed is counted", PATIENCE, || interface(0)["tx_dropped"].as_u64() > Some(0));

        let second = behind(dir.path(), &socket("y"));
        wait_until("frames pass again", PATIENCE, || packets(&second, 0) > 100);
        wait_until("the link is seen up", PATIENCE, || interface(1)["up"] == true);
        let said = logger.process.output();
        let (_, since) = said.rsplit_once(&format!("port {y}{LINK_DOWN}")).unwrap();
        assert!(since.contains(&format!("port {y}{LINK_UP}")), "{said}");
        over.store(true, Ordering::Relaxed);
        frames.join().unwrap()
    });
    wait_until("all of it is counted", PATIENCE, || packets(&logger, 0) == sent);

    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    let all = records(&json);
    assert!(all.iter().all(|r| r["end"] == "forced"), "{all:?}");
    assert_eq!((all.len() as u64, sum(&all, "packets")), (50, sent), "{said}");
    let ending = Ending::of(&said);
    assert_eq!((ending.forced, ending.lack, ending.exported, ending.dropped), (50, 0, 50, 0), "{said}");
}
