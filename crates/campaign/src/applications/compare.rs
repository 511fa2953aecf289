//! Every method of this machine beside each other.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use dpdk::PortSpec;
use failure::{Failure, Stop};
use latency::{
    pingpong::{self, PingPongOptions},
    raw::{
        result::{Missing, RawResult, Row, Span},
        run::{RawOptions, RxMode, TxMode},
    },
    server::Server,
    socket::{explain, Client, Transport, Wait},
};
use rig::{host_plan::open_for, Hosts, MachineOptions, RawBench, RawSize, RawWay, ADDRESSES};

use super::frames::begun;

/// How long ports may take to find their other end.
const LINK_WAIT: Duration = Duration::from_secs(5);
/// Bytes of a frame and of a message.
const COMPARED: (usize, usize) = (60, 14);

/// Ways of frames that need nothing but this machine.
fn ways() -> Result<Vec<(&'static str, RawWay)>, Failure> {
    let pair = |like: &str| -> Result<RawWay, Failure> { Ok(RawWay::Pair(Box::new(like.parse::<PortSpec>()?))) };
    Ok(vec![
        ("software cable", RawWay::Cable),
        ("memif", pair("memif:/like")?),
        ("vhost-user", pair("vhost:/like")?),
        ("AF_XDP copy, veth", pair("eth:like,driver=af_xdp")?),
        ("AF_PACKET mmap, veth", pair("eth:like,driver=af_packet")?),
        ("AF_PACKET sockets, veth", RawWay::SocketPair),
    ])
}

/// Measures every method that this machine has, each for `time`: raw frames over pairs of our own, then UDP and TCP between two
/// network namespaces joined by a veth pair. What cannot be measured is named, with its reason. `progress` hears of each method.
///
/// # Errors
///
/// Those of [`RawBench::new`].
pub fn compare(
    machine: &MachineOptions,
    time: Duration,
    stop: &Stop,
    progress: &dyn Fn(&str),
) -> Result<RawResult, Failure> {
    let mut bench = RawBench::new(machine, &[], LINK_WAIT)?;
    let mut result = begun(&bench);
    result.findings = Some(open_for([bench.cpu].into(), &[]));
    let options = |tx, rx| RawOptions { tx, rx, time, samples: u64::MAX, warm_ups: 1000, ..RawOptions::default() };
    let modes = [options(TxMode::Frame, RxMode::Copy), options(TxMode::Preloaded, RxMode::InPlace)];
    for (name, way) in ways()? {
        if stop.requested() {
            break;
        }
        progress(name);
        let sizes: Vec<RawSize<'_>> =
            modes.iter().map(|options| RawSize { bytes: COMPARED.0, forward: false, options }).collect();
        let before = result.rows.len();
        if let Err(failure) = bench.measure(&way, &sizes, stop, &mut result.rows) {
            result.missing.push(Missing { method: name.to_owned(), why: failure.text });
        }
        for row in &mut result.rows[before..] {
            row.method = name.to_owned();
        }
    }
    match Hosts::new() {
        Err(failure) => result.missing.push(Missing { method: "UDP and TCP, veth".into(), why: failure.text }),
        Ok(hosts) => {
            // The client is where frames are measured; the server takes another CPU, if there is one.
            let cpus = (bench.cpu, bench.facts.cpus_allowed.iter().copied().find(|&cpu| cpu != bench.cpu));
            for transport in [Transport::Udp, Transport::Tcp] {
                for wait in [Wait::Block, Wait::Epoll, Wait::Spin] {
                    if stop.requested() {
                        break;
                    }
                    let name = format!("{}, veth", report::latency::socket_method(transport, wait));
                    progress(&name);
                    match sockets(&hosts, cpus, (transport, wait), time, &name, stop) {
                        Ok(row) => result.rows.push(row),
                        Err(failure) => result.missing.push(Missing { method: name, why: failure.text }),
                    }
                }
            }
        }
    }
    result.timing = bench.timing();
    Ok(result)
}

/// Round trips between the two hosts.
fn sockets(
    hosts: &Hosts,
    (client_cpu, server_cpu): (u32, Option<u32>),
    (transport, wait): (Transport, Wait),
    time: Duration,
    name: &str,
    stop: &Stop,
) -> Result<Row, Failure> {
    let (Some(server_cpu), over) = (server_cpu, AtomicBool::new(false)) else {
        return Err(Failure::machine("client and server want a CPU each"));
    };
    let server =
        hosts.inside(1, || Server::bind(transport, (ADDRESSES[1], 0).into(), wait).map_err(Failure::machine))?;
    let address = server.address().map_err(Failure::machine)?;
    thread::scope(|scope| {
        let served = scope.spawn(|| {
            let _ = host::pin(server_cpu);
            server.run(&|| !over.load(Ordering::Relaxed))
        });
        let measured = hosts.inside(0, || {
            let failed = |e: std::io::Error| Failure::machine(explain(&e, transport));
            let mut client = Client::open(transport, address, wait).map_err(failed)?;
            let _ = host::pin(client_cpu);
            let local = client.local().map_err(failed)?.to_string();
            let options = PingPongOptions { size: COMPARED.1..=COMPARED.1, time, ..PingPongOptions::default() };
            let measured = pingpong::run(&mut client, &options, &|| !stop.requested()).map_err(failed)?;
            Ok((local, measured))
        });
        over.store(true, Ordering::Relaxed);
        let _ = served.join();
        let (local, measured) = measured?;
        let ends = (local, address.to_string());
        let row = Row::of_times(name, Span::RoundTrip, ends, COMPARED.1, &measured.times);
        Ok(Row { seconds: measured.seconds, ended: measured.ended, counts: measured.counts, ..row })
    })
}
