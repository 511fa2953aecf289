//! Two hosts on one network, and a namespace between them for a logger, its collectors and clients.

use std::{path::Path, time::Duration};

use crate::logger::Logger;
use crate::support::{
    frames::{eth, ip4, mac, udp, IPV4, UDP},
    raw::{cable, RawPort},
    Netns,
};

pub const STATION: [&str; 2] = ["02:4c:52:00:00:00", "02:4c:52:00:00:01"];
const MIDDLE: [&str; 2] = ["02:4c:52:00:01:00", "02:4c:52:00:01:01"];
const PORTS: [&str; 6] = ["--port", "eth:d0", "--port", "eth:d1", "--flows", "4k"];
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Host `n` has `eth0` with 10.0.0.`n + 1`; the other end of that wire is `d0` or `d1` in the middle.
pub struct Between {
    /// The hosts' interfaces.
    pub ends: [RawPort; 2],
    pub hosts: [Netns; 2],
    pub middle: Netns,
}

impl Between {
    pub fn new() -> Self {
        let (hosts, middle) = ([Netns::new(), Netns::new()], Netns::new());
        middle.ip("link set lo up");
        for (n, host) in hosts.iter().enumerate() {
            cable((host, "eth0", STATION[n]), (&middle, &format!("d{n}"), MIDDLE[n]));
            host.ip(&format!("addr add 10.0.0.{}/24 dev eth0", n + 1));
        }
        Self { ends: [0, 1].map(|n: usize| RawPort::open(&hosts[n], "eth0")), hosts, middle }
    }

    /// A logger in the middle, with room for 4k flows.
    #[track_caller]
    pub fn logger<'a>(&'a self, dir: &Path, more: &[&str]) -> Logger<'a> {
        self.logger_by(&[], dir, more)
    }

    /// The same, started by `how`.
    #[track_caller]
    pub fn logger_by<'a>(&'a self, how: &[&str], dir: &Path, more: &[&str]) -> Logger<'a> {
        let process = Logger::spawn(how, Some(&self.middle), dir, &[&PORTS[..], more].concat());
        Logger::ready(process, Some(&self.middle), dir)
    }

    /// Sends a frame from one host and waits until it has passed to the other.
    #[track_caller]
    pub fn pass(&self, way: usize, frame: &[u8]) {
        self.ends[way].send(frame);
        let passed = self.ends[1 - way].expect("it passes", PATIENCE, |f| f.get(12..14) == Some(&[8, 0]));
        assert!(passed == frame, "changed on the way");
    }

    /// Sends a frame of each of `count` flows and waits until each has passed; their bytes.
    #[track_caller]
    pub fn send(&self, first: u16, count: u16) -> u64 {
        let frames = (first..first + count).map(frame);
        frames.map(|frame| (self.pass(0, &frame), frame.len() as u64).1).sum()
    }
}

/// A frame of flow `n`, from host 0 to host 1.
pub fn frame(n: u16) -> Vec<u8> {
    let src = format!("10.1.{}.{}", n >> 8, n & 255);
    let body = ip4(&src, "192.0.2.1", UDP, &udp(&src, "192.0.2.1", 53, &vec![9; usize::from(n % 900)]));
    eth(mac(STATION[1]), mac(STATION[0]), IPV4, &body)
}
