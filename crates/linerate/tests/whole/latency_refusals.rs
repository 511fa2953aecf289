//! Flags that do not go together, servers without a place, and servers of other programs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use crate::{
    latency::{free_port, theirs},
    support::{require, tester::linerate, Needs},
};

#[test]
fn flags_that_say_nothing_here_are_refused() {
    let at = ["127.0.0.1:9"];
    let server = ["--server", "127.0.0.1:0"];
    for (first, flags) in [
        (&server[..], &["--duration", "1s"][..]),
        (&server, &["--size", "64"]),
        (&server, &["--samples", "5"]),
        (&server, &["--open-loop", "5k"]),
        (&server, &["--layout", "sockperf"]),
        (&server, &["--markdown", "a.md"]),
        (&at, &["--plan", "latency-tcp"]),
        (&at, &["--full-log", "-"]),
        (&at, &["--full-log", "same", "--json", "same"]),
    ] {
        let refused = linerate(&[&["latency", "udp"], first, flags].concat());
        let said = (refused.code, refused.stderr.lines().count(), refused.stdout.as_str());
        assert_eq!(said, (2, 1, ""), "{flags:?}: {}", refused.stderr);
    }
}

#[test]
fn clients_for_whom_a_server_has_no_place_are_told() {
    require(&[Needs::Sockperf]);
    let port = free_port();
    let _server = theirs("tcp", port);
    // It answers one client at a time.
    let two = linerate(&[
        "latency",
        "tcp",
        &format!("127.0.0.1:{port}"),
        "--clients",
        "2",
        "--duration",
        "300ms",
        "--json",
        "-",
    ]);
    assert_eq!(two.code, 1, "{}{}", two.stdout, two.stderr);
    let result = two.json();
    assert!(
        result["ended"]["left-out"].as_str().is_some_and(|why| why.starts_with("1 of 2 clients")),
        "{}",
        result["ended"]
    );
    assert!(result["round_trip"]["samples"].as_u64() > Some(20), "{}", two.stdout);
}

#[test]
fn a_server_that_answers_something_else_is_another_program_s() {
    let echo = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = echo.local_addr().unwrap().to_string();
    let over = std::sync::atomic::AtomicBool::new(false);
    echo.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; 2048];
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                if let Ok((read, from)) = echo.recv_from(&mut bytes) {
                    let _ = echo.send_to(&bytes[..read], from);
                }
            }
        });
        let ended = linerate(&["latency", "udp", &at, "--duration", "300ms"]);
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        ended
    });
    assert_eq!((ended.code, ended.stderr.lines().count()), (4, 1), "{}", ended.stderr);
    assert!(ended.stderr.contains("another program"), "{}", ended.stderr);
}
