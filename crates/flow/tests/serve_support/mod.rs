//! A table of flows in a vector: the input of the read server's tests.
#![allow(dead_code)]

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{SystemTime, UNIX_EPOCH},
};

use flow::{
    client::{Client, ClientSpec},
    protocol::{Interface, Totals},
    serve::{ServeSpec, Server},
    Addresses, Key, Record, Source, Way,
};

#[derive(Default)]
pub struct Flows {
    pub places: Mutex<Vec<Option<Record>>>,
    pub totals: Mutex<Totals>,
}

impl Source for Flows {
    fn totals(&self) -> Totals {
        self.totals.lock().unwrap().clone()
    }

    fn places(&self) -> u64 {
        self.places.lock().unwrap().len() as u64
    }

    fn scan(&self, from: u64, to: u64, visit: &mut dyn FnMut(u64, &Record)) {
        for place in from..to {
            let record = self.places.lock().unwrap()[place as usize];
            if let Some(record) = record {
                visit(place, &record);
            }
        }
    }
}

pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// Flow `n`: every fifth is IPv6, ports, protocols and ingress vary, larger the larger `n`.
pub fn record(n: u32) -> Record {
    let addresses = match n % 5 {
        0 => Addresses::V6 { src: (0x2001_0db8 << 96 | u128::from(n)).into(), dst: 1.into() },
        _ => Addresses::V4 { src: (0x0a00_0000 | n).into(), dst: (0xc612_0000 | n).into() },
    };
    let protocol = if n.is_multiple_of(2) { 6 } else { 17 };
    let port = (n % 3) as u8;
    let key = Key { addresses, sport: n as u16, dport: 443, protocol, port, scope: None, bottom: false };
    let packets = u64::from(n) + 1;
    let forward = Way { packets, ip_bytes: packets * 46, frame_bytes: packets * 60, tcp_flags: 0x12 };
    let (first, last) = (1_000, 2_000);
    Record { key, ingress: port, tos: 0, forward, back: Way::default(), first, last, end: None, details: None }
}

/// Flows 0 to `count`, one in each `spread` places.
pub fn flows(count: u32, spread: usize) -> Arc<Flows> {
    let mut places = vec![None; count as usize * spread];
    for n in 0..count {
        places[n as usize * spread] = Some(record(n));
    }
    let interface = |port, name: &str| Interface { port, name: name.into(), up: true, ..Interface::default() };
    let interfaces = vec![interface(0, "null"), interface(1, "a \"quoted\\name\"\nof two lines")];
    let mut totals = Totals { interfaces, at: now(), uptime_s: 1.5, ..Totals::default() };
    totals.table.flows = count.into();
    totals.table.ended = [1, 2, 3, 4, 5];
    Arc::new(Flows { places: Mutex::new(places), totals: Mutex::new(totals) })
}

pub fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub fn server(source: &Arc<Flows>) -> Server {
    server_with(source, |_| {})
}

pub fn server_with(source: &Arc<Flows>, change: impl FnOnce(&mut ServeSpec)) -> Server {
    let mut spec = ServeSpec::new(loopback());
    change(&mut spec);
    Server::start(&spec, Arc::clone(source) as Arc<dyn Source>).unwrap()
}

pub fn client(server: &Server) -> Client {
    Client::connect(&ClientSpec::new(server.local_addr().to_string())).unwrap()
}
