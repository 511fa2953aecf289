//! Read from elsewhere: tokens, TLS, metrics.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use crate::logger::{directory, flowlog, Logger};
use crate::support::{
    raw::inside,
    require,
    tester::{linerate, linerate_in},
    words::METRICS_AT,
    Needs, Netns, Words,
};

const IDLE: [&str; 6] = ["--port", "null,no-rx=1", "--flows", "1k", "--memory", "no-hugepages"];
const TOKEN: &str = "s3cret-and-long";

fn file(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn an_address_that_others_reach_needs_a_token() {
    require(&[Needs::Root, Needs::Network]);
    let (netns, dir) = (Netns::new(), directory());
    netns.ip("link set lo up");
    netns.ip("addr add 192.0.2.1/32 dev lo");
    let mut words = Words::new();
    words.hide(dir.path().display(), "dir");
    for what in ["--listen", "--metrics"] {
        let open = flowlog(dir.path(), &[&IDLE[..], &[what, "192.0.2.1:9395"]].concat());
        words.refused_in_a_line(2, &[what], &open);
    }
    let short = file(dir.path(), "short", "1234567\n");
    let refused = flowlog(dir.path(), &[&IDLE[..], &["--token-file", &short]].concat());
    words.refused_in_a_line(2, &["a short token"], &refused);

    let token = file(dir.path(), "token", &format!("{TOKEN}\n"));
    let args = ["--listen", "192.0.2.1:0", "--metrics", "192.0.2.1:19396", "--token-file", &token];
    let logger = Logger::start(Some(&netns), dir.path(), &[&IDLE[..], &args].concat());
    assert_eq!(logger.client().hello["auth"], true);
    let at = logger.address().to_string();
    words.hide(&at, "address");
    let flows = |more: &[&str]| linerate_in(&netns, &[&["flows", &at, "--once"], more].concat());
    let none = flows(&[]);
    words.refused_in_a_line(2, &["no token"], &none);
    let wrong = file(dir.path(), "wrong", "another-token\n");
    let wrong = flows(&["--token-file", &wrong]);
    words.refused_in_a_line(2, &["a wrong token"], &wrong);
    insta::assert_snapshot!(words);
    let right = flows(&["--token-file", &token]);
    assert!(right.code == 0 && right.stdout.contains("flowlog"), "{right:?}");
    assert!(!logger.process.output().contains(TOKEN), "a token is told nobody");

    let metrics = |header: &str| inside(&netns, || scrape("192.0.2.1:19396", header));
    assert!(metrics("").starts_with("HTTP/1.1 401"), "{}", metrics(""));
    let right = metrics(&format!("Authorization: Bearer {TOKEN}\r\n"));
    assert!(right.starts_with("HTTP/1.1 200"), "{right}");
    // As others write it: header names and the scheme in any case, and lines that end with a bare line feed.
    let curl = ["curl", "-sSf", "-H", "authorization: bearer s3cret-and-long", "http://192.0.2.1:19396/metrics"];
    let metric = "\nlinerate_flowlog_flows 0";
    assert!(netns.run(&curl).contains(metric), "{}", netns.run(&curl));
    let bare = r"printf 'GET /metrics HTTP/1.1\nHost: a\nAUTHORIZATION: BEARER s3cret-and-long\n\n'";
    let bare = netns.run(&["sh", "-c", &format!("{bare} | nc -w 30 192.0.2.1 19396")]);
    assert!(bare.starts_with("HTTP/1.1 200") && bare.contains(metric), "{bare}");
    assert_eq!(logger.end_by("TERM").0.and_then(|s| s.code()), Some(0));
}

#[test]
fn tls_is_spoken_with_the_certificate_given() {
    let dir = directory();
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let cert = file(dir.path(), "cert.pem", &made.cert.pem());
    let key = file(dir.path(), "key.pem", &made.signing_key.serialize_pem());
    let bad = flowlog(dir.path(), &[&IDLE[..], &["--tls-cert", &key, "--tls-key", &key]].concat());
    assert!(matches!(bad.code, 2 | 4) && bad.stderr.contains("key.pem"), "{bad:?}");
    let logger = Logger::start(
        None,
        dir.path(),
        &[&IDLE[..], &["--name", "tls", "--tls-cert", &cert, "--tls-key", &key]].concat(),
    );
    let at = logger.address().to_string();
    let read = linerate(&["flows", &at, "--once", "--tls-ca", &cert]);
    assert!(read.code == 0 && read.stdout.contains("tls  127.0.0.1:"), "{read:?}");
    let other = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let other = file(dir.path(), "other.pem", &other.cert.pem());
    let doubted = linerate(&["flows", &at, "--once", "--tls-ca", &other]);
    assert!(doubted.code != 0 && doubted.stdout.is_empty(), "{doubted:?}");
    assert_eq!(logger.end_by("TERM").0.and_then(|s| s.code()), Some(0));
}

/// What a GET of /metrics brings, with its head.
fn scrape(at: &str, header: &str) -> String {
    let mut stream = TcpStream::connect(at).expect("metrics are served");
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {at}\r\n{header}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn prometheus_reads_metrics() {
    let dir = directory();
    let logger = Logger::start(None, dir.path(), &[&IDLE[..], &["--metrics", "127.0.0.1:0"]].concat());
    let said = logger.process.output();
    let at = said.split_once(METRICS_AT).unwrap().1.split(';').next().unwrap().to_owned();
    let answer = scrape(&at, "");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.to_lowercase().contains("text/plain"), "{head}");
    for part in
        ["linerate_flowlog_receive_packets_total{port=\"0\",interface=\"null,no-rx=1\"} 0", "linerate_flowlog_flows"]
    {
        assert!(body.contains(part), "no {part} in {body}");
    }
    // What Prometheus itself says of it, where its tool is installed.
    let promtool =
        Command::new("promtool").args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
    if let Ok(mut promtool) = promtool {
        promtool.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
        let checked = promtool.wait_with_output().unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
    assert_eq!(logger.end_by("TERM").0.and_then(|s| s.code()), Some(0));
}
