//! The metrics, as a scraper reads them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod serve_support;

use std::{
    collections::{HashMap, HashSet},
    io::{Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use flow::{
    metrics::{text, MetricsServer, MetricsSpec},
    protocol::{ExportTotals, Sink},
    serve::ServeError,
    Source,
};
use serve_support::{flows, loopback};

fn ask(server: &MetricsServer, request: &str) -> String {
    let mut stream = TcpStream::connect(server.local_addr()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Name and labels to value, having checked every rule of the text format 0.0.4 that we use.
fn parse(text: &str) -> HashMap<String, f64> {
    let mut samples = HashMap::new();
    let mut seen = HashSet::new();
    let (mut helped, mut family, mut kind) = (String::new(), String::new(), String::new());
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(help.ends_with('.') && seen.insert(name.to_owned()), "{line}");
            helped = name.into();
        } else if let Some(kinds) = line.strip_prefix("# TYPE ") {
            let (name, k) = kinds.split_once(' ').unwrap();
            assert_eq!(name, helped);
            assert!(name.starts_with("linerate_flowlog_") && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
            assert_eq!(name.ends_with("_total"), k == "counter", "{line}");
            assert!(matches!(k, "counter" | "gauge"));
            (family, kind) = (name.into(), k.into());
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let rest = series.strip_prefix(family.as_str()).unwrap();
            assert!(rest.is_empty() || rest.starts_with('{') && rest.ends_with("\"}"), "{line}");
            let value: f64 = value.parse().unwrap();
            assert!(value.is_finite() && (kind == "gauge" || value >= 0.0));
            assert!(samples.insert(series.to_owned(), value).is_none(), "{line}");
        }
    }
    samples
}

#[test]
fn metrics_are_what_was_counted() {
    let source = flows(12, 1);
    source.totals.lock().unwrap().interfaces[0].packets = u64::MAX / 4;
    source.totals.lock().unwrap().interfaces[1].not_ip_kinds = [("ARP".to_owned(), 3), ("LLDP".to_owned(), 1)].into();
    source.totals.lock().unwrap().export.dropped = 7;
    let collector = ExportTotals { records: 20, sent: 11, dropped: 7, uncertain: 3, resent: 2 };
    let collector = Sink { name: "udp:192.0.2.1:4739".into(), up: true, queued: 2, totals: collector };
    source.totals.lock().unwrap().sinks = vec![collector, Sink { name: "json:/tmp/flows".into(), ..Sink::default() }];
    let server = MetricsServer::start(&MetricsSpec { listen: loopback(), token: None }, source.clone()).unwrap();
    let answer = ask(&server, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
    assert_eq!(body, text(&source.totals()));
    let samples = parse(body);
    let value = |name: &str| samples[&format!("linerate_flowlog_{name}")];
    assert_eq!(value("flows"), 12.0);
    assert_eq!(value("export_dropped_total"), 7.0);
    assert_eq!(value("flows_ended_total{reason=\"end_of_flow\"}"), 3.0);
    assert!(body.contains("receive_packets_total{port=\"0\",interface=\"null\"} 4611686018427387903\n"));
    let kind = |kind: &str| {
        let labels = r#"port="1",interface="a \"quoted\\name\"\nof two lines""#;
        value(&format!(r#"receive_not_ip_kind_total{{{labels},kind="{kind}"}}"#))
    };
    assert_eq!((kind("ARP"), kind("LLDP")), (3.0, 1.0));
    assert_eq!(value(r#"interface_up{port="1",interface="a \"quoted\\name\"\nof two lines"}"#), 1.0);
    assert_eq!(value("collector_dropped_total{collector=\"udp:192.0.2.1:4739\"}"), 7.0);
    assert_eq!(value("collector_queued_records{collector=\"udp:192.0.2.1:4739\"}"), 2.0);
    assert_eq!(value("collector_up{collector=\"json:/tmp/flows\"}"), 0.0);
    assert_eq!(value("collector_uncertain_records{collector=\"udp:192.0.2.1:4739\"}"), 3.0);
    assert_eq!(value("collector_resent_total{collector=\"udp:192.0.2.1:4739\"}"), 2.0);
    // Eight of each of two interfaces, five reasons, seven of each of two collectors, twelve more.
    assert_eq!(samples.len(), 49);
    // The program that reads it in earnest: where scripts/setup.sh puts it, or installed (Debian: prometheus).
    let programs = ["/var/lib/linerate-tests/bin/promtool", "promtool"];
    let spawned = programs.into_iter().find_map(|program| {
        let mut promtool = Command::new(program);
        promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        promtool.spawn().ok()
    });
    let Some(mut promtool) = spawned else {
        assert!(std::env::var_os("CI").is_none(), "promtool is missing");
        eprintln!("skipped: promtool is missing");
        return;
    };
    promtool.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let out = promtool.wait_with_output().unwrap();
    let said = [out.stdout, out.stderr].concat();
    assert!(out.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn everything_else_is_refused() {
    let server = MetricsServer::start(&MetricsSpec { listen: loopback(), token: None }, flows(1, 1)).unwrap();
    let long = format!("GET /metrics HTTP/1.1\r\nx: {}", "x".repeat(9_000));
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("GET /metrics/x HTTP/1.1\r\n\r\n", "404"),
        ("DELETE /metrics HTTP/1.1\r\n\r\n", "405"),
        ("\r\n\r\nx\r\n", "400"),
        ("GET /metrics\r\n\r\n", "400"),
        (&long, "431"),
    ] {
        let answer = ask(&server, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:.60}: {answer}");
    }
    assert!(ask(&server, "HEAD /metrics HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
    // One that says nothing holds nobody up, nor the end.
    let silent: Vec<_> = (0..5).map(|_| TcpStream::connect(server.local_addr()).unwrap()).collect();
    assert!(ask(&server, "GET /metrics HTTP/1.1\r\n\r\n").contains("200 OK"));
    drop(server);
    drop(silent);
}

#[test]
fn elsewhere_than_loopback_a_token_is_needed() {
    let listen = "0.0.0.0:0".parse().unwrap();
    let source = flows(1, 1);
    let error = MetricsServer::start(&MetricsSpec { listen, token: None }, Arc::clone(&source) as Arc<dyn Source>);
    assert!(matches!(error, Err(ServeError::NeedsToken(_))));
    let spec = MetricsSpec { listen: loopback(), token: Some("correct-horse".into()) };
    let server = MetricsServer::start(&spec, source).unwrap();
    assert!(ask(&server, "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 401 "));
    let good = "GET /metrics HTTP/1.1\r\nAuthorization: Bearer correct-horse\r\n\r\n";
    assert!(ask(&server, good).starts_with("HTTP/1.1 200 "));
}
