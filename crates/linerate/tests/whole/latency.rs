//! Round trips between two network namespaces, with our own programs and with sockperf at either end.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;

use crate::support::{
    self, require,
    tester::{linerate, BINARY},
    wait_until, Needs,
};

/// A server that ends with this.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        support::send_signal(self.0.id(), "TERM");
        let _ = self.0.wait();
    }
}

/// A port of this machine that nobody has.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Whether somebody listens, as the kernel's table says it.
fn listens(transport: &str, port: u16) -> bool {
    ["", "6"].iter().any(|version| {
        let table = std::fs::read_to_string(format!("/proc/net/{transport}{version}")).unwrap_or_default();
        let want = format!(":{port:04X} ");
        table
            .lines()
            .any(|line| line.split_whitespace().nth(1).is_some_and(|local| format!("{local} ").ends_with(&want)))
    })
}

fn serve(program: &[&str], transport: &str, port: u16) -> Server {
    let child = Command::new(program[0]).args(&program[1..]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let server = Server(child.unwrap_or_else(|e| panic!("{program:?}: {e}")));
    wait_until("a server that listens", Duration::from_secs(20), || listens(transport, port));
    server
}

fn ours(transport: &str, port: u16) -> Server {
    let address = format!("127.0.0.1:{port}");
    serve(&[BINARY, "latency", transport, "--server", &address], transport, port)
}

fn theirs(transport: &str, port: u16) -> Server {
    let port_text = port.to_string();
    let tcp: &[&str] = if transport == "tcp" { &["--tcp"] } else { &[] };
    serve(&[&["sockperf", "server", "-i", "127.0.0.1", "-p", &port_text][..], tcp].concat(), transport, port)
}

#[test]
fn our_client_measures_both_servers_in_every_way_of_waiting() {
    require(&[Needs::Sockperf]);
    for transport in ["udp", "tcp"] {
        let (port, other) = (free_port(), free_port());
        let (_ours, _theirs) = (ours(transport, port), theirs(transport, other));
        for port in [port, other] {
            let address = format!("127.0.0.1:{port}");
            for (wait, flags) in [
                ("block", &["--size", "14"][..]),
                ("spin", &["--size", "1472", "--burst", "4"]),
                ("epoll", &["--size", "14..65507", "--verify"]),
            ] {
                let flags =
                    [&["latency", transport, &address, "--wait", wait, "--duration", "300ms", "--json", "-"], flags];
                let run = linerate(&flags.concat());
                assert_eq!(run.code, 0, "{flags:?}: {}", run.stderr);
                let json = run.json();
                let counts = &json["counts"];
                assert!(counts["replied"].as_u64() > Some(20), "{flags:?}: {counts}");
                assert_eq!(counts["damaged"], 0, "{flags:?}: {counts}");
                assert_eq!(counts["foreign"], 0, "{flags:?}: {counts}");
                // A busy machine may lose a datagram; none is without an end.
                let all = counts["replied"].as_u64().unwrap() + counts["lost"].as_u64().unwrap();
                assert_eq!(counts["sent"].as_u64(), Some(all));
                let least = json["round_trip"]["percentiles"][0]["ns"].as_u64().unwrap();
                assert!((500..50_000_000).contains(&least), "{least} ns");
            }
        }
    }
}

#[test]
fn sockperf_measures_our_server() {
    require(&[Needs::Sockperf]);
    for transport in ["udp", "tcp"] {
        let port = free_port();
        let _server = ours(transport, port);
        let port = port.to_string();
        for mode in [&["ping-pong"][..], &["under-load", "--mps", "2000", "--reply-every", "10"], &["throughput"]] {
            for size in ["14", "1400", "60000"] {
                let tcp: &[&str] = if transport == "tcp" { &["--tcp"] } else { &[] };
                let flags = ["-i", "127.0.0.1", "-p", &port, "-t", "1", "-m", size];
                let integrity: &[&str] = if mode[0] == "ping-pong" { &["--data-integrity"] } else { &[] };
                let out = Command::new("timeout")
                    .args([&["20", "sockperf"], mode, &flags, tcp, integrity].concat())
                    .output()
                    .unwrap();
                let text = String::from_utf8_lossy(&out.stdout).into_owned();
                assert!(out.status.success(), "{transport} {mode:?} {size}: {text}");
                match mode[0] {
                    "throughput" => assert!(text.contains("Summary: Message Rate"), "{text}"),
                    _ => assert!(text.contains("Summary: Latency is"), "{transport} {mode:?} {size}: {text}"),
                }
            }
        }
    }
}

#[test]
fn a_table_has_round_trips_and_sockperf_s_layout_their_halves() {
    let port = free_port();
    let _server = ours("udp", port);
    let address = format!("127.0.0.1:{port}");
    let flags = ["latency", "udp", &address, "--duration", "500ms"];
    let table = linerate(&flags);
    assert_eq!(table.code, 0, "{}", table.stderr);
    assert!(table.stdout.contains("round trip") && table.stdout.contains("messages: "), "{}", table.stdout);
    let lines = linerate(&[&flags[..], &["--layout", "sockperf"]].concat()).stdout;
    assert!(lines.contains("sockperf: Summary: Latency is ") && lines.contains("---> percentile 50.000 ="), "{lines}");
    let precise = linerate(&["latency", "udp", &address, "--until", "ci=20%", "--duration", "60s", "--json", "-"]);
    assert_eq!(precise.json()["ended"], "precise", "{}", precise.stdout);
    let median =
        precise.json()["round_trip"]["percentiles"].as_array().unwrap().iter().find(|p| p["percent"] == 50.0).cloned();
    let median = median.unwrap();
    let (low, high) = (median["interval_ns"][0].as_u64().unwrap(), median["interval_ns"][1].as_u64().unwrap());
    assert!((low..=high).contains(&median["ns"].as_u64().unwrap()), "{median}");
}

#[test]
fn what_cannot_be_measured_is_said_in_a_line_and_never_waited_for() {
    let port = free_port();
    let nobody = format!("127.0.0.1:{port}");
    // A datagram socket that nobody reads, and a server of another program.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap().to_string();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        use std::io::Write;
        while let Ok((mut stream, _)) = other.accept() {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    for (args, code, says) in [
        (vec!["udp", &nobody], 4, "nobody listens"),
        (vec!["tcp", &nobody], 4, "nobody listens"),
        (vec!["udp", &silent], 4, "no answer"),
        (vec!["tcp", &address], 4, "messages of sockperf"),
        (vec!["udp", "127.0.0.1"], 2, "invalid"),
        (vec!["udp"], 2, "ADDRESS:PORT"),
        (vec!["udp", &nobody, "--size", "13"], 2, "14 to 65507"),
        (vec!["udp", &nobody, "--size", "100..64"], 2, "14 to 65507"),
        (vec!["udp", &nobody, "--until", "1%"], 2, "ci="),
        (vec!["udp", &nobody, "--duration", "1ms"], 2, "10ms"),
        (vec!["udp", &nobody, "--cpu", "4000"], 4, "nobody"),
        (vec!["udp", "--server", "192.0.2.1:5"], 4, "192.0.2.1:5"),
    ] {
        let ended = linerate(&[&["latency"], args.as_slice()].concat());
        let codes = if args.contains(&"4000") { vec![2, 4] } else { vec![code] };
        assert!(codes.contains(&ended.code), "{args:?}: {} {}", ended.code, ended.stderr);
        assert_eq!((ended.stdout.as_str(), ended.stderr.lines().count()), ("", 1), "{args:?}: {}", ended.stderr);
        assert!(args.contains(&"4000") || ended.stderr.contains(says), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn a_server_that_dies_ends_the_run_with_what_was_measured() {
    for transport in ["udp", "tcp"] {
        let port = free_port();
        let server = ours(transport, port);
        let address = format!("127.0.0.1:{port}");
        let client = Command::new(BINARY)
            .args(["latency", transport, &address, "--duration", "60s", "--json", "-"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs(1));
        drop(server);
        let out = client.wait_with_output().unwrap();
        let json: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(out.status.code(), Some(1), "{json}");
        assert!(json["ended"]["gone"].is_string(), "{json}");
        assert!(json["round_trip"]["samples"].as_u64() > Some(10), "{json}");
    }
}

#[test]
fn an_open_loop_counts_from_the_moment_at_which_a_message_was_due() {
    for transport in ["udp", "tcp"] {
        let port = free_port();
        let _server = ours(transport, port);
        let address = format!("127.0.0.1:{port}");
        for rate in ["2000", "20%"] {
            let flags = ["latency", transport, &address, "--duration", "1s", "--open-loop", rate, "--json", "-"];
            let run = linerate(&flags);
            assert_eq!(run.code, 0, "{}", run.stderr);
            let json = run.json();
            let open = &json["open_loop"];
            assert!(json["round_trip"]["samples"].as_u64() > Some(100), "{json}");
            assert!(open["closed_loop"]["samples"].as_u64() > Some(100), "{open}");
            let mean = |times: &Value| times["mean_ns"].as_f64().unwrap();
            assert!(mean(&json["round_trip"]) >= mean(&open["from_sending"]), "{json}");
            if rate == "2000" {
                assert_eq!(open["asked_rate"], 2000.0);
            } else {
                let share = open["asked_rate"].as_f64().unwrap() / open["closed_rate"].as_f64().unwrap();
                assert!((share - 0.2).abs() < 0.01, "{open}");
            }
        }
    }
    for wrong in ["0", "101%", "x", "20M", "-5"] {
        let refused = linerate(&["latency", "udp", "127.0.0.1:9", "--open-loop", wrong]);
        assert_eq!((refused.code, refused.stderr.lines().count()), (2, 1), "{wrong}: {}", refused.stderr);
    }
}
