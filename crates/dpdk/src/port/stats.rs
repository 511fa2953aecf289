//! Counters and link state, as the driver or the kernel reports them.

use std::time::{Duration, Instant};

use dpdk_sys as sys;

use super::{handle::Port, kernel, started::Started};
use crate::{log, DpdkError};

/// What the driver counted since the last reset. Drivers differ in what they count and when: a cross-check of
/// software counts, not a replacement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Frames received.
    pub ipackets: u64,
    /// Frames sent.
    pub opackets: u64,
    /// Bytes received; some drivers count the FCS.
    pub ibytes: u64,
    /// Bytes sent; some drivers count the FCS.
    pub obytes: u64,
    /// Frames dropped because no descriptor was free.
    pub imissed: u64,
    /// Frames received with errors.
    pub ierrors: u64,
    /// Frames that could not be sent.
    pub oerrors: u64,
    /// Receptions that failed because the pool was empty.
    pub rx_nombuf: u64,
}

/// The state of a port's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Whether frames can pass.
    pub up: bool,
    /// Bits per second; `None` for software ports, whose drivers make a number up, and when unknown.
    pub bps: Option<u64>,
}

impl Port {
    /// What the driver counted. Errors when the driver cannot say.
    pub fn stats(&self) -> Result<PortStats, DpdkError> {
        let mut s = sys::lr_stats::default();
        let (frames, bytes) = self.progress().map_or((0, 0), |progress| progress.read());
        log::mark();
        // SAFETY: the port exists as long as `self`.
        match unsafe { sys::lr_port_stats(self.started.id, &mut s) } {
            0 => Ok(PortStats {
                ipackets: s.ipackets + frames,
                opackets: s.opackets,
                ibytes: s.ibytes + bytes,
                obytes: s.obytes,
                imissed: s.imissed,
                ierrors: s.ierrors,
                oerrors: s.oerrors,
                rx_nombuf: s.rx_nombuf,
            }),
            err => Err(DpdkError::driver(&self.started.text, "reading counters", err)),
        }
    }

    /// The driver's own counters by name, at most 1024 of them.
    pub fn xstats(&self) -> Result<Vec<(String, u64)>, DpdkError> {
        const NAME: usize = sys::LR_XSTAT_NAME as usize;
        log::mark();
        let fail = |err| DpdkError::driver(&self.started.text, "reading extended counters", err);
        // SAFETY: no buffers are given, only the count is asked for.
        let count = unsafe { sys::lr_port_xstats(self.started.id, std::ptr::null_mut(), std::ptr::null_mut(), 0) };
        let count = usize::try_from(count).map_err(|_| fail(count))?;
        let mut names = vec![0u8; count * NAME];
        let mut values = vec![0u64; count];
        // SAFETY: the buffers hold `count` names and values, which the shim respects.
        let filled = unsafe {
            sys::lr_port_xstats(self.started.id, names.as_mut_ptr().cast(), values.as_mut_ptr(), count as u32)
        };
        let filled = usize::try_from(filled).map_err(|_| fail(filled))?;
        let name = |bytes: &[u8]| {
            let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
        };
        Ok(names.chunks(NAME).map(name).zip(values).take(filled).collect())
    }

    /// Sets the driver's counters to zero. Errors when it cannot.
    pub fn reset_stats(&self) -> Result<(), DpdkError> {
        log::mark();
        // SAFETY: the port exists as long as `self`.
        match unsafe { sys::lr_port_stats_reset(self.started.id) } {
            0 => Ok(()),
            err => Err(DpdkError::driver(&self.started.text, "resetting counters", err)),
        }
    }

    /// The link now.
    pub fn link(&self) -> Link {
        self.started.link()
    }

    /// Waits, asleep, until the link is up; `false` if it is still down after `timeout`.
    pub fn wait_link_up(&self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        loop {
            if self.link().up {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Started {
    pub(super) fn link(&self) -> Link {
        let mut link = sys::lr_link::default();
        // SAFETY: the port exists as long as `self`.
        let known = unsafe { sys::lr_port_link(self.id, &mut link) } == 0;
        let mut up = known && link.up != 0;
        let mut bps = match link.mbps {
            mbps if self.is_physical() && mbps != 0 => Some(u64::from(mbps) * 1_000_000),
            _ => None,
        };
        if let Some(iface) = &self.iface {
            // The drivers over kernel interfaces say "up, 10G" always.
            up = kernel::running(iface);
            bps = kernel::hardware_speed(iface);
        }
        Link { up, bps }
    }
}
