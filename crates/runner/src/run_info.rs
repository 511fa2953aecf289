//! What runs, and where.

use std::time::Duration;

use packet::MacAddr;
use rig::device::Polled;

/// What runs, and where. It does not change during a run.
#[derive(Debug, Clone)]
pub struct RunInfo {
    /// The function, as `show` names it.
    pub function: String,
    /// The command and its function or name, for the title of the live view.
    pub title: String,
    /// CPUs that poll; the first lcore's first.
    pub cpus: Vec<u32>,
    /// Which lcore polls which queue.
    pub polled: Vec<Polled>,
    /// Largest IP packet in bytes, by port.
    pub mtu: Vec<u16>,
    /// MAC address of each port: its own, or one made up where it has none.
    pub macs: Vec<MacAddr>,
    /// Whether each port is a socket, where peers come and go.
    pub sockets: Vec<bool>,
    /// How long to run; `None`: until stopped.
    pub duration: Option<Duration>,
    /// Whether the run ends when all captures have been read.
    pub once: bool,
}
