//! Round trips between two network namespaces, with our own programs and with sockperf at either end.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::support::{
    self, require,
    tester::{linerate, linerate_in, BINARY},
    wait_until, KernelDut, Needs, Netns, OvsDpdk,
};

/// A server that ends with this.
pub struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        support::send_signal(self.0.id(), "TERM");
        let _ = self.0.wait();
    }
}

/// A port of this machine that nobody has.
pub fn free_port() -> u16 {
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

pub fn theirs(transport: &str, port: u16) -> Server {
    let port_text = port.to_string();
    let tcp: &[&str] = if transport == "tcp" { &["--tcp"] } else { &[] };
    serve(&[&["sockperf", "server", "-i", "127.0.0.1", "-p", &port_text][..], tcp].concat(), transport, port)
}

#[test]
fn both_versions_of_ip_are_measured_also_of_a_server_on_all_addresses() {
    for transport in ["udp", "tcp"] {
        for (server, client) in [("[::1]", "[::1]"), ("[::]", "[::1]"), ("0.0.0.0", "127.0.0.3")] {
            let port = free_port();
            let at = format!("{server}:{port}");
            let _server = serve(&[BINARY, "latency", transport, "--server", &at], transport, port);
            let flags = ["--duration", "200ms", "--time-stamps", "--json", "-"];
            let run = linerate(&[&["latency", transport, &format!("{client}:{port}")][..], &flags].concat());
            assert_eq!(run.code, 0, "{at}: {}", run.stderr);
            let result = run.json();
            assert_eq!(
                (result["counts"]["lost"].as_u64(), result["server"].as_str().unwrap().starts_with(client)),
                (Some(0), true)
            );
            assert!(result["round_trip"]["samples"].as_u64() > Some(100), "{result}");
            assert!(result["split"]["round_trip"]["samples"].as_u64() > Some(20), "{}", result["split"]);
            assert!(result["interference"]["involuntary_switches"].is_u64(), "{}", result["interference"]);
        }
    }
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
fn our_client_sends_to_both_servers_as_fast_as_it_can() {
    require(&[Needs::Sockperf]);
    for transport in ["udp", "tcp"] {
        let (port, other) = (free_port(), free_port());
        let (_ours, _theirs) = (ours(transport, port), theirs(transport, other));
        for port in [port, other] {
            let address = format!("127.0.0.1:{port}");
            let flags = ["latency", transport, &address, "--throughput", "--size", "500", "--duration", "500ms"];
            let run = linerate(&[&flags[..], &["--json", "-"]].concat());
            assert_eq!(run.code, 0, "{}", run.stderr);
            let json = run.json();
            let (sent, counts) = (&json["throughput"], &json["counts"]);
            let (messages, rate) = (sent["messages"].as_u64().unwrap(), sent["messages_per_s"].as_f64().unwrap());
            assert!(messages > 1000 && sent["bytes"].as_u64() == Some(500 * messages), "{sent}");
            assert!((rate * json["seconds"].as_f64().unwrap() / messages as f64 - 1.0).abs() < 1e-6, "{json}");
            assert!(counts["replied"].as_u64() > Some(0) && counts["foreign"] == 0, "{counts}");
            // Every message of a connection was read.
            assert!(transport == "udp" || counts["lost"] == 0, "{counts}");
            assert!(json["findings"].is_array(), "{json}");
            let lines = linerate(&[&flags[..], &["--layout", "sockperf"]].concat()).stdout;
            assert!(lines.contains("sockperf: Summary: Message Rate is "), "{lines}");
        }
    }
    let nobody = linerate(&["latency", "udp", &format!("127.0.0.1:{}", free_port()), "--throughput"]);
    assert_eq!((nobody.code, nobody.stderr.lines().count()), (4, 1), "{}", nobody.stderr);
}

#[test]
fn sockperf_measures_our_server() {
    require(&[Needs::Sockperf]);
    // Side by side: each run of sockperf takes seconds, and most of them it waits.
    thread::scope(|scope| {
        for transport in ["udp", "tcp"] {
            scope.spawn(move || sockperf_measures(transport));
        }
    });
}

fn sockperf_measures(transport: &str) {
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
fn a_server_that_is_gone_at_the_end_is_told_however_short_the_run_is() {
    for more in [&[][..], &["--clients", "2"], &["--open-loop", "2k"]] {
        let port = free_port();
        let server = ours("udp", port);
        let address = format!("127.0.0.1:{port}");
        let client = Command::new(BINARY)
            .args([&["latency", "udp", &address, "--duration", "2s", "--warm-up", "1ms", "--json", "-"], more].concat())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Behind the closed loop that comes before an open one.
        std::thread::sleep(Duration::from_millis(if more.contains(&"2k") { 2000 } else { 700 }));
        drop(server);
        let out = client.wait_with_output().unwrap();
        let json: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(out.status.code(), Some(1), "{more:?}: {json}");
        assert!(json["ended"]["gone"].is_string(), "{json}");
    }
}

#[test]
fn a_rate_that_cannot_be_kept_ends_with_its_time_and_a_warm_up_is_no_figure() {
    let port = free_port();
    let _server = ours("tcp", port);
    let address = format!("127.0.0.1:{port}");
    let begun = std::time::Instant::now();
    let run = linerate(&["latency", "tcp", &address, "--open-loop", "10M", "--duration", "500ms", "--json", "-"]);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    let json = run.json();
    let open = &json["open_loop"];
    assert!(open["unsent"].as_u64() > Some(0), "{open}");
    // Each message asks: what went out is what became of something.
    assert_eq!(open["messages"], json["counts"]["sent"], "{json}");
    let rate = open["messages"].as_f64().unwrap() / json["seconds"].as_f64().unwrap();
    assert!((rate / open["rate"].as_f64().unwrap() - 1.0).abs() < 1e-6, "{json}");
    let intervals =
        |times: &Value| times["percentiles"].as_array().unwrap().iter().filter(|p| !p["interval_ns"].is_null()).count();
    assert_eq!(
        (intervals(&json["round_trip"]), intervals(&open["from_sending"])),
        (0, 0),
        "times that follow from each other"
    );
    assert_eq!(json["counts"]["foreign"], 0, "{}", json["counts"]);
    // Without a figure it is not a success.
    let none = json["round_trip"]["samples"] == 0;
    assert_eq!((run.code, json["ended"] == "too-fast"), (i32::from(none), none), "{json}");
    let log = tempfile::tempdir().unwrap();
    let flags = ["latency", "tcp", &address, "--warm-up", "30s", "--json", "-"];
    let mut run = crate::support::tester::start(&flags, None, &log.path().join("log"));
    std::thread::sleep(Duration::from_secs(1));
    run.signal("INT");
    assert_eq!(run.wait_end(Duration::from_secs(20)).and_then(|status| status.code()), Some(130));
    let text = std::fs::read_to_string(log.path().join("log")).unwrap();
    let json: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    assert_eq!((json["round_trip"]["samples"].as_u64(), json["counts"]["sent"].as_u64()), (Some(0), Some(0)), "{json}");
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

#[test]
fn load_clients_time_stamps_and_a_log_stand_beside_a_measurement() {
    for transport in ["udp", "tcp"] {
        let port = free_port();
        let _server = ours(transport, port);
        let address = format!("127.0.0.1:{port}");
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name).display().to_string();
        let (log, svg, markdown, csv) = (file("log"), file("svg"), file("md"), file("csv"));
        let flags = ["latency", transport, &address, "--duration", "500ms", "--json", "-"];
        let more = ["--clients", "3", "--background", "2k", "--background-size", "300", "--full-log", &log];
        let files = ["--svg", &svg, "--markdown", &markdown, "--csv", &csv];
        let run = linerate(&[&flags[..], &more, &files].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        let json = run.json();
        assert_eq!(json["clients"], 3);
        let counts = &json["counts"];
        assert_eq!((counts["lost"].as_u64(), counts["foreign"].as_u64()), (Some(0), Some(0)), "{counts}");
        assert!(json["background"]["rate"].as_f64() > Some(200.0), "{}", json["background"]);
        let text = |path: &str| std::fs::read_to_string(path).unwrap();
        let rows: Vec<Vec<f64>> = text(&log)
            .lines()
            .skip(1)
            .map(|line| line.split(',').map(|number| number.trim().parse().unwrap()).collect())
            .collect();
        assert_eq!(rows.len() as u64, counts["replied"].as_u64().unwrap());
        assert!(rows.iter().all(|row| (row[2] - row[1] - 2.0 * row[3] / 1e6).abs() < 1e-6), "half a round trip");
        assert!(text(&svg).contains("Round trips") && text(&markdown).contains("| percentile"));
        assert_eq!(text(&csv).lines().count(), 15);
        let polled = linerate(&[&flags[..], &["--wait", "prefer-busy-poll", "--samples", "200"]].concat());
        match polled.code {
            0 => assert_eq!(
                (polled.json()["wait"].as_str(), &polled.json()["napi"]),
                (Some("prefer-busy-poll"), &Value::Bool(false))
            ),
            code => assert!(code == 4 && polled.stderr.contains("CAP_NET_ADMIN"), "{}", polled.stderr),
        }
        let stamped = linerate(&[&flags[..], &["--time-stamps"]].concat());
        let split = &stamped.json()["split"];
        for part in ["to_queue", "to_driver", "away", "to_application"] {
            assert!(split[part]["samples"].as_u64() > Some(20), "{split}");
        }
        let plan = format!("latency-{transport}");
        let plan = linerate(&["latency", transport, &address, "--plan", &plan, "--duration", "200ms"]);
        // The document has figures of datagrams only.
        let published = plan.stdout.contains("published") && plan.stdout.contains("1.60");
        assert_eq!((plan.code, published), (0, transport == "udp"), "{}{}", plan.stdout, plan.stderr);
    }
    let port = free_port();
    let _server = ours("udp", port);
    let none =
        linerate(&["latency", "udp", &format!("127.0.0.1:{port}"), "--open-loop", "10", "--reply-every", "1000"]);
    assert_eq!((none.code, none.stderr.lines().count()), (2, 1), "{}", none.stderr);
    for wrong in [
        &["--background", "5bps"][..],
        &["--background-size", "300"],
        &["--clients", "0"],
        &["--clients", "2", "--open-loop", "50%"],
        &["--clients", "2", "--cpu", "0"],
        &["--plan", "latency-raw-loopback"],
        &["--plan", "latency-udp", "--size", "64"],
        &["--busy-poll-us", "0"],
        &["--full-log", "/nowhere/at/all"],
    ] {
        let refused = linerate(&[&["latency", "udp", "127.0.0.1:9"], wrong].concat());
        assert_eq!((refused.code, refused.stderr.lines().count()), (2, 1), "{wrong:?}: {}", refused.stderr);
    }
}

/// Round trips between the two ends of a device, in a namespace each; the figures of the median: least, value, most.
fn through(tester: &Netns) -> [u64; 3] {
    let far = Netns::new();
    tester.ip(&format!("link set t1 netns {}", far.name()));
    for (host, name, address) in [(tester, "t0", "192.0.2.1/30"), (&far, "t1", "192.0.2.2/30")] {
        host.ip(&format!("address add {address} dev {name}"));
        host.ip(&format!("link set {name} up"));
        // A switch outside of the kernel sees frames whose checksums are left to a device that there is not.
        host.run(&["ethtool", "-K", name, "tx", "off"]);
    }
    tester.wait_for_links(&["t0"]);
    let server =
        far.command(BINARY).args(["latency", "udp", "--server", "192.0.2.2:11111"]).stdout(Stdio::null()).spawn();
    let _server = Server(server.unwrap());
    let flags = ["latency", "udp", "192.0.2.2:11111", "--duration", "2s", "--json", "-"];
    // The switch may still connect its ports, and the server start.
    let until = std::time::Instant::now() + Duration::from_secs(30);
    loop {
        let run = linerate_in(tester, &flags);
        if run.code == 0 {
            let all = run.json()["round_trip"]["percentiles"].as_array().unwrap().clone();
            let median = all.iter().find(|p| p["percent"] == 50.0).unwrap().clone();
            let of = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{median}"));
            return [of(&median["interval_ns"][0]), of(&median["ns"]), of(&median["interval_ns"][1])];
        }
        assert!(std::time::Instant::now() < until, "{}", run.stderr);
    }
}

#[test]
fn a_switch_in_the_kernel_and_one_on_dpdk_differ_in_what_applications_see() {
    require(&[Needs::Root, Needs::Network, Needs::OvsDpdk]);
    let kernel = {
        let bridge = KernelDut::bridge();
        through(bridge.tester())
    };
    let dpdk = {
        let tester = Netns::new();
        let _switch = OvsDpdk::between_veth(&tester);
        through(&tester)
    };
    assert!(kernel.iter().chain(&dpdk).all(|&ns| (1_000..100_000_000).contains(&ns)), "{kernel:?} {dpdk:?}");
    let apart = kernel[2] < dpdk[0] || dpdk[2] < kernel[0];
    assert!(apart, "medians with their intervals, ns: {kernel:?} by the kernel, {dpdk:?} by OVS-DPDK");
}

#[test]
fn results_are_shown_again_and_against_each_other() {
    let port = free_port();
    let _server = ours("udp", port);
    let address = format!("127.0.0.1:{port}");
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (blocking, spinning, raw) = (file("blocking"), file("spinning"), file("raw"));
    for (flags, json) in [(&["block"], &blocking), (&["spin"], &spinning)] {
        let flags = ["latency", "udp", &address, "--duration", "300ms", "--json", json, "--wait", flags[0]];
        assert_eq!(linerate(&flags).code, 0);
    }
    assert_eq!(linerate(&["latency", "raw", "-c", "20000", "-w", "10", "--json", &raw]).code, 0);
    for json in [&blocking, &raw] {
        let (svg, again) = (file("svg"), file("again"));
        let shown = linerate(&["runs", "show", json, "--svg", &svg, "--json", &again]);
        assert_eq!(shown.code, 0, "{}", shown.stderr);
        assert!(shown.stdout.contains("percentile") && shown.stdout.contains("greatest"), "{}", shown.stdout);
        let read = |path: &str| serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(read(json), read(&again));
        assert!(std::fs::read_to_string(&svg).unwrap().starts_with("<svg"));
    }
    let compared = linerate(&["runs", "show", &spinning, "--baseline", &blocking]);
    assert_eq!(compared.code, 0, "{}", compared.stderr);
    assert!(compared.stdout.contains("UDP, spinning") && compared.stdout.contains("before"), "{}", compared.stdout);
    for wrong in [&[blocking.as_str(), &raw][..], &[&blocking, "--layout", "nfvi"]] {
        let refused = linerate(&[&["runs", "show"], wrong].concat());
        assert_eq!((refused.code, refused.stderr.lines().count()), (2, 1), "{wrong:?}: {}", refused.stderr);
    }
    let planned = linerate(&["bench", "--plan", "latency-udp"]);
    assert!(planned.code == 2 && planned.stderr.contains("linerate latency udp"), "{}", planned.stderr);
}

#[test]
fn sockperf_is_started_as_either_end() {
    require(&[Needs::Sockperf]);
    for transport in ["udp", "tcp"] {
        let address = format!("127.0.0.1:{}", free_port());
        let ours =
            linerate(&["latency", transport, &address, "--peer", "sockperf", "--duration", "300ms", "--json", "-"]);
        assert_eq!(ours.code, 0, "{}", ours.stderr);
        assert!(ours.json()["round_trip"]["samples"].as_u64() > Some(20), "{}", ours.stdout);
        let theirs = linerate(&["latency", transport, "--server", &address, "--peer", "sockperf", "--duration", "1s"]);
        assert_eq!(theirs.code, 0, "{}", theirs.stderr);
        assert!(theirs.stdout.contains("Summary: Latency is"), "{}", theirs.stdout);
        assert!(!listens(transport, address.rsplit(':').next().unwrap().parse().unwrap()), "nobody is left");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for flags in [&[address.as_str()][..], &["--server", &address]] {
        let refused = linerate(&[&["latency", "tcp", "--peer", "sockperf"], flags].concat());
        assert_eq!((refused.code, refused.stderr.lines().count()), (4, 1), "{}", refused.stderr);
    }
    // sockperf 3.7 knows no IPv6, and says so; newer ones do.
    let six = linerate(&["latency", "udp", "[::1]:9", "--peer", "sockperf", "--duration", "300ms"]);
    assert!(six.code == 0 || six.code == 4 && six.stderr.contains("::1"), "{}", six.stderr);
    assert!(six.code == 0 || six.stderr.contains("Invalid address"), "its own words: {}", six.stderr);
    // Its client prints its help then, and ends with 0.
    let six = linerate(&["latency", "udp", "--server", "[::1]:0", "--peer", "sockperf", "--duration", "1s"]);
    let measured = six.code == 0 && six.stdout.contains("Summary: Latency is");
    assert!(measured || six.code == 4 && six.stderr.contains("Invalid address"), "{}{}", six.stdout, six.stderr);
    // What its client does not do is not passed over.
    for flags in [["--duration", "1500ms"], ["--samples", "5"], ["--svg", "a.svg"], ["--json", "a.json"]] {
        let refused =
            linerate(&[&["latency", "udp", "--server", "127.0.0.1:0", "--peer", "sockperf"], &flags[..]].concat());
        assert_eq!((refused.code, refused.stderr.lines().count()), (2, 1), "{flags:?}: {}", refused.stderr);
    }
    // Killed, we take it along.
    let address = format!("127.0.0.1:{}", free_port());
    let mut ours = Command::new(BINARY)
        .args(["latency", "udp", &address, "--peer", "sockperf", "--duration", "60s"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let port = address.rsplit(':').next().unwrap().parse().unwrap();
    wait_until("sockperf that listens", Duration::from_secs(20), || listens("udp", port));
    ours.kill().unwrap();
    ours.wait().unwrap();
    wait_until("its end", Duration::from_secs(20), || !listens("udp", port));
    let missing = Command::new(BINARY)
        .args(["latency", "udp", "127.0.0.1:9", "--peer", "sockperf"])
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("apt-get install sockperf"));
}
