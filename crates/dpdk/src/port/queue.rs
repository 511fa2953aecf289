//! The queues of a started port, each handed out once.

use std::sync::Arc;

use dpdk_sys as sys;
use packet::{Burst, Rx, Tx};

use super::{once::Once, started::Started};
use crate::{mbuf::spare, Mbuf};

/// A receive queue of a started port. There is one of each, it moves to the lcore that polls it, and it keeps the
/// port open.
pub struct RxQueue {
    port: u16,
    queue: u16,
    /// What is read instead of the device's queue.
    capture: Option<Once>,
    keep: Arc<Started>,
}

/// A transmit queue of a started port; as [`RxQueue`].
pub struct TxQueue {
    port: u16,
    queue: u16,
    keep: Arc<Started>,
}

impl RxQueue {
    pub(super) fn new(keep: Arc<Started>, queue: u16, capture: Option<Once>) -> Self {
        Self { port: keep.id, queue, capture, keep }
    }

    /// The port's name, as the user wrote it.
    pub fn port(&self) -> &str {
        &self.keep.text
    }
}

impl TxQueue {
    pub(super) fn new(keep: Arc<Started>, queue: u16) -> Self {
        Self { port: keep.id, queue, keep }
    }

    /// The port's name, as the user wrote it.
    pub fn port(&self) -> &str {
        &self.keep.text
    }

    /// Makes the driver give back what it has sent. Call it when there is nothing to send and at the end of a trial:
    /// drivers reclaim only while they send. Over AF_XDP it also tells the kernel to go on sending.
    pub fn tx_done_cleanup(&mut self) {
        // SAFETY: the port is started (we keep it so) and only we use this queue.
        unsafe { sys::lr_tx_done_cleanup(self.port, self.queue) };
    }
}

impl Rx for RxQueue {
    type Buf = Mbuf;

    #[inline]
    fn rx(&mut self, burst: &mut Burst<Mbuf>) -> usize {
        if let Some(capture) = &mut self.capture {
            return capture.rx(burst);
        }
        let (have, room) = (burst.len(), burst.remaining_capacity());
        // SAFETY: the port is started and only we use this queue; there is room for `room` pointers behind `have`, and
        // the driver wrote `n` owned mbufs there.
        unsafe {
            let n = sys::lr_rx_burst(self.port, self.queue, spare(burst).add(have), room as u16) as usize;
            burst.set_len(have + n);
            n
        }
    }
}

impl Tx for TxQueue {
    type Buf = Mbuf;

    #[inline]
    fn tx(&mut self, burst: &mut Burst<Mbuf>) -> usize {
        let have = burst.len();
        // SAFETY: the port is started and only we use this queue. The driver owns the first `n` mbufs afterwards; the
        // burst forgets them (its length is zero while they move) and keeps the others.
        unsafe {
            let all = spare(burst);
            burst.set_len(0);
            let n = sys::lr_tx_burst(self.port, self.queue, all, have as u16) as usize;
            if n < have {
                std::ptr::copy(all.add(n), all, have - n);
                burst.set_len(have - n);
            }
            n
        }
    }
}
