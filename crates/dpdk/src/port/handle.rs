//! A started port: what it is, and its queues.

use std::sync::Arc;

use dpdk_sys as sys;

use super::{
    capture::Progress,
    config::check_mtu,
    kernel::have_zero_copy,
    once::Once,
    queue::{RxQueue, TxQueue},
    rss::Rss,
    started::{control, Started},
};
use crate::{log, DpdkError};

/// A started port. It is stopped, closed and removed when it and all queues taken from it are gone.
pub struct Port {
    pub(super) started: Arc<Started>,
    rx_taken: Vec<bool>,
    tx_taken: Vec<bool>,
    fallback: Option<String>,
    offloads: Vec<&'static str>,
    /// Read by receive queue 0 instead of the device.
    capture: Option<Once>,
    progress: Option<Arc<Progress>>,
}

/// The link of a port that is in use elsewhere.
pub struct PeerWatch(Arc<Started>);

impl PeerWatch {
    /// Looks whether the peer has gone, or has come back: the driver lets it connect again only when it is asked for the link.
    pub fn look(&self) {
        let _ = self.0.link();
    }
}

/// What opening a port found besides the device.
#[derive(Default)]
pub(super) struct Opened {
    /// See [`Port::fallback`].
    pub(super) fallback: Option<String>,
    /// Read by receive queue 0 instead of the device.
    pub(super) capture: Option<Once>,
    /// See [`Port::long_frame_offloads`].
    pub(super) offloads: Vec<&'static str>,
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Port({}, {})", self.name(), self.driver())
    }
}

impl Port {
    /// A port of a started device.
    pub(super) fn new(started: Started, opened: Opened) -> Self {
        let Opened { fallback, capture, offloads } = opened;
        let (rx, tx) = started.queues;
        let (rx_taken, tx_taken) = (vec![false; rx.into()], vec![false; tx.into()]);
        let progress = capture.as_ref().map(Once::progress);
        Self { started: Arc::new(started), rx_taken, tx_taken, fallback, offloads, capture, progress }
    }

    /// The name as the user wrote it.
    pub fn name(&self) -> &str {
        &self.started.text
    }

    /// The driver's name, such as `net_af_xdp`.
    pub fn driver(&self) -> &str {
        &self.started.driver
    }

    /// Why the port is not what was asked for: AF_PACKET because AF_XDP could not be opened, or a part of a capture.
    pub fn fallback(&self) -> Option<&str> {
        self.fallback.as_deref()
    }

    /// Whether frames pass between an AF_XDP port and the NIC without a copy; `None` for other ports.
    pub fn zero_copy(&self) -> Option<bool> {
        have_zero_copy(&self.started.xdp_sockets)
    }

    /// For a port whose peer may go and come back while the port is in use: the guest's side of vhost-user, whose memory is its
    /// own. `None` for others.
    pub fn peer_watch(&self) -> Option<PeerWatch> {
        (self.driver() == "net_virtio_user").then(|| PeerWatch(Arc::clone(&self.started)))
    }

    /// Offloads of the kernel that are on, as `ethtool -K` names them, and that make frames which AF_PACKET cannot carry:
    /// longer than the MTU. Empty with other drivers.
    pub fn long_frame_offloads(&self) -> &[&'static str] {
        &self.offloads
    }

    /// The port cuts frames that are longer than its buffers, and does not say which: a received frame of this length or more
    /// may be the beginning of a longer one. `None` when the port gives whole frames only.
    pub fn cut_length(&self) -> Option<u32> {
        self.started.cut_length
    }

    /// Progress of the capture that this port reads once; `None` when it reads none.
    pub fn progress(&self) -> Option<&Arc<Progress>> {
        self.progress.as_ref()
    }

    /// The MAC address; all zero when the device has none.
    pub fn mac(&self) -> [u8; 6] {
        self.started.info().map_or([0; 6], |i| i.mac)
    }

    /// The NUMA node; `None` for a software port.
    pub fn numa_node(&self) -> Option<u32> {
        self.started.info().and_then(|i| u32::try_from(i.socket).ok()).filter(|_| self.started.is_physical())
    }

    /// The most receive and transmit queues the device can have.
    pub fn max_queues(&self) -> (u16, u16) {
        self.started.max_queues
    }

    /// The fields by which frames are spread over the receive queues. Off with one queue, or when the device cannot.
    pub fn rss(&self) -> Rss {
        Rss::from_bits(self.started.info().map_or(0, |i| i.rss.into()))
    }

    /// The largest L2 payload in bytes. Errors when the driver cannot say.
    pub fn mtu(&self) -> Result<u16, DpdkError> {
        let mut mtu = 0;
        log::mark();
        // SAFETY: the port exists as long as `self`.
        match unsafe { sys::lr_port_mtu(self.started.id, &mut mtu) } {
            0 => Ok(mtu),
            err => Err(DpdkError::driver(self.name(), "reading the MTU", err)),
        }
    }

    /// Sets the largest L2 payload in bytes. Errors when frames of it do not fit the pool, or the driver cannot (many
    /// cannot while the port runs: [`PortConfig::mtu`](crate::PortConfig::mtu) is for them).
    pub fn set_mtu(&self, mtu: u16) -> Result<(), DpdkError> {
        check_mtu(self.name(), mtu, &self.started.pool)?;
        let _one_at_a_time = control();
        log::mark();
        // SAFETY: as above; the driver refuses what it cannot do while its queues are in use.
        match unsafe { sys::lr_port_set_mtu(self.started.id, mtu) } {
            0 => Ok(()),
            err => Err(DpdkError::driver(self.name(), format!("setting an MTU of {mtu}"), err)),
        }
    }

    /// Hands out receive queue `q`, once. Errors when it is taken or does not exist.
    pub fn take_rx(&mut self, q: u16) -> Result<RxQueue, DpdkError> {
        take(&mut self.rx_taken, &self.started, "receive", q)?;
        let capture = if q == 0 { self.capture.take() } else { None };
        Ok(RxQueue::new(Arc::clone(&self.started), q, capture))
    }

    /// Hands out transmit queue `q`, once. Errors when it is taken or does not exist.
    pub fn take_tx(&mut self, q: u16) -> Result<TxQueue, DpdkError> {
        take(&mut self.tx_taken, &self.started, "transmit", q)?;
        Ok(TxQueue::new(Arc::clone(&self.started), q))
    }

    /// Gives the port up. It is closed at once when none of its queues is left.
    pub fn close(self) {}
}

fn take(taken: &mut [bool], started: &Started, direction: &'static str, queue: u16) -> Result<(), DpdkError> {
    let count = taken.len();
    let why = match taken.get_mut(usize::from(queue)) {
        Some(taken @ false) => {
            *taken = true;
            return Ok(());
        }
        Some(true) => "is already taken".to_string(),
        None => format!("does not exist: the port has {count}"),
    };
    Err(DpdkError::Queue { port: started.text.clone(), direction, queue, why })
}
