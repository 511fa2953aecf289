//! What a port is configured with, and the legal ranges.

use std::{
    sync::{atomic::AtomicBool, Arc},
    time::Duration,
};

use dpdk_sys as sys;

use crate::{DpdkError, Mempool};

/// Three bytes that frames bear at a fixed distance from their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameMark {
    /// The bytes.
    pub bytes: [u8; 3],
    /// How far the first of them is from the end of the frame, in bytes: 4 at least. The FCS is not of the frame.
    pub from_end: u32,
}

/// How a port is set up.
#[derive(Debug, Clone)]
pub struct PortConfig {
    /// Where received frames are put. `eth:` ports bring a pool of their own.
    pub pool: Mempool,
    /// Receive queues, 0 to 64. Default 1. With more than one, frames are spread over them by a hash of their addresses
    /// and ports where the device can (see [`Port::rss`](crate::Port::rss)); elsewhere they come as the peer distributes them.
    pub rx_queues: u16,
    /// Transmit queues, 0 to 64. Default 1.
    pub tx_queues: u16,
    /// Descriptors of a receive queue; drivers round. Default 1024.
    pub rx_desc: u16,
    /// Descriptors of a transmit queue; drivers round. Default 1024.
    pub tx_desc: u16,
    /// The largest L2 payload in bytes: frame size less 18. Default 1500.
    pub mtu: u16,
    /// Receive frames for any MAC address, if the driver can. Default true.
    pub promiscuous: bool,
    /// Read captures once instead of in a loop. Default false.
    pub read_once: bool,
    /// How long opening `virtio:…,server=1` waits for its peer: DPDK needs it to set the device up. Default 30 s.
    pub peer_timeout: Duration,
    /// By what the caller knows its own frames. Over AF_PACKET the kernel's own stack does not get those, where the kernel (from
    /// Linux 6.6 on) and the rights allow it: it would answer each, or forward it. Default: no mark.
    pub own: Option<FrameMark>,
    /// Ends that wait early when it becomes true, as after Ctrl-C.
    pub cancel: Option<Arc<AtomicBool>>,
}

impl PortConfig {
    /// The defaults, with this pool.
    pub fn new(pool: &Mempool) -> Self {
        Self {
            pool: pool.clone(),
            rx_queues: 1,
            tx_queues: 1,
            rx_desc: 1024,
            tx_desc: 1024,
            mtu: 1500,
            promiscuous: true,
            read_once: false,
            peer_timeout: Duration::from_secs(30),
            own: None,
            cancel: None,
        }
    }

    /// The same with another pool.
    pub(super) fn with_pool(&self, pool: &Mempool) -> Self {
        Self { pool: pool.clone(), ..self.clone() }
    }
}

/// Errors when a number of queues or the MTU is out of range.
pub(super) fn check_config(text: &str, config: &PortConfig) -> Result<(), DpdkError> {
    let refuse = |why: String| Err(DpdkError::Config { what: format!("port {text}"), why });
    let most = sys::LR_MAX_QUEUES as u16;
    if config.rx_queues > most || config.tx_queues > most || config.rx_queues + config.tx_queues == 0 {
        return refuse(format!("must have 1 to {most} queues in a direction"));
    }
    check_mtu(text, config.mtu, &config.pool)
}

/// Errors when frames of this MTU do not fit the pool.
pub(super) fn check_mtu(text: &str, mtu: u16, pool: &Mempool) -> Result<(), DpdkError> {
    // Header and FCS; drivers with a VLAN tag in the frame need its four bytes too.
    let most = pool.max_frame_len().saturating_sub(22);
    if mtu < 68 || usize::from(mtu) > most {
        let why = format!("MTU {mtu}: must be 68 to {most} with the data room of this pool");
        return Err(DpdkError::Config { what: format!("port {text}"), why });
    }
    Ok(())
}
