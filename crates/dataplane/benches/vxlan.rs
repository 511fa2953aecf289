//! Cycles a frame of VXLAN encapsulation and decapsulation on heap buffers in cache, as `hot` measures the others:
//! `cargo bench -p dataplane --bench vxlan`.
#![allow(missing_docs, clippy::unwrap_used)]

use std::{
    hint::black_box,
    net::IpAddr,
    sync::{mpsc::sync_channel, Arc},
    time::Instant,
};

use dataplane::{
    fdb::Fdb,
    model::{Link, Network, OverlayConfig, Remote},
    node::NodeTimer,
    tables::{Adjacency, Overlay, Tables},
    vxlan::Vxlan,
    Dispatch, Function, Null, Outputs, PortMap, Shared,
};
use packet::{
    heap::{HeapBuf, HeapPool},
    Buffer, Burst, Clock, FakeClock, MacAddr, BURST,
};

const BURSTS: usize = 4;
const ROUNDS: usize = 50;
const REPEATS: usize = 400;
const PORTS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 1, 0]), MacAddr([2, 0, 0, 0, 1, 1])];

/// Station `i` on the access side or behind the tunnel, as it stands in a frame.
fn station(far: bool, i: usize) -> [u8; 6] {
    [2, 0xaa, far.into(), 0, (i >> 8) as u8, i as u8]
}

/// 60 bytes of UDP from one side to the other.
fn frame(far: bool, stations: usize, i: usize) -> Vec<u8> {
    let mut bytes = [station(!far, i % stations), station(far, i % stations)].concat();
    bytes.extend([8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, (i >> 8) as u8, i as u8]);
    bytes.resize(60, 0);
    bytes
}

fn mhz() -> f64 {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|l| l.starts_with("cpu MHz"));
    line.and_then(|l| l.split(':').nth(1)).and_then(|v| v.trim().parse().ok()).unwrap_or(1000.0)
}

/// Two ends, each the other's remote: what one puts in a tunnel the other takes out. Both ways are timed apart.
fn measure(name: &str, ip6: bool, stations: usize) {
    let pool = HeapPool::new(BURSTS * BURST + 4096, 256);
    let clock = FakeClock::new(1_000_000_000);
    let addr = |n: u8| -> IpAddr {
        if ip6 {
            format!("2001:db8::{n}").parse().unwrap()
        } else {
            [192, 0, 2, n].into()
        }
    };
    let mut ends: Vec<_> = [(1, 2), (2, 1)]
        .map(|(local, remote)| {
            let network = Network {
                vni: 7,
                local: addr(local),
                access: vec![Link { port: 0, vlan: None }],
                udp_port: 4789,
                learn: true,
            };
            let remote = Remote { vni: 7, addr: addr(remote) };
            let config = OverlayConfig { networks: vec![network], remotes: vec![remote], ..Default::default() };
            let mut tables = Tables::bare(&PORTS);
            let mut adjacency = Adjacency::forward(1, 1, PORTS[1], PORTS[1]);
            adjacency.mtu = 9000;
            tables.adjacencies.push(adjacency);
            tables.overlay = Arc::new(Overlay::new(&config, &mut |_| 3, None));
            let shared = Shared::new(tables);
            let (events, _) = sync_channel(8);
            let inner = Null::new(PortMap::pairs(2));
            Vxlan::new(shared.reader(), inner, Arc::new(Fdb::new(65536)), pool.clone(), events, 1_000_000_000)
        })
        .into();
    let mut out = Outputs::new(2);
    let mut run = |end: usize, ingress: usize, burst: &mut Burst<HeapBuf>| {
        let mut timer = NodeTimer::start(&clock, clock.now(), true);
        match black_box(ends[end].process(ingress, burst, &mut out, &mut timer)) {
            Dispatch::All(port) => port,
            Dispatch::Split => {
                out.drops.empty();
                for port in 0..2 {
                    burst.extend(out.port(port).unwrap().drain(..));
                }
                2
            }
        }
    };
    // Each end learns what is behind it, and then what is behind the other.
    for far in [true, false] {
        for first in (0..stations.max(BURST)).step_by(BURST) {
            let frames = (first..first + BURST).map(|i| frame(far, stations, i));
            let mut burst: Burst<_> = frames.map(|f| pool.frame(&f).unwrap()).collect();
            run(usize::from(far), 0, &mut burst);
            run(usize::from(!far), 1, &mut burst);
        }
    }
    let mut bursts: Vec<Burst<HeapBuf>> = (0..BURSTS * BURST)
        .map(|i| pool.frame(&frame(false, stations, i * 37)).unwrap())
        .fold(vec![Burst::new()], |mut bursts, frame| {
            if bursts.last().unwrap().is_full() {
                bursts.push(Burst::new());
            }
            bursts.last_mut().unwrap().push(frame);
            bursts
        });
    let mut best = [f64::INFINITY; 2];
    for _ in 0..REPEATS {
        let mut took = [0; 2];
        for _ in 0..ROUNDS {
            for (way, took) in took.iter_mut().enumerate() {
                let start = Instant::now();
                for burst in &mut bursts {
                    assert!(run(way, way, burst) == 1 - way);
                }
                *took += start.elapsed().as_nanos();
            }
        }
        for (best, took) in best.iter_mut().zip(took) {
            *best = best.min(took as f64 / (ROUNDS * BURSTS * BURST) as f64);
        }
    }
    assert!(bursts.iter().all(|burst| burst.len() == BURST && burst[0].len() == 60), "{name} lost frames");
    let [encap, decap] = best.map(|ns| ns * mhz() / 1e3);
    println!("{name:<34} encap {encap:7.1} decap {decap:7.1} together {:7.1} cycles a frame", encap + decap);
}

fn main() {
    println!("{BURST}-frame bursts of 64-byte frames in cache, {:.0} MHz", mhz());
    measure("vxlan over IPv4, one station", false, 1);
    measure("vxlan over IPv4, 1000 stations", false, 1000);
    measure("vxlan over IPv6, 1000 stations", true, 1000);
}
