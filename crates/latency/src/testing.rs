//! A server and a clock for tests.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Instant,
};

use packet::Clock;

use crate::{
    server::{ServedCounts, Server},
    socket::{Transport, Wait},
};

/// Tells a thread beside to end, also when the test fails: its scope waits for the thread.
pub(crate) struct EndsWith<'a>(pub(crate) &'a AtomicBool);

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
