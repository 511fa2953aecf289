//! A flow logger that counts nothing: it speaks the read protocol over real TCP, dies and comes back when told to.

use std::{
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        atomic::{AtomicBool, Ordering},
        Arc, Mutex,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use flow::protocol::{Answer, Ask, By, Filter, Hello, Interface, Page, Request, Row, TableTotals, Totals, What};
use flow::{Addresses, Key, Record, Way};

const AT: u64 = 1_700_000_000_000_000_000;

/// What it is told to be.
#[derive(Debug, Clone, Default)]
pub struct Manner {
    pub name: String,
    pub token: Option<&'static str>,
    /// Said instead of everything else.
    pub garbage: Option<&'static [u8]>,
}

/// It runs while this lives.
pub struct Logger {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    clients: Arc<Mutex<Vec<TcpStream>>>,
    thread: Option<JoinHandle<()>>,
}

impl Logger {
    pub fn start(manner: Manner) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), manner)
    }

    pub fn named(name: &str) -> Self {
        Self::start(Manner { name: name.into(), ..Manner::default() })
    }

    pub fn start_at(address: SocketAddr, manner: Manner) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, clients) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (seen, all) = (Arc::clone(&stop), Arc::clone(&clients));
        let thread = thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                let Ok((stream, _)) = listener.accept() else {
                    thread::sleep(Duration::from_millis(5));
                    continue;
                };
                stream.set_nonblocking(false).unwrap();
                all.lock().unwrap().push(stream.try_clone().unwrap());
                let manner = manner.clone();
                thread::spawn(move || serve(stream, &manner));
            }
        });
        Self { address, stop, clients, thread: Some(thread) }
    }

    pub fn at(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for Logger {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
        for client in self.clients.lock().unwrap().drain(..) {
            let _ = client.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn serve(stream: TcpStream, manner: &Manner) -> Option<()> {
    let mut out = stream.try_clone().ok()?;
    if let Some(garbage) = manner.garbage {
        return out.write_all(garbage).ok();
    }
    let hello = Hello {
        server: "linerate-flowlog".into(),
        version: flow::protocol::VERSION,
        name: manner.name.clone(),
        auth: manner.token.is_some(),
    };
    writeln!(out, "{}", serde_json::to_string(&hello).ok()?).ok()?;
    let mut known = manner.token.is_none();
    for line in BufReader::new(stream).lines() {
        let request: Request = serde_json::from_str(&line.ok()?).ok()?;
        let what = match request.ask {
            Ask::Auth { token } if Some(token.as_str()) == manner.token => {
                known = true;
                What::Ok(true)
            }
            Ask::Auth { .. } => What::Error("wrong token".into()),
            _ if !known => What::Error("show the token first".into()),
            Ask::Totals => What::Totals(totals()),
            Ask::Top { by, limit, filter } => What::Page(top(by, limit, &filter)),
            other => What::Error(format!("not here: {other:?}")),
        };
        writeln!(out, "{}", serde_json::to_string(&Answer { id: request.id, what }).ok()?).ok()?;
    }
    Some(())
}

/// The same counters at every look.
pub fn totals() -> Totals {
    let interface = |port| Interface {
        port,
        name: format!("port\u{1b}[31m{port}"),
        packets: 1_000_000_007,
        packet_rate: 14_880_952.4,
        bit_rate: 7_142_857_142.0,
        up: true,
        ..Interface::default()
    };
    let table = TableTotals { flows: 30, capacity: 1024, new_rate: 5.5, ..TableTotals::default() };
    Totals { at: AT, uptime_s: 60.0, interfaces: vec![interface(0), interface(1)], table, ..Totals::default() }
}

/// Flow `n` of thirty.
pub fn row(n: u8) -> Row {
    let (dport, protocol) = if n.is_multiple_of(3) { (53, 17) } else { (443, 6) };
    let addresses = Addresses::V4 { src: Ipv4Addr::new(192, 0, 2, n), dst: Ipv4Addr::new(198, 51, 100, 1) };
    let key = Key { addresses, sport: 40_000, dport, protocol, port: 0, scope: None, bottom: false };
    let way = Way { packets: 1000 - u64::from(n), ip_bytes: 0, frame_bytes: 1000 + u64::from(n), tcp_flags: 2 };
    let (first, last) = (AT - 5_000_000_000, AT);
    let back = Way::default();
    let record = Record { key, ingress: 0, tos: 0, forward: way, back, first, last, end: None, details: None };
    Row { record, packet_rate: 1.5, bit_rate: 1000.0 }
}

/// Thirty flows: with every one more bytes and fewer packets; every third is UDP port 53.
fn top(by: By, limit: usize, filter: &Filter) -> Page {
    let holds = |row: &Row| {
        let key = row.record.key;
        let port = filter.port.is_none_or(|p| key.sport == p || key.dport == p);
        port && filter.protocol.is_none_or(|p| key.protocol == p)
    };
    let mut flows: Vec<Row> = (1..=30).map(row).filter(holds).collect();
    flows.sort_by_key(|r| match by {
        By::Packets | By::PacketRate => u64::MAX - r.record.forward.packets,
        By::Bytes | By::BitRate => u64::MAX - r.record.forward.frame_bytes,
    });
    let matching = Some(flows.len() as u64);
    flows.truncate(limit);
    Page { flows, next: None, matching }
}

/// The same counters and flows behind the real server.
pub struct Still;

impl flow::Source for Still {
    fn totals(&self) -> Totals {
        totals()
    }

    fn places(&self) -> u64 {
        30
    }

    fn scan(&self, from: u64, to: u64, visit: &mut dyn FnMut(u64, &Record)) {
        (from..to.min(30)).for_each(|n| visit(n, &row(n as u8 + 1).record));
    }
}
