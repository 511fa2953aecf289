//! A logger that only listens: the host keeps its frames, and ports are not joined.

use std::net::{TcpListener, TcpStream};

use crate::between::{frame, Between, PATIENCE};
use crate::logger::{directory, flowlog, records, Logger};
use crate::support::{exclusive, raw::inside, require, wait_until, words::TAKES_FRAMES, Needs, Words};

#[test]
fn two_interfaces_are_logged_and_not_joined() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Between::new(), directory());
    bench.middle.ip("addr add 10.0.0.9/24 dev d0");
    let json = dir.path().join("flows.jsonl");
    let args =
        ["--receive-only", "--port", "eth:d0", "--port", "eth:d1", "--flows", "1k", "--json", json.to_str().unwrap()];
    let logger = Logger::start(Some(&bench.middle), dir.path(), &args);
    // The host still receives.
    let server = inside(&bench.middle, || TcpListener::bind("10.0.0.9:0").unwrap());
    let at = server.local_addr().unwrap();
    let client = inside(&bench.hosts[0], || TcpStream::connect(at).unwrap());
    server.accept().unwrap();
    drop(client);
    // The same flow at both ports is two flows.
    let both = frame(3);
    (0..2).for_each(|n| bench.ends[n].send(&both));
    let port = |n: u64| records(&json).into_iter().filter(move |flow| flow["port"] == n);
    let udp =
        |n| port(n).filter(|flow| flow["protocol"] == 17).map(|f| f["forward"]["packets"].clone()).collect::<Vec<_>>();
    wait_until("both are counted", PATIENCE, || {
        logger.client().flows().iter().filter(|flow| flow["protocol"] == 17).count() == 2
    });
    for end in &bench.ends {
        while let Some(frame) = end.recv() {
            assert!(frame != both, "it passed");
        }
    }
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    assert!(!said.contains(TAKES_FRAMES), "{said}");
    assert_eq!((udp(0), udp(1)), (vec![1.into()], vec![1.into()]), "{said}");
    let tcp: Vec<_> = port(0).filter(|flow| flow["protocol"] == 6 && flow["dport"] == at.port()).collect();
    let [connection] = &tcp[..] else { panic!("{tcp:?}: {said}") };
    // What the host sends is seen too.
    assert!(["forward", "back"].iter().all(|way| connection[way]["packets"].as_u64() >= Some(2)), "{connection}");
}

#[test]
fn an_interface_that_is_taken_from_the_kernel_is_told() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Between::new(), directory());
    let said = |ports: &[&str]| {
        let args = [ports, &["--flows", "1k"]].concat();
        let (status, said) = Logger::start(Some(&bench.middle), dir.path(), &args).end_by("TERM");
        assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
        said
    };
    let alone = said(&["--port", "eth:d0,driver=af_xdp"]);
    assert!(alone.contains(&format!("port eth:d0,driver=af_xdp{TAKES_FRAMES}")), "{alone}");
    let pair = said(&["--port", "eth:d0,driver=af_xdp", "--port", "eth:d1,driver=af_xdp"]);
    assert!(!pair.contains(TAKES_FRAMES), "{pair}");
}

#[test]
fn receiving_only_does_not_reflect() {
    let args = ["--port", "null,no-rx=1", "--receive-only", "--reflect"];
    let mut words = Words::new();
    words.refused(2, &args, &flowlog(directory().path(), &args));
}
