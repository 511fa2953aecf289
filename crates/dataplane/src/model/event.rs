//! What lcores report to the control side.

use std::{net::IpAddr, sync::mpsc::SyncSender};

use packet::MacAddr;

/// What an lcore tells the control side. Lossy: when the queue is full the event is not sent, and the next frame of the
/// same kind tells it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A neighbour has this MAC address.
    Neighbour {
        /// On this interface.
        interface: u16,
        /// Its address.
        addr: IpAddr,
        /// Its MAC address.
        mac: MacAddr,
    },
    /// A tunnel end sent frames of this network.
    Remote {
        /// The network.
        vni: u32,
        /// The tunnel end.
        addr: IpAddr,
    },
}

/// Where lcores put events: bounded, and never waited for (`try_send`).
pub type Events = SyncSender<Event>;
