//! A link that goes down under the logger, and comes back.

use crate::between::{frame, Between, PATIENCE};
use crate::logger::{directory, records, sum, Logger};
use crate::support::{
    ending::Ending,
    exclusive, require, wait_until,
    words::{LINK_DOWN, LINK_UP},
    Needs,
};

fn up(logger: &Logger<'_>, port: usize) -> bool {
    logger.client().totals()["interfaces"][port]["up"] == true
}

#[test]
fn a_link_that_goes_down_ends_nothing_and_is_told() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Between::new(), directory());
    let json = dir.path().join("flows.jsonl");
    let logger = bench.logger(dir.path(), &["--idle", "3s", "--json", json.to_str().unwrap()]);
    bench.send(0, 50);
    wait_until("both links are seen", PATIENCE, || up(&logger, 0) && up(&logger, 1));

    bench.hosts[1].ip("link set eth0 down");
    wait_until("the link is seen down", PATIENCE, || !up(&logger, 1));
    wait_until("that is told", PATIENCE, || logger.process.output().contains(&format!("port eth:d1{LINK_DOWN}")));
    // What the kernel drops behind us is counted all the same, and flows of before go on to their end.
    (50..60).for_each(|n| bench.ends[0].send(&frame(n)));
    wait_until("flows age", PATIENCE, || records(&json).len() == 60);
    let ended = records(&json);
    assert!(ended.iter().all(|r| r["end"] == "idle" && r["forward"]["packets"] == 1), "{ended:?}");

    bench.hosts[1].ip("link set eth0 up");
    wait_until("the link is seen up", PATIENCE, || up(&logger, 1));
    wait_until("that is told", PATIENCE, || logger.process.output().contains(&format!("port eth:d1{LINK_UP}")));
    // It passes and counts as before.
    bench.send(60, 40);
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    let all = records(&json);
    assert_eq!((all.len(), sum(&all, "packets")), (100, 100), "{said}");
    let ending = Ending::of(&said);
    assert_eq!((ending.idle, ending.active, ending.end_of_flow, ending.forced), (60, 0, 0, 40), "{said}");
}
