//! Clients that do what they should not cost themselves only; tokens, TLS, the limit, a clean end.
#![allow(clippy::unwrap_used, clippy::panic)]

mod serve_support;

use std::{
    fs,
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::{
        atomic::{AtomicBool, Ordering},
        Arc,
    },
    thread,
    time::{Duration, Instant},
};

use flow::{
    client::{BackOff, Client, ClientError, ClientSpec, TlsTrust},
    protocol::{Ask, By, Filter},
    serve::{ServeError, ServeSpec, Server, TlsSpec},
    Source,
};
use serve_support::{client, flows, loopback, server, server_with};

fn raw(server: &Server) -> (TcpStream, BufReader<TcpStream>) {
    let stream = TcpStream::connect(server.local_addr()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut hello = String::new();
    reader.read_line(&mut hello).unwrap();
    assert_eq!(hello, "{\"server\":\"linerate-flowlog\",\"version\":2,\"name\":\"flowlog\",\"auth\":false}\n");
    (stream, reader)
}

fn answer(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line
}

/// Why a request of this id is refused.
fn refusal(reader: &mut impl BufRead, id: u64) -> String {
    let answer: serde_json::Value = serde_json::from_str(&answer(reader)).unwrap();
    assert_eq!(answer["id"], id, "{answer}");
    answer["error"].as_str().unwrap().to_owned()
}

#[test]
fn wrong_requests_are_told_and_garbage_is_let_go() {
    let server = server(&flows(1, 1));
    let (mut stream, mut reader) = raw(&server);
    stream.write_all(b"\n  \r\n{\"id\":5,\"ask\":\"everything\"}\n{\"id\":6,\"ask\":\"unsubscribe\"}\r\n").unwrap();
    insta::assert_snapshot!(refusal(&mut reader, 5), @"not a request: unknown variant `everything`, expected one of `auth`, `totals`, `flows`, `top`, `subscribe`, `unsubscribe`");
    assert_eq!(answer(&mut reader), "{\"id\":6,\"ok\":true}\n");
    stream.write_all(b"{\"id\":7,\"ask\":\"flows\",\"filter\":{\"port\":70000}}\n").unwrap();
    insta::assert_snapshot!(refusal(&mut reader, 7), @"not a request: invalid value: integer `70000`, expected a whole number from 0 to 65535");
    for _ in 1..=8 {
        stream.write_all(b"hello\xff\n").unwrap();
        insta::allow_duplicates! { insta::assert_snapshot!(refusal(&mut reader, 0), @"not JSON: expected value at line 1 column 1") };
    }
    assert_eq!(answer(&mut reader), "");
    // A line without end, and one that is nested too deep.
    let (mut stream, mut reader) = raw(&server);
    stream.write_all("[".repeat(60_000).as_bytes()).unwrap();
    stream.write_all(b"\n").unwrap();
    insta::assert_snapshot!(refusal(&mut reader, 0), @"not JSON: recursion limit exceeded at line 1 column 128");
    let _ = stream.write_all(&vec![b'x'; 70_000]);
    insta::assert_snapshot!(refusal(&mut reader, 0), @"request too long: must be a line of at most 65536 bytes");
    assert_eq!(answer(&mut reader), "");
}

#[test]
fn who_never_stops_sending_is_cut_off() {
    let server = server(&flows(1, 1));
    let (mut stream, _reader) = raw(&server);
    stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    let by = Instant::now() + Duration::from_secs(60);
    let error = loop {
        match stream.write(&[b'\n', b'x'].repeat(30_000)) {
            Err(e) if !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break e,
            _ => assert!(Instant::now() < by, "the connection is still open"),
        }
    };
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
}

/// Does what it should not until told to stop.
fn hostile(server: &Server, way: usize, stop: &AtomicBool) {
    let mut n = 0u64;
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut stream) = TcpStream::connect(server.local_addr()) else { continue };
        stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let text = b"{\"ask\":\"subscribe\",\"top\":1000}\n{\"ask\":\"flows\",\"limit\":1000}\n";
        for _ in 0..300 {
            n += 1;
            let sent = match way {
                // Garbage of all bytes.
                0 => stream.write_all(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes().repeat(100)),
                // Half a line, and gone.
                1 => stream.write_all(&text[..n as usize % 40]).and(Err(std::io::ErrorKind::Other.into())),
                // Asks for much and never reads.
                2 => stream.write_all(text),
                // A byte at a time, each way.
                _ => stream.write_all(&text[n as usize % text.len()..][..1]).map(|()| {
                    let _ = stream.read(&mut [0; 1]);
                }),
            };
            if sent.is_err() || stop.load(Ordering::Relaxed) {
                break;
            }
        }
    }
}

/// Sets a flag when it goes.
struct Stopper<'a>(&'a AtomicBool);

impl Drop for Stopper<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn hostile_clients_cost_themselves() {
    let server = server(&flows(2_000, 1));
    let stop = AtomicBool::new(false);
    let spec = ClientSpec::new(server.local_addr().to_string());
    thread::scope(|scope| {
        // Also when the rest fails: the scope waits for all its threads.
        let _stop = Stopper(&stop);
        for way in 0..4 {
            let (server, stop) = (&server, &stop);
            scope.spawn(move || hostile(server, way, stop));
        }
        let good: Vec<_> = (0..9)
            .map(|_| {
                // The hostile ones come so fast that there may be no place for a moment.
                let mut back_off = BackOff::new(Duration::from_millis(20), Duration::from_millis(100));
                let by = Instant::now() + Duration::from_secs(60);
                let client = Client::connect_patiently(&spec, &mut back_off, |_, wait| {
                    thread::sleep(wait);
                    Instant::now() < by
                });
                let mut client = client.unwrap();
                scope.spawn(move || {
                    for _ in 0..3 {
                        assert_eq!(client.totals().unwrap().table.flows, 2_000);
                        assert_eq!(client.flows(Filter::default()).filter(|f| f.is_ok()).count(), 2_000);
                    }
                    assert_eq!(client.top(By::Bytes, 5, &Filter::default()).unwrap().flows.len(), 5);
                })
            })
            .collect();
        let good = good.into_iter().map(thread::ScopedJoinHandle::join).filter(|g| g.is_ok()).count();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(good, 9);
    });
}

#[test]
fn random_lines_are_answered_each() {
    let server = server(&flows(10, 1));
    // Xorshift: the same lines each time.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let words = [
        "\"ask\":",
        "\"top\"",
        "\"flows\"",
        "{",
        "}",
        "\"limit\":",
        "1",
        "-1",
        "1e999",
        ",",
        "\"cursor\":",
        "\"id\":",
        "null",
        "[",
        "\"\\u0000\"",
    ];
    for _ in 0..20 {
        let (mut stream, mut reader) = raw(&server);
        let mut lines = 0;
        while lines < 50 {
            let text: String = (0..random(9)).map(|_| words[random(words.len())]).collect();
            lines += 1;
            if text.is_empty() {
                continue;
            }
            if stream.write_all(format!("{text}\n").as_bytes()).is_err() {
                break;
            }
            let said = answer(&mut reader);
            // Let go after some that were no JSON.
            if said.is_empty() {
                break;
            }
            let value: serde_json::Value = serde_json::from_str(&said).unwrap();
            assert!(value.get("id").is_some() && value.as_object().unwrap().len() == 2, "{text}: {said}");
        }
    }
}

#[test]
fn beyond_the_limit_one_line_says_so() {
    let source = flows(1, 1);
    let server = server_with(&source, |spec| spec.clients = 2);
    let kept: Vec<_> = (0..2).map(|_| client(&server)).collect();
    assert_eq!(server.clients(), 2);
    let spec = ClientSpec::new(server.local_addr().to_string());
    for _ in 0..20 {
        // Beyond the few that are told so, the door is shut.
        match Client::connect(&spec).unwrap_err() {
            ClientError::Refused(why) => {
                insta::allow_duplicates! { insta::assert_snapshot!(why, @"2 clients are connected already: try again later") }
            }
            ClientError::Lost(_) => {}
            other => panic!("{other}"),
        }
    }
    drop(kept);
    let mut back_off = BackOff::new(Duration::from_millis(20), Duration::from_millis(100));
    let again = Client::connect_patiently(&spec, &mut back_off, |_, wait| {
        thread::sleep(wait);
        true
    });
    assert_eq!(again.unwrap().totals().unwrap().table.flows, 1);
}

#[test]
fn without_the_token_nothing_is_told() {
    let source = flows(1, 1);
    let server = server_with(&source, |spec| spec.token = Some("correct-horse".into()));
    let spec = |token: Option<&str>| ClientSpec {
        token: token.map(Into::into),
        ..ClientSpec::new(server.local_addr().to_string())
    };
    assert!(matches!(Client::connect(&spec(None)), Err(ClientError::NeedsToken)));
    assert!(matches!(Client::connect(&spec(Some("correct-hors"))), Err(ClientError::Refused(_))));
    let mut good = Client::connect(&spec(Some("correct-horse"))).unwrap();
    assert!(good.hello().auth && good.totals().is_ok());
    let stream = TcpStream::connect(server.local_addr()).unwrap();
    let mut reader = BufReader::new(&stream);
    assert!(answer(&mut reader).contains("\"auth\":true"));
    for ask in [Ask::Totals, Ask::Unsubscribe, Ask::Top { by: By::Bytes, limit: 1, filter: Filter::default() }] {
        let ask = serde_json::to_string(&flow::protocol::Request { id: 1, ask }).unwrap();
        (&stream).write_all(format!("{ask}\n").as_bytes()).unwrap();
        insta::allow_duplicates! { insta::assert_snapshot!(refusal(&mut reader, 1), @r#"show the token first: {"ask":"auth","token":...}"#) };
    }
    for _ in 0..3 {
        (&stream).write_all(b"{\"ask\":\"auth\",\"token\":\"guess\"}\n").unwrap();
        insta::allow_duplicates! { insta::assert_snapshot!(refusal(&mut reader, 0), @"wrong token") };
    }
    assert_eq!(answer(&mut reader), "");
    let open = ServeSpec::new("0.0.0.0:0".parse().unwrap());
    let error = Server::start(&open, Arc::clone(&source) as Arc<dyn Source>).unwrap_err();
    assert!(matches!(error, ServeError::NeedsToken(_)), "{error}");
}

fn certificate(dir: &Path, name: &str) -> TlsSpec {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let spec = TlsSpec { cert: dir.join(format!("{name}.pem")), key: dir.join(format!("{name}.key")) };
    fs::write(&spec.cert, made.cert.pem()).unwrap();
    fs::write(&spec.key, made.signing_key.serialize_pem()).unwrap();
    spec
}

#[test]
fn over_tls() {
    let dir = tempfile::tempdir().unwrap();
    let (own, other) = (certificate(dir.path(), "logger.example"), certificate(dir.path(), "other.example"));
    let source = flows(3_000, 1);
    let server = server_with(&source, |spec| {
        spec.token = Some("correct-horse".into());
        spec.tls = Some(own.clone());
    });
    let spec = |ca: &Path, name: &str| ClientSpec {
        token: Some("correct-horse".into()),
        tls: Some(TlsTrust { ca: ca.into(), name: Some(name.into()) }),
        timeout: Duration::from_secs(5),
        ..ClientSpec::new(server.local_addr().to_string())
    };
    let mut good = Client::connect(&spec(&own.cert, "logger.example")).unwrap();
    assert_eq!(good.flows(Filter::default()).filter(|f| f.is_ok()).count(), 3_000);
    let mut subscription = good.subscribe(1, None, By::Bytes, &Filter::default()).unwrap();
    assert!(subscription.next().unwrap().is_ok() && subscription.next().unwrap().is_ok());
    drop(subscription);
    assert!(good.totals().is_ok());
    let mut errors = Vec::new();
    for (ca, name) in [(&other.cert, "logger.example"), (&own.cert, "other.example")] {
        let error = Client::connect(&spec(ca, name)).unwrap_err();
        assert!(matches!(error, ClientError::Lost(_)), "{error:?}");
        errors.push(error.to_string().replace(&server.local_addr().to_string(), "[address]"));
    }
    insta::assert_snapshot!(errors.join("\n"), @r#"
    the connection broke: invalid peer certificate: BadSignature
    the connection broke: invalid peer certificate: certificate not valid for name "other.example"; certificate is only valid for DnsName("logger.example")
    "#);
    // Who does not speak TLS hears nothing of use, and is let go; who trusts no file is told which.
    let plain = ClientSpec { tls: None, timeout: Duration::from_millis(300), ..spec(&own.cert, "x") };
    assert!(matches!(Client::connect(&plain), Err(ClientError::NotALogger(_) | ClientError::Lost(_))));
    let error = Client::connect(&spec(&own.key, "logger.example")).unwrap_err();
    assert!(matches!(&error, ClientError::Trust(e) if e.path == own.key), "{error}");
    let mixed = TlsSpec { cert: own.cert.clone(), key: other.key.clone() };
    let bad = ServeSpec { tls: Some(mixed), ..ServeSpec::new(loopback()) };
    let error = Server::start(&bad, Arc::clone(&source) as Arc<dyn Source>).unwrap_err();
    assert!(matches!(error, ServeError::Tls { .. }), "{error}");
}

#[test]
fn the_end_is_clean_whatever_clients_do() {
    let source = flows(2_000, 1);
    let server = server(&source);
    let address = server.local_addr();
    let clients: Vec<_> = (0..8).map(|_| TcpStream::connect(address).unwrap()).collect();
    for (n, mut client) in clients.iter().enumerate() {
        let text: &[u8] = match n % 4 {
            0 => b"",
            1 => b"{\"ask\":\"sub",
            2 => b"{\"ask\":\"top\",\"limit\":1000}\n",
            _ => b"{\"ask\":\"subscribe\",\"top\":1000}\n{\"ask\":\"flows\",\"limit\":1000}\n",
        };
        client.write_all(text).unwrap();
    }
    thread::sleep(Duration::from_millis(100));
    let weak = Arc::downgrade(&source);
    drop(source);
    drop(server);
    // Every thread that could still hold the table has ended, the clients see it, and the port is free.
    assert!(weak.upgrade().is_none());
    for mut client in clients {
        client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let _ = client.read_to_end(&mut Vec::new());
    }
    drop(TcpListener::bind(address).unwrap());
}
