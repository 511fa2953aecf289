//! A server and a clock for tests.

use std::{
    fmt::Debug,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use packet::Clock;

use crate::{
    server::{ServedCounts, Server},
    socket::{Transport, Wait},
};

/// Tells a thread beside to end, also when the test fails: its scope waits for the thread.
struct EndsWith<'a>(&'a AtomicBool);

impl Drop for EndsWith<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What is done with a server that runs meanwhile; and what it counted.
pub(crate) fn with_server<T>(transport: Transport, wait: Wait, act: impl FnOnce(SocketAddr) -> T) -> (T, ServedCounts) {
    let server = Server::bind(transport, (Ipv4Addr::LOCALHOST, 0).into(), wait).unwrap();
    let over = AtomicBool::new(false);
    let result = thread::scope(|s| {
        let runs = s.spawn(|| server.run(&|| !over.load(Ordering::Relaxed)));
        let end = EndsWith(&over);
        let result = act(server.address().unwrap());
        drop(end);
        runs.join().unwrap().unwrap();
        result
    });
    (result, server.counts())
}

/// A server of this behaviour, for datagrams.
pub(crate) fn with_other<T>(
    behaves: impl Fn(&UdpSocket, &mut [u8], SocketAddr, u64) + Sync,
    act: impl FnOnce(SocketAddr) -> T,
) -> T {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let address = socket.local_addr().unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|s| {
        s.spawn(|| {
            let mut bytes = [0; 2048];
            let mut n = 0;
            while !over.load(Ordering::Relaxed) {
                if let Ok((read, from)) = socket.recv_from(&mut bytes) {
                    n += 1;
                    behaves(&socket, &mut bytes[..read], from, n);
                }
            }
        });
        let _end = EndsWith(&over);
        act(address)
    })
}

/// The first of five runs that is what a run in time gives: on a machine that others use, one may be starved of its CPU for
/// longer than it waits for a reply. What holds of that run, too, `run` asserts itself.
pub(crate) fn one_in_time<T: Debug>(mut run: impl FnMut() -> T, in_time: impl Fn(&T) -> bool) -> T {
    let mut starved = Vec::new();
    for _ in 0..5 {
        match run() {
            result if in_time(&result) => return result,
            result => starved.push(result),
        }
    }
    panic!("none of five runs is as it should be: {starved:#?}");
}

/// Nanoseconds of this machine.
pub(crate) struct Wall(pub(crate) Instant);

impl Clock for Wall {
    fn now(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
    fn hz(&self) -> u64 {
        1_000_000_000
    }
}
